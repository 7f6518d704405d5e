import { err, ok, type Result } from "../../../foundation/base/errors.ts";
import { isSameOrganisation } from "../../../foundation/mail/organisational-domain.ts";
import { isDefinite, type DnsOutcome, type DnsResolver, type ResolveOptions } from "../../../foundation/net/dns.ts";
import { dmarcRecordsIn, splitStrings } from "./record.ts";
import { reportAddress } from "./record-tags.ts";

/** The domain cannot be monitored with this report host: the name that receivers would query is too long for the DNS. */
export interface NameTooLong {
  readonly kind: "name_too_long";
  readonly octets: number;
  readonly octetsMax: number;
}

/** Whether receivers may send reports about a domain to our host (RFC 9990 §4). */
export interface Authorisation {
  /**
   * - `authorised`: the record is there.
   * - `not_needed`: the host belongs to the same organization, so receivers do not query.
   * - `missing`: there is certainly no such record.
   * - `indefinite`: the DNS query failed.
   */
  readonly status: "authorised" | "not_needed" | "missing" | "indefinite";
  readonly name: string;
  /** The outcome of the query; null when none was made. */
  readonly outcome: DnsOutcome | null;
  /** The texts found that are DMARC records. */
  readonly observed: readonly string[];
  /** Addresses to which a `rua` in the authorising record sends our reports instead; none where that `rua` names our own address. */
  readonly redirectsTo: readonly string[];
  /** The result in one sentence. */
  readonly message: string;
}

/** A record that the operator publishes once for the report host. */
export interface ServiceRecord {
  readonly host: string;
  readonly type: "TXT" | "MX";
  readonly value: string;
  /** The strings of a TXT record; null for other types. */
  readonly strings: readonly string[] | null;
  readonly purpose: string;
}

/** 255 octets on the wire (RFC 1035 §2.3.4) are 253 in writing. */
const NAME_OCTETS_MAX = 253;
const AUTHORISING_TEXT = "v=DMARC1;";
const UNKNOWN_MAIL_HOST =
  "Delivers mail for the report host to this server. Its public name is not configured, so the record names the report host: set POSTWARDEN_HELO_NAME. An existing MX that points to this server can stay.";

/** The name that a receiver queries before it sends reports about a domain to our host (RFC 9990 §4); both in lower-case A-labels. */
export const authorisationName = (domain: string, reportHost: string): Result<string, NameTooLong> => {
  const name = `${domain}._report._dmarc.${reportHost}`;
  return name.length > NAME_OCTETS_MAX
    ? err({ kind: "name_too_long", octets: name.length, octetsMax: NAME_OCTETS_MAX })
    : ok(name);
};

interface AuthorisationQuery {
  readonly domain: string;
  readonly reportHost: string;
  /** Our reporting address; without it, every `rua` in the record is a redirection. */
  readonly ours?: string;
}

/**
 * Queries the DNS as a receiver does before it sends a report about a domain to our host. A failure is `indefinite`, never `missing`.
 * A `rua` in the record overrides the one of the domain (RFC 9990 §4): reports are redirected unless it names our own address.
 * Never rejects.
 */
export const checkAuthorisation = async (
  resolver: DnsResolver,
  { domain, reportHost, ours }: AuthorisationQuery,
  options: ResolveOptions = {},
): Promise<Result<Authorisation, NameTooLong>> => {
  const named = authorisationName(domain, reportHost);
  if (!named.ok) return named;
  const name = named.value;
  if (isSameOrganisation(domain, reportHost)) {
    const message = `${reportHost} and ${domain} belong to the same organization, so no authorization record is needed.`;
    return ok({ status: "not_needed", name, outcome: null, observed: [], redirectsTo: [], message });
  }
  const { outcome, records } = await resolver.resolve(name, "TXT", options);
  const found = dmarcRecordsIn(records);
  const observed = found.map(({ text }) => text);
  const mailbox = ours === undefined ? null : reportAddress(ours);
  const redirectsTo = found.flatMap(({ values }) => {
    const addresses = values.rua.flatMap(({ address }) => address ?? []);
    return mailbox !== null && addresses.includes(mailbox) ? [] : addresses;
  });
  const status = isDefinite(outcome) ? (found.length > 0 ? "authorised" : "missing") : "indefinite";
  const message = describe({ status, outcome, name, reportHost, texts: records, redirectsTo });
  return ok({ status, name, outcome, observed, redirectsTo, message });
};

/**
 * What the operator publishes once for the report host (lower-case A-labels): the wildcard that authorises reports about every
 * domain, and where mail for the host goes. `mailHost` is the name of this server; null while it is not known: then the
 * report host takes its place, and the purpose says so.
 */
export const serviceRecords = (reportHost: string, mailHost: string | null): readonly ServiceRecord[] => [
  {
    host: `*._report._dmarc.${reportHost}`,
    type: "TXT",
    value: AUTHORISING_TEXT,
    strings: splitStrings(AUTHORISING_TEXT),
    purpose:
      "Authorizes receivers to send reports about any domain to this host. Do not publish records for single domains beside it: the wildcard does not apply below such a name.",
  },
  {
    host: reportHost,
    type: "MX",
    value: `10 ${mailHost ?? reportHost}.`,
    strings: null,
    purpose: mailHost === null ? UNKNOWN_MAIL_HOST : "Delivers mail for the report host to this server.",
  },
];

interface Described extends Pick<Authorisation, "status" | "name" | "redirectsTo"> {
  readonly outcome: DnsOutcome;
  readonly reportHost: string;
  readonly texts: readonly string[];
}

const describe = ({ status, outcome, name, reportHost, texts, redirectsTo }: Described): string => {
  const wildcard = `*._report._dmarc.${reportHost}`;
  if (status === "indefinite") return `The DNS query for TXT ${name} failed (${outcome}).`;
  if (status === "authorised") {
    return redirectsTo.length === 0
      ? `Receivers may send reports to ${reportHost}.`
      : `The record at ${name} redirects the reports to ${redirectsTo.join(", ")}.`;
  }
  if (texts.length > 0) return `The TXT record at ${name} is not a DMARC record; it must be ${AUTHORISING_TEXT}`;
  // RFC 4592 §2.2.2 and §3.3.1: a name that exists only because of one below it overrides the wildcard.
  return outcome === "no_data"
    ? `${name} exists without a TXT record: because of a record at or below that name, the wildcard ${wildcard} does not apply.`
    : `${name} does not exist. Publish ${wildcard} TXT "${AUTHORISING_TEXT}".`;
};
