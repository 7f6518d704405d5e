import type { TargetRow } from "../../blocklist/store.ts";
import type { Owner } from "../../foundation/base/secrets.ts";
import type { Clock } from "../../foundation/base/clock.ts";
import type { Advice } from "../../dmarc/insight/advice/advice-model.ts";
import type { DomainRow } from "../../dmarc/records/domains/domain-store.ts";
import type { ReportShares } from "../../dmarc/records/domains/shares.ts";
import type { Domains } from "../../dmarc/records/domains/domains.ts";
import type { DomainHosting } from "../../dmarc/insight/sts/hosting-routes.ts";
import type { SourceAddressReader } from "../../dmarc/insight/queries/source-address-routes.ts";
import type { DomainTags } from "../../dmarc/tag-routes.ts";
import type { HealthRuns } from "../../dmarc/insight/health/health.ts";
import type { IngestionReader, Ingestions } from "../../dmarc/reports/ingest/ingestions.ts";
import type { ReportUploads } from "../../dmarc/reports/ingest/report-uploads.ts";
import type { FailureReports, ReportReader } from "../../dmarc/insight/queries/report-reader.ts";
import type { AcceptedReporters } from "../../dmarc/insight/queries/accepted-reporters.ts";
import type { DomainAlerts } from "../../dmarc/finding-routes.ts";
import type { DmarcOverview } from "../../dmarc/alerts/overview/dmarc-overview.ts";
import type { DmarcReading } from "../../dmarc/alerts/overview/dmarc-reading.ts";
import type { DmarcRecordReader } from "../../dmarc/insight/queries/record-reader.ts";
import type { RecordHistory } from "../../dmarc/insight/queries/record-history-routes.ts";
import type { OwnHostReader } from "../../dmarc/insight/queries/own-host-routes.ts";
import type { SourceReader } from "../../dmarc/insight/queries/source-routes.ts";
import type { SourceClassifier } from "../../dmarc/insight/sources/source-classifier.ts";
import type { UrlPolicy } from "../../foundation/net/fetch-url.ts";

/** What the pages about records, health and reports use. */
export interface DmarcReportUseCases {
  readonly clock: Clock;
  readonly domains: Domains;
  readonly advise: (domain: DomainRow) => Promise<Advice>;
  readonly health: Pick<HealthRuns, "lastOf" | "healthOf">;
  readonly hosting: DomainHosting;
  readonly reports: ReportReader;
  readonly failures: FailureReports;
  readonly ingestions: Pick<Ingestions, "retry" | "retryAll">;
  readonly reader: IngestionReader;
  readonly uploads: ReportUploads;
}

/** What blocklists say of an address. */
export type WatchedAddress = Pick<TargetRow, "id" | "status" | "listedOn">;

/** What the pages of domains, sources and alerts call. */
export interface DmarcPageUseCases {
  readonly domains: Domains;
  readonly overview: DmarcOverview;
  readonly reading: DmarcReading;
  readonly sources: SourceReader;
  readonly ownHosts: OwnHostReader;
  readonly records: DmarcRecordReader;
  readonly recordHistory: RecordHistory;
  readonly classifier: SourceClassifier;
  readonly acceptedReporters: AcceptedReporters;
  readonly alerts: DomainAlerts;
  readonly shares: ReportShares;
  readonly tags: DomainTags;
  readonly sourceAddresses: SourceAddressReader;
  readonly clock: Clock;
  /** The blocklist target of an address; undefined where the account does not monitor it. */
  readonly findTarget: (caller: Owner, ip: string) => WatchedAddress | undefined;
  /** Which webhook URLs are allowed. */
  readonly rules: UrlPolicy;
  /** Whether the service sends mail. */
  readonly hasMail: boolean;
}
