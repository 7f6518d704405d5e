import type { Clock } from "../../../foundation/base/clock.ts";
import type { Result } from "../../../foundation/base/errors.ts";
import { withDeadline } from "../../../foundation/base/wait.ts";
import { abortableResolver, type DnsResolver, isDefinite } from "../../../foundation/net/dns.ts";
import { type Authorisation, checkAuthorisation, type NameTooLong } from "../record/authorisation.ts";
import { discoverPolicy, type PolicyDiscovery } from "../record/discovery.ts";
import { adviseRecord } from "./dns-advice.ts";
import {
  addressCheck,
  authorisationCheck,
  authorisationOf,
  recordCheck,
  recordsOf,
  truncateCheck,
} from "./dns-checks.ts";
import { type DomainPlatforms, reportingAddressOf } from "./domain-platform.ts";
import type { DnsRecordView } from "./dns-record-schema.ts";
import type { DnsCheck, DnsObservation, StatePolicy } from "./domain-state.ts";
import type { CheckOutcome } from "./domain-status.ts";
import type { DomainRow } from "./domain-store.ts";

/** The result of one check of a domain's DNS. */
export interface DnsCheckResult {
  /** One for each of `CHECK_CODES`, in that order. */
  readonly checks: readonly DnsCheck[];
  readonly outcome: CheckOutcome;
  /** The definite DNS responses. */
  readonly observed: DnsObservation;
  /** The record that the owner must publish. */
  readonly dnsRecords: readonly DnsRecordView[];
  /** For how many seconds resolvers may keep what they have at the `_dmarc` name; 0 when that is not known. */
  readonly recordTtlS: number;
}

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
      const [discovery, authorisation] = await Promise.all([
        discoverPolicy(abortable, domain).then((found) => applyNonexistentPolicy(abortable, domain, found)),
        checkAuthorisation(abortable, { domain, reportHost, ours }),
      ]);
      return resultOf({ domain, ours, discovery, authorisation });
    });
  };

/**
 * Applies the `np` of an inherited record to a domain that does not exist in the DNS, not its `sp` (RFC 9989 §4.7). That must be
 * known before a record is advised, which makes the name exist. Queries only where the two differ; without a definite answer the
 * policy is unknown. Never rejects.
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
}

const resultOf = ({ domain, ours, discovery, authorisation }: Answers): DnsCheckResult => {
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
