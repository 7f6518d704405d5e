import type { Clock } from "../../../foundation/base/clock.ts";
import type { Result } from "../../../foundation/base/errors.ts";
import { withDeadline } from "../../../foundation/base/wait.ts";
import { organisationalDomain } from "../../../foundation/mail/organisational-domain.ts";
import { abortableResolver, isDefinite, type DnsResolver } from "../../../foundation/net/dns.ts";
import {
  checkAuthorisation,
  type Authorisation,
  type NameTooLong,
  discoverPolicy,
  findDeclaredSuffix,
  type PolicyDiscovery,
} from "../record/discovery.ts";
import { adviseRecord, type DnsCheckResult } from "./publication.ts";
import { reportingAddressOf, type DomainPlatforms } from "./domain-platform.ts";
import type { DnsCheck, DnsObservation, StatePolicy, CheckOutcome } from "./domain-state.ts";
import type { DomainRow } from "./domain-store.ts";
import { dmarcRecordsIn, recordFaults, recordHost, ruaTags, type ValidRecord } from "../record/record.ts";
import { mailtoUri, reportAddress } from "../record/record-tags.ts";

export interface DnsCheckOptions {
  /** For test keys: whether the owner has published the record. */
  readonly isSetUp?: boolean;
  /** Aborts the check; queries without a response are unknown. */
  readonly signal?: AbortSignal;
}

export type DomainCheck = (
  row: Pick<DomainRow, "domain" | "mode" | "token">,
  options?: DnsCheckOptions,
) => Promise<DnsCheckResult>;

const TIMEOUT_MS = 20_000;

/**
 * Looks up a domain's record, the policy that applies and whether receivers may send reports to us, as receivers do. Takes at
 * most 20 seconds. Never rejects because of the DNS; throws without a report host.
 */
export const createDomainCheck =
  (clock: Clock, platforms: DomainPlatforms): DomainCheck =>
  async ({ domain, mode, token }, { isSetUp = false, signal } = {}) => {
    const { reportHost, resolverFor } = platforms[mode];
    const ours = reportingAddressOf(platforms[mode], token);
    if (reportHost === null || ours === null) throw new Error("a domain cannot be checked without a report host");
    const resolver = resolverFor({ domain, ours, reportHost, isSetUp });
    return withDeadline(clock, { timeoutMs: TIMEOUT_MS, signal }, async (ending) => {
      const abortable = abortableResolver(resolver, clock, ending);
      const [discovery, authorisation, suffix] = await Promise.all([
        discoverPolicy(abortable, domain).then((found) => applyNonexistentPolicy(abortable, domain, found)),
        checkAuthorisation(abortable, { domain, reportHost, ours }),
        organisationalDomain(domain) === domain ? null : findDeclaredSuffix(abortable, domain),
      ]);
      return resultOf({ domain, ours, discovery, authorisation, suffix });
    });
  };

/**
 * Applies the `np` of an inherited record to a domain that does not exist in the DNS, not its `sp` (RFC 9989 §4.7). The policy
 * must be known before a record is advised, which makes the name exist. Queries only where the two differ; without a definite
 * answer the policy is unknown. Never rejects.
 */
export const applyNonexistentPolicy = async (
  resolver: DnsResolver,
  domain: string,
  discovery: PolicyDiscovery,
): Promise<PolicyDiscovery> => {
  if (discovery.kind !== "inherited" || discovery.policy.p === discovery.policy.np) return discovery;
  const { outcome, cnames } = await resolver.resolve(domain, "A");
  if (!isDefinite(outcome)) {
    const { published, queried } = discovery;
    return { kind: "indefinite", host: domain, outcome, published, queried };
  }
  // An alias exists even if its target does not.
  if (outcome !== "nxdomain" || cnames.length > 0) return discovery;
  return { ...discovery, policy: { ...discovery.policy, p: discovery.policy.np } };
};

