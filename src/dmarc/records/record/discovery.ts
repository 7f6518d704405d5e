import { type DnsOutcome, type DnsResolver, type ResolveOptions, isDefinite } from "../../../foundation/net/dns.ts";
import { type ValidRecord, dmarcRecordsIn, type Published, readPublished, recordHost, splitStrings } from "./record.ts";
import type { AlignmentMode, DmarcPolicy } from "./record-values.ts";
import { err, ok, type Result } from "../../../foundation/base/errors.ts";
import { isSameOrganisation } from "../../../foundation/mail/organisational-domain.ts";
import { reportAddress } from "./record-tags.ts";

/** One query of a discovery, in the order of the queries. */
export interface QueriedRecord {
  /** The `_dmarc` name. */
  readonly host: string;
  readonly outcome: DnsOutcome;
  /** The texts there that are DMARC records; more than one counts as none (RFC 9989 §4.10). */
  readonly records: readonly string[];
  /** For how many more seconds resolvers may keep this response. */
  readonly ttlS: number;
}

/** The policy that receivers apply to mail from one domain. */
export interface EffectivePolicy {
  /** For the domain itself: its own `p`, or the `sp` of the record it inherits from. */
  readonly p: DmarcPolicy;
  /** For existing names below the domain. */
  readonly sp: DmarcPolicy;
  /** For names below the domain that do not exist. */
  readonly np: DmarcPolicy;
  readonly adkim: AlignmentMode;
  readonly aspf: AlignmentMode;
  /** With `y` receivers are queried to relax all of it by one step. */
  readonly t: "y" | "n";
  /** The domain has the record itself. */
  readonly own: boolean;
  /** The domain whose record applies; null when it is the domain's own. */
  readonly inheritedFrom: string | null;
}

/** A record that applies to a domain without being its own. */
export interface InheritedRecord {
  readonly from: string;
  readonly record: ValidRecord;
  readonly policy: EffectivePolicy;
}

/** The result of a discovery. `published` is what the domain's own `_dmarc` name has, whatever applies. */
export type PolicyDiscovery = { readonly published: Published; readonly queried: readonly QueriedRecord[] } & (
  | { readonly kind: "own"; readonly record: ValidRecord; readonly policy: EffectivePolicy }
  | ({ readonly kind: "inherited" } & InheritedRecord)
  | { readonly kind: "none" }
  /** A query failed on which the policy depends. */
  | { readonly kind: "indefinite"; readonly host: string; readonly outcome: DnsOutcome }
);

/** RFC 9989 §4.10: the queries of a tree walk at most, the domain itself included. */
export const QUERIES_MAX = 8;

/**
 * Finds the DMARC policy of a domain (lower-case A-labels): its own record, else the one of its organizational domain, else the
 * one of the public suffix above it, by the tree walk of RFC 9989 §4.10. Several records at a name count as none. Never rejects; a
 * DNS failure before the end of the walk makes the outcome `indefinite`, never `none`.
 */
export const discoverPolicy = async (
  resolver: DnsResolver,
  domain: string,
  options: ResolveOptions = {},
): Promise<PolicyDiscovery> => {
  const queried: QueriedRecord[] = [];
  const query = async (name: string): Promise<DnsAnswer> => {
    const host = recordHost(name);
    const reply = await resolver.resolve(host, "TXT", options);
    const published = readPublished(reply);
    const records = published.kind === "failure" ? [] : dmarcRecordsIn(published.texts);
    queried.push({ host, outcome: reply.outcome, records: records.map(({ text }) => text), ttlS: reply.ttlS });
    return { name, host, published, record: records.length === 1 ? (records[0] ?? null) : null };
  };

  const start = await query(domain);
  const { published } = start;
  if (start.record !== null) {
    return { kind: "own", record: start.record, policy: ownPolicy(start.record), published, queried };
  }
  const failure = failureOf(start);
  if (failure !== null) return { kind: "indefinite", ...failure, published, queried };

  const found: Ancestor[] = [];
  for (const name of walkTargets(domain)) {
    const answer = await query(name);
    const failed = failureOf(answer);
    if (failed !== null) return { kind: "indefinite", ...failed, published, queried };
    if (answer.record === null) continue;
    found.push({ name, record: answer.record });
    if (answer.record.values.psd !== "u") break;
  }
  const applying = selectAncestor(domain, found);
  if (applying === null) return { kind: "none", published, queried };
  const { name: from, record } = applying;
  return { kind: "inherited", from, record, policy: inheritedPolicy(record, from), published, queried };
};

