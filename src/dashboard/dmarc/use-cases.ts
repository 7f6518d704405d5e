import type { Clock } from "../../foundation/base/clock.ts";
import type { Advice } from "../../dmarc/insight/advice/advice-schema.ts";
import type { DomainRow } from "../../dmarc/records/domains/domain-store.ts";
import type { Domains } from "../../dmarc/records/domains/domains.ts";
import type { HealthRuns } from "../../dmarc/insight/health/health-runs.ts";
import type { IngestionReader } from "../../dmarc/reports/ingest/ingestion-reader.ts";
import type { Ingestions } from "../../dmarc/reports/ingest/ingestions.ts";
import type { ReportUploads } from "../../dmarc/reports/ingest/report-uploads.ts";
import type { FailureReports } from "../../dmarc/insight/queries/failure-reports.ts";
import type { ReportReader } from "../../dmarc/insight/queries/report-reader.ts";

/** What the pages about records, health and reports use. */
export interface DmarcReportUseCases {
  readonly clock: Clock;
  readonly domains: Domains;
  readonly advise: (domain: DomainRow) => Promise<Advice>;
  readonly health: Pick<HealthRuns, "lastOf" | "healthOf">;
  readonly reports: ReportReader;
  readonly failures: FailureReports;
  readonly ingestions: Pick<Ingestions, "retry" | "retryAll">;
  readonly reader: IngestionReader;
  readonly uploads: ReportUploads;
}
