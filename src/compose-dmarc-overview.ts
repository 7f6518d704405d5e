import type { Runtime } from "./db/runtime.ts";
import type { Advisor } from "./dmarc/advice/advisor.ts";
import { DomainAlerts } from "./dmarc/alerts/domain-alerts.ts";
import type { DmarcAlertStore } from "./dmarc/domains/alert-store.ts";
import type { DomainStore } from "./dmarc/domains/domain-store.ts";
import type { IngestStores } from "./dmarc/ingest/ingest-stores.ts";
import { DmarcOverview } from "./dmarc/overview/dmarc-overview.ts";
import { HealthStore } from "./dmarc/health/health-store.ts";
import { DmarcReading } from "./dmarc/overview/dmarc-reading.ts";
import { DomainOverviewStore } from "./dmarc/overview/domain-overview-store.ts";
import { OpenAlertStore } from "./dmarc/overview/open-alert-store.ts";
import { OverviewJob } from "./dmarc/overview/overview-job.ts";
import type { QueryContext } from "./dmarc/queries/domain-query.ts";
import { FailureReports } from "./dmarc/queries/failure-reports.ts";
import { ReportReader } from "./dmarc/queries/report-reader.ts";
import { DmarcRecordReader } from "./dmarc/queries/record-reader.ts";
import { SourceReader } from "./dmarc/queries/source-reader.ts";
import { SourceClassifier } from "./dmarc/sources/classify-sources.ts";
import type { RollupStore } from "./dmarc/sources/rollup-store.ts";

export interface DmarcOverviewParts {
  readonly domains: DomainStore;
  readonly raised: DmarcAlertStore;
  readonly rollups: RollupStore;
  readonly advise: Advisor;
}

/** What pages read reports by. */
export const readersOf = (context: QueryContext, { failures, domains }: IngestStores, alerts: DmarcAlertStore) => {
  const health = new HealthStore(context.db);
  return {
    reports: new ReportReader(context),
    failures: new FailureReports(context, failures),
    alerts: new DomainAlerts(alerts, context.findDomain),
    sources: new SourceReader(context),
    records: new DmarcRecordReader(context),
    classifier: new SourceClassifier(context, context.rollups),
    reading: new DmarcReading({
      ...{ ...context, histories: domains },
      readHealth: (number) => health.readHealth(number),
    }),
  };
};

/** What the dashboard shows across domains, and the job that sums them up. */
export const composeDmarcOverview = (
  runtime: Pick<Runtime, "db" | "clock" | "log">,
  { domains, raised, rollups, advise }: DmarcOverviewParts,
) => {
  const store = new DomainOverviewStore(runtime.db);
  const job = new OverviewJob(runtime, { store, rollups, domains, advise });
  const alerts = new OpenAlertStore(runtime.db);
  return {
    overview: new DmarcOverview(runtime, { overviews: store, alerts, raised, domains }),
    sumUpDomains: () => job.run(),
    stop: (): void => job.stop(),
  };
};