/**
 * The names that a walk queries after the domain itself, from the longest to the shortest (RFC 9989 §4.10 steps 4 to 8): the parents,
 * of which those with more than seven labels are left out.
 */
export const walkTargets = (domain: string): readonly string[] => {
  const labels = domain.split(".");
  const first = Math.max(1, labels.length - (QUERIES_MAX - 1));
  return labels.slice(first).map((_, index) => labels.slice(first + index).join("."));
};

/**
 * The domain above that declares itself a public suffix (`psd=y`, RFC 9989 §4.10.2): one label below it begins another organization.
 * Looked for up to the organizational domain by the public suffix list. Null for none; undefined when the DNS does not say.
 */
export const findDeclaredSuffix = async (
  resolver: DnsResolver,
  domain: string,
  options: ResolveOptions = {},
): Promise<string | null | undefined> => {
  for (const name of walkTargets(domain).filter((target) => isSameOrganisation(target, domain))) {
    const { outcome, records: texts } = await resolver.resolve(recordHost(name), "TXT", options);
    if (!isDefinite(outcome)) return undefined;
    const records = dmarcRecordsIn(texts);
    const psd = records.length === 1 ? records[0]?.values?.psd : undefined;
    if (psd === "y") return name;
    if (psd === "n") return null;
  }
  return null;
};

interface DnsAnswer {
  readonly name: string;
  readonly host: string;
  readonly published: Published;
  readonly record: ValidRecord | null;
}

interface Ancestor {
  readonly name: string;
  readonly record: ValidRecord;
}

const failureOf = ({ host, published }: DnsAnswer): { host: string; outcome: DnsOutcome } | null => {
  // A name too long for a query cannot have a record: that is definite.
  if (published.kind !== "failure" || published.outcome === "invalid_name") return null;
  return { host, outcome: published.outcome };
};

/**
 * RFC 9989 §4.10.2 and §4.10.1: psd=n marks the organizational domain, psd=y the one above it, else it is the shortest name with a
 * record. The records are those above a domain that has none itself, from the longest name to the shortest.
 */
const selectAncestor = (domain: string, found: readonly Ancestor[]): Ancestor | null => {
  const shortest = found.at(-1);
  if (shortest === undefined) return null;
  if (shortest.record.values.psd !== "y") return shortest;
  const suffixLabels = shortest.name.split(".").length;
  const organisational = domain
    .split(".")
    .slice(-(suffixLabels + 1))
    .join(".");
  return found.find(({ name }) => name === organisational) ?? shortest;
};

const ownPolicy = ({ values: { p, sp, np, adkim, aspf, t } }: ValidRecord): EffectivePolicy => ({
  p,
  sp,
  np,
  adkim,
  aspf,
  t,
  own: true,
  inheritedFrom: null,
});

const inheritedPolicy = (record: ValidRecord, from: string): EffectivePolicy => ({
  ...ownPolicy(record),
  p: record.values.sp,
  own: false,
  inheritedFrom: from,
});

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

/**
 * Queries the DNS as a receiver does before it sends a report about a domain to our host. A failure is `indefinite`, never `missing`.
 * A `rua` in the record overrides the one of the domain (RFC 9990 §4): reports are redirected unless it names our own address.
 * Never rejects.
 */
export const checkAuthorisation = async (
  resolver: DnsResolver,
  {
    domain,
    reportHost,
    ours,
  }: {
    domain: string;
    reportHost: string;
    /** Our reporting address; without it, every `rua` in the record is a redirection. */
    ours?: string;
  },
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

const describe = ({ status, outcome, name, reportHost, texts, redirectsTo }: Described) => {
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
