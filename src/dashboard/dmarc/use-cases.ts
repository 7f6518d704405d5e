import type { Clock } from "../../base/clock.ts";
import type { Advice } from "../../dmarc/advice/advice-schema.ts";
import type { DomainRow } from "../../dmarc/domains/domain-store.ts";
import type { Domains } from "../../dmarc/domains/domains.ts";
import type { HealthRuns } from "../../dmarc/health/health-runs.ts";
import type { IngestionReader } from "../../dmarc/ingest/ingestion-reader.ts";
import type { Ingestions } from "../../dmarc/ingest/ingestions.ts";
import type { ReportUploads } from "../../dmarc/ingest/report-uploads.ts";
import type { FailureReports } from "../../dmarc/queries/failure-reports.ts";
import type { ReportReader } from "../../dmarc/queries/report-reader.ts";

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
