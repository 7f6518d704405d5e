import type { Clock } from "../../base/clock.ts";
import { abortableResolver, type DnsResolver } from "../../net/dns.ts";
import { type Authorisation, checkAuthorisation, type NameTooLong } from "../record/authorisation.ts";
import type { Result } from "../../base/errors.ts";
import { type PolicyDiscovery, discoverPolicy } from "../record/discovery.ts";
import {
  addressCheck,
  authorisationOf,
  authorisationCheck,
  recordCheck,
  recordsOf,
  truncateCheck,
} from "./dns-checks.ts";
import { adviseRecord } from "./dns-advice.ts";
import type { DnsRecordView } from "./domain-schemas.ts";
import type { DnsCheck, DnsObservation, StatePolicy } from "./domain-state.ts";
import type { DomainRow } from "./domain-store.ts";
import { applyNonexistentPolicy } from "./existence.ts";
import { createTestResolver, reportHostFor } from "./test-domains.ts";
import type { CheckOutcome } from "./domain-status.ts";
import { withDeadline } from "../../base/wait.ts";

/** What one look at the DNS found out about a domain. */
export interface DnsCheckResult {
  /** One for each of `CHECK_CODES`, in that order. */
  readonly checks: readonly DnsCheck[];
  readonly verdict: CheckOutcome;
  /** What was answered definitely. */
  readonly seen: DnsObservation;
  /** What the owner is to publish. */
  readonly dnsRecords: readonly DnsRecordView[];
}

export interface DnsCheckOptions {
  /** For test keys: whether to find what is there once the owner has done what we asked for. */
  readonly isSetUp?: boolean;
  /** Ends the look; what is not answered by then is unknown. */
  readonly signal?: AbortSignal;
}

export interface DomainCheckDeps {
  readonly resolver: DnsResolver;
  readonly clock: Clock;
  /** Where reports go to, in lower-case A-labels; null when the service receives none. */
  readonly reportHost: string | null;
}

type Looked = Pick<DomainRow, "domain" | "mode" | "token">;

/** However slow the DNS is, a look is over after this. */
const LOOK_MS_MAX = 20_000;

/**
 * Looks a domain up as receivers of its mail do: its record, whose policy applies, and whether reports may be sent to us. For test
 * keys nobody is asked. Never rejects for anything that the DNS does; throws when there is no report host.
 */
export const createDomainCheck = ({ resolver, clock, reportHost }: DomainCheckDeps) =>
  async function look(row: Looked, { isSetUp = false, signal }: DnsCheckOptions = {}): Promise<DnsCheckResult> {
    const { domain, mode, token } = row;
    const host = reportHostFor(mode, reportHost);
    if (host === null) throw new Error("a domain cannot be checked without a report host");
    const ours = `${token}@${host}`;
    const asked = mode === "test" ? createTestResolver({ domain, ours, reportHost: host, isSetUp }) : resolver;
    return withDeadline(clock, { timeoutMs: LOOK_MS_MAX, signal }, async (ending) => {
      const patient = abortableResolver(asked, clock, ending);
      const [discovery, authorisation] = await Promise.all([
        discoverPolicy(patient, domain).then((found) => applyNonexistentPolicy(patient, domain, found)),
        checkAuthorisation(patient, { domain, reportHost: host, ours }),
      ]);
      return findingOf({ domain, ours, discovery, authorisation });
    });
  };

export type DomainCheck = ReturnType<typeof createDomainCheck>;

interface Answers {
  readonly domain: string;
  readonly ours: string;
  readonly discovery: PolicyDiscovery;
  readonly authorisation: Result<Authorisation, NameTooLong>;
}

const findingOf = ({ domain, ours, discovery, authorisation }: Answers): DnsCheckResult => {
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
    verdict: verdictOf(checks),
    seen: {
      ...(records === null ? {} : { records }),
      ...(address.ok === null ? {} : { holds_ours: address.ok }),
      ...(policy === undefined ? {} : { policy }),
      ...(allowed === undefined ? {} : { authorisation: allowed }),
    },
    dnsRecords: [advice],
  };
};

const verdictOf = (checks: readonly DnsCheck[]): CheckOutcome => {
  if (checks.some(({ ok }) => ok === false)) return "bad";
  return checks.every(({ ok }) => ok === true) ? "good" : "indefinite";
};

/** The policy that applies: null when there is none, undefined when the DNS could not say. */
const policyOf = (discovery: PolicyDiscovery): StatePolicy | null | undefined => {
  if (discovery.kind === "indefinite") return undefined;
  if (discovery.kind === "none") return null;
  const { policy, record } = discovery;
  const { own, inheritedFrom, ...rest } = policy;
  return { ...rest, pct: record.values.pct, own, inherited_from: inheritedFrom };
};
