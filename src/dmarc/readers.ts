import { DmarcReading } from "./alerts/overview/dmarc-reading.ts";
import { DomainAlerts } from "./finding-routes.ts";
import { HealthStore } from "./insight/health/health-store.ts";
import type { RecordHistory } from "./insight/queries/record-history-routes.ts";
import { AcceptedReporters } from "./insight/queries/accepted-reporters.ts";
import { FailureReports, ReportReader } from "./insight/queries/report-reader.ts";
import { DmarcRecordReader } from "./insight/queries/record-reader.ts";
import { SourceAddressReader } from "./insight/queries/source-address-routes.ts";
import { OwnHostReader } from "./insight/queries/own-host-routes.ts";
import { SourceReader } from "./insight/queries/source-routes.ts";
import { SourceClassifier } from "./insight/sources/source-classifier.ts";
import type { DmarcSlice } from "./open.ts";
import { IngestionReader } from "./reports/ingest/ingestions.ts";

/** What pages read reports and alerts by. */
export class DmarcReaders {
  readonly reader: IngestionReader;
  readonly reports: ReportReader;
  readonly failures: FailureReports;
  readonly alerts: DomainAlerts;
  readonly sources: SourceReader;
  readonly ownHosts: OwnHostReader;
  readonly sourceAddresses: SourceAddressReader;
  readonly records: DmarcRecordReader;
  readonly acceptedReporters: AcceptedReporters;
  readonly classifier: SourceClassifier;
  readonly reading: DmarcReading;
  readonly recordHistory: RecordHistory;

  constructor({ context, stores, reports, raised, recordHistory }: DmarcSlice) {
    const { domains, failures, reporters } = stores;
    const health = new HealthStore(context.db);
    this.reader = new IngestionReader(reports.ingestions, domains);
    this.reports = new ReportReader(context);
    this.failures = new FailureReports(context, failures);
    this.alerts = new DomainAlerts(raised, context.findDomain);
    this.sources = new SourceReader(context);
    this.ownHosts = new OwnHostReader(context);
    this.sourceAddresses = new SourceAddressReader(context);
    this.records = new DmarcRecordReader(context);
    this.acceptedReporters = new AcceptedReporters(context, reporters);
    this.classifier = new SourceClassifier(context, context.rollups);
    this.recordHistory = recordHistory;
    this.reading = new DmarcReading({
      ...context,
      histories: domains,
      alerts: raised,
      readHealth: (number) => health.readHealth(number),
    });
  }
}
