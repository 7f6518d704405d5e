import type { AcceptedReporters } from "../../dmarc/insight/queries/accepted-reporters.ts";
import type { Domains } from "../../dmarc/records/domains/domains.ts";
import type { DomainAlerts } from "../../dmarc/alerts/rules/domain-alerts.ts";
import type { DmarcOverview } from "../../dmarc/alerts/overview/dmarc-overview.ts";
import type { DmarcReading } from "../../dmarc/alerts/overview/dmarc-reading.ts";
import type { DmarcRecordReader } from "../../dmarc/insight/queries/record-reader.ts";
import type { SourceReader } from "../../dmarc/insight/queries/source-reader.ts";
import type { SourceClassifier } from "../../dmarc/insight/sources/classify-sources.ts";
import type { UrlPolicy } from "../../foundation/net/fetch-url.ts";

/** What the pages of domains, sources and alerts call. */
export interface DmarcPageUseCases {
  readonly domains: Domains;
  readonly overview: DmarcOverview;
  readonly reading: DmarcReading;
  readonly sources: SourceReader;
  readonly records: DmarcRecordReader;
  readonly classifier: SourceClassifier;
  readonly acceptedReporters: AcceptedReporters;
  readonly alerts: DomainAlerts;
  /** Which webhook URLs are allowed. */
  readonly rules: UrlPolicy;
  /** Whether the service sends mail. */
  readonly hasMail: boolean;
}
