import type { Dmarc } from "./compose-dmarc.ts";
import { DomainAlerts } from "./dmarc/alerts/domain-alerts.ts";
import { AcceptedReporters } from "./dmarc/queries/accepted-reporters.ts";
import { HealthStore } from "./dmarc/health/health-store.ts";
import { IngestionReader } from "./dmarc/ingest/ingestion-reader.ts";
import { DmarcReading } from "./dmarc/overview/dmarc-reading.ts";
import { FailureReports } from "./dmarc/queries/failure-reports.ts";
import { ReportReader } from "./dmarc/queries/report-reader.ts";
import { DmarcRecordReader } from "./dmarc/queries/record-reader.ts";
import { SourceReader } from "./dmarc/queries/source-reader.ts";
import { SourceClassifier } from "./dmarc/sources/classify-sources.ts";

/** What routes and pages read reports and alerts by. */
export const composeDmarcReaders = ({ context, stores, alertStore, pages }: Dmarc) => {
  const { failures, domains, reporters } = stores;
  const health = new HealthStore(context.db);
  return {
    reader: new IngestionReader(pages.ingestions, domains),
    reports: new ReportReader(context),
    failures: new FailureReports(context, failures),
    alerts: new DomainAlerts(alertStore, context.findDomain),
    sources: new SourceReader(context),
    records: new DmarcRecordReader(context),
    acceptedReporters: new AcceptedReporters(context, reporters),
    classifier: new SourceClassifier(context, context.rollups),
    reading: new DmarcReading({
      ...{ ...context, histories: domains },
      readHealth: (number) => health.readHealth(number),
    }),
  };
};