interface Answers {
  readonly domain: string;
  readonly ours: string;
  readonly discovery: PolicyDiscovery;
  readonly authorisation: Result<Authorisation, NameTooLong>;
  readonly suffix: string | null | undefined;
}

const resultOf = ({ domain, ours, discovery, authorisation, suffix }: Answers): DnsCheckResult => {
  const authorised = authorisationCheck(authorisation);
  const advice = adviseRecord(domain, { ours, discovery, authorised });
  const expected = advice.value === "" ? null : advice.value;
  const records = recordsOf(discovery);
  const address = addressCheck(domain, ours, discovery);
  const checks = [recordCheck(domain, { records, expected, discovery }), address, authorised];
  const policy = policyOf(discovery);
  const allowed = authorisation.ok ? authorisationOf(authorisation.value) : "missing";
  return {
    checks: checks.map(truncateCheck),
    outcome: outcomeOf(checks),
    observed: {
      ...(records === null ? {} : { records }),
      ...(address.ok === null ? {} : { holds_ours: address.ok }),
      ...(policy === undefined ? {} : { policy }),
      ...(allowed === undefined ? {} : { authorisation: allowed }),
      ...(suffix === undefined ? {} : { declared_suffix: suffix }),
    },
    dnsRecords: [advice],
    recordTtlS: discovery.queried[0]?.ttlS ?? 0,
  };
};

const outcomeOf = (checks: readonly DnsCheck[]): CheckOutcome => {
  if (checks.some(({ ok }) => ok === false)) return "bad";
  return checks.every(({ ok }) => ok === true) ? "good" : "indefinite";
};

/** The policy that applies: null when there is none, undefined without a definite response. */
const policyOf = (discovery: PolicyDiscovery): StatePolicy | null | undefined => {
  if (discovery.kind === "indefinite") return undefined;
  if (discovery.kind === "none") return null;
  const { policy, record } = discovery;
  const { own, inheritedFrom, ...rest } = policy;
  return { ...rest, pct: record.values.pct, own, inherited_from: inheritedFrom };
};

const AUTHORISING_TEXT = "v=DMARC1;";
/** Longer texts are truncated before they are stored; a record may have 65,535 octets. */
const SHOWN_CHARACTERS_MAX = 2_048;

/** A stored check. */
const truncateCheck = (check: DnsCheck): DnsCheck => ({
  ...check,
  observed: shortenText(check.observed),
  expected: shortenText(check.expected),
});

const shortenText = (text: string | null) =>
  text === null || text.length <= SHOWN_CHARACTERS_MAX
    ? text
    : `${text.slice(0, SHOWN_CHARACTERS_MAX).toWellFormed()}…`;

/** The texts at the name that are DMARC records; null without a definite response. */
const recordsOf = ({ published }: PolicyDiscovery) =>
  published.kind === "failure" && published.outcome !== "invalid_name"
    ? null
    : dmarcRecordsIn(published.kind === "failure" ? [] : published.texts).map(({ text }) => text);

/** Whether there is exactly one record, with its faults. */
const recordCheck = (
  domain: string,
  {
    records,
    expected,
    discovery,
  }: {
    records: readonly string[] | null;
    expected: string | null;
    discovery: PolicyDiscovery;
  },
): DnsCheck => {
  const host = recordHost(domain);
  const common = { code: "record" as const, expected };
  if (records === null) return { ...common, ok: null, observed: null, message: failureMessage(discovery, host) };
  const observed = records.length === 0 ? null : records.join("\n");
  if (records.length === 1) {
    const faults = discovery.kind === "own" ? recordFaults(discovery.record) : [];
    return { ...common, ok: true, observed, message: [`There is one DMARC record at ${host}.`, ...faults].join(" ") };
  }
  if (records.length > 1) {
    const message = `There are ${records.length} DMARC records at ${host}; receivers ignore all of them. Keep one.`;
    return { ...common, ok: false, observed, message };
  }
  const message =
    discovery.kind === "inherited"
      ? `There is no DMARC record at ${host}; receivers apply that of ${discovery.from}, and reports are about that domain.`
      : `There is no DMARC record at ${host}.`;
  return { ...common, ok: false, observed, message };
};

