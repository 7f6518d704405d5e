import type { Dmarc } from "./compose-dmarc.ts";
import { DomainAlerts } from "../dmarc/alerts/rules/domain-alerts.ts";
import { AcceptedReporters } from "../dmarc/insight/queries/accepted-reporters.ts";
import { HealthStore } from "../dmarc/insight/health/health-store.ts";
import { IngestionReader } from "../dmarc/reports/ingest/ingestion-reader.ts";
import { DmarcReading } from "../dmarc/alerts/overview/dmarc-reading.ts";
import { FailureReports } from "../dmarc/insight/queries/failure-reports.ts";
import { ReportReader } from "../dmarc/insight/queries/report-reader.ts";
import { DmarcRecordReader } from "../dmarc/insight/queries/record-reader.ts";
import { SourceReader } from "../dmarc/insight/queries/source-reader.ts";
import { SourceClassifier } from "../dmarc/insight/sources/classify-sources.ts";

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
