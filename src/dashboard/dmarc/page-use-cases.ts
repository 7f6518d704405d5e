import type { AcceptedReporters } from "../../dmarc/queries/accepted-reporters.ts";
import type { Domains } from "../../dmarc/domains/domains.ts";
import type { DomainAlerts } from "../../dmarc/alerts/domain-alerts.ts";
import type { DmarcOverview } from "../../dmarc/overview/dmarc-overview.ts";
import type { DmarcReading } from "../../dmarc/overview/dmarc-reading.ts";
import type { DmarcRecordReader } from "../../dmarc/queries/record-reader.ts";
import type { SourceReader } from "../../dmarc/queries/source-reader.ts";
import type { SourceClassifier } from "../../dmarc/sources/classify-sources.ts";
import type { UrlPolicy } from "../../net/fetch-url.ts";

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