/** Whether our address is in the `rua` of the domain's own record. */
const addressCheck = (domain: string, ours: string, discovery: PolicyDiscovery): DnsCheck => {
  const expected = mailtoUri(ours);
  const common = { code: "reporting_address" as const, observed: null, expected };
  const records = recordsOf(discovery);
  if (records === null) return { ...common, ok: null, message: failureMessage(discovery, recordHost(domain)) };
  if (records.length > 1) {
    return { ...common, ok: false, message: "With several records, receivers ignore all of them and send no reports." };
  }
  if (discovery.kind === "own") return { ...common, ...ownAddress(discovery.record, reportAddress(ours)) };
  if (discovery.kind === "inherited") {
    const isThere = discovery.record.values.rua.some(({ address }) => address === reportAddress(ours));
    const message = isThere
      ? `The reporting address is in the record of ${discovery.from}, which ${domain} inherits: those reports are about ${discovery.from}. Publish a record at ${domain}, or enroll ${discovery.from}.`
      : `${domain} inherits the record of ${discovery.from}. Publish a record at ${domain} that contains the reporting address.`;
    return { ...common, ok: false, message };
  }
  const message = "Without a record there is no rua for the reporting address.";
  return { ...common, ok: false, message };
};

/** Of several `rua` tags only the first one counts, and not with every receiver. */
const ownAddress = (record: ValidRecord, ours: string | null): Pick<DnsCheck, "ok" | "observed" | "message"> => {
  const tags = ruaTags(record);
  const holders = tags.map((uris) => uris.some(({ address }) => address === ours));
  const observed = tags.map((uris) => uris.map(({ text }) => text).join(",")).join("\n");
  return {
    ok: holders[0] === true,
    observed: observed.trim() === "" ? null : observed,
    message: whereSentence(holders),
  };
};

const whereSentence = (holders: readonly boolean[]) => {
  const where = holders.indexOf(true);
  if (where === -1) return "The reporting address is not in rua.";
  if (holders.length === 1) return "The reporting address is in rua.";
  return `The reporting address is in rua tag ${where + 1} of ${holders.length}: receivers differ in which one they use, or ignore the record. Put all addresses into one rua tag.`;
};

const failureMessage = ({ published }: PolicyDiscovery, host: string) =>
  `No usable DNS response for ${host} (${published.kind === "failure" ? published.outcome : "no response"}).`;

/** A record with its own `rua` authorizes reports, but sends them to another address. */
const authorisationOf = ({ status, redirectsTo }: Authorisation): DnsObservation["authorisation"] => {
  if (status === "indefinite") return undefined;
  return status === "authorised" && redirectsTo.length > 0 ? "redirected" : status;
};

/** Whether receivers may report to the report host. */
const authorisationCheck = (authorisation: Result<Authorisation, NameTooLong>): DnsCheck => {
  if (!authorisation.ok) return tooLongCheck(authorisation.error);
  const { status, observed, message } = authorisation.value;
  const allowed = authorisationOf(authorisation.value);
  return {
    code: "authorisation",
    ok: allowed === undefined ? null : allowed === "authorised" || allowed === "not_needed",
    observed: observed.length === 0 ? null : observed.join("\n"),
    expected: status === "not_needed" ? null : AUTHORISING_TEXT,
    message,
  };
};

const tooLongCheck = ({ octets, octetsMax }: NameTooLong): DnsCheck => ({
  code: "authorisation",
  ok: false,
  observed: null,
  expected: AUTHORISING_TEXT,
  message: `The name that receivers would look up has ${octets} octets; the DNS allows ${octetsMax}.`,
});
