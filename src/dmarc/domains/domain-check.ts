import type { Clock } from "../../base/clock.ts";
import type { DnsResolver, ResolveOptions } from "../../net/dns.ts";
import { type Authorisation, checkAuthorisation, type NameTooLong } from "../record/authorisation.ts";
import type { Result } from "../../base/errors.ts";
import { type Discovery, discoverPolicy } from "../record/discovery.ts";
import { adviseRecord } from "./dns-advice.ts";
import type { DnsRecordView } from "./domain-schemas.ts";
import type { Check, Seen, StatePolicy } from "./domain-state.ts";
import type { DomainRow } from "./domain-store.ts";
import { dmarcRecordsIn, recordHost } from "../record/record-published.ts";
import { mailtoUri, reportAddress } from "../record/rua.ts";
import { createTestResolver, reportHostFor } from "./test-domains.ts";
import type { Verdict } from "./transition.ts";

/** What one look at the DNS found out about a domain. */
export interface Finding {
  /** One for each of `CHECK_CODES`, in that order. */
  readonly checks: readonly Check[];
  readonly verdict: Verdict;
  /** What was answered definitely. */
  readonly seen: Seen;
  /** What the owner is to publish. */
  readonly dnsRecords: readonly DnsRecordView[];
}

export interface LookOptions {
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
const AUTHORISING_TEXT = "v=DMARC1;";
/** More of a text than this is not kept with every check; a record may have 65,535 octets. */
const SHOWN_CHARACTERS_MAX = 2_048;

/**
 * Looks a domain up as receivers of its mail do: its record, whose policy applies, and whether reports may be sent to us. For test
 * keys nobody is asked. Never rejects for anything that the DNS does; throws when there is no report host.
 */
export const createDomainCheck = ({ resolver, clock, reportHost }: DomainCheckDeps) =>
  async function look(row: Looked, { isSetUp = false, signal }: LookOptions = {}): Promise<Finding> {
    const { domain, mode, token } = row;
    const host = reportHostFor(mode, reportHost);
    if (host === null) throw new Error("a domain cannot be checked without a report host");
    const ours = `${token}@${host}`;
    const asked = mode === "test" ? createTestResolver({ domain, ours, reportHost: host, isSetUp }) : resolver;
    return withDeadline(clock, signal, async (options) => {
      const [discovery, authorisation] = await Promise.all([
        discoverPolicy(asked, domain, options),
        checkAuthorisation(asked, { domain, reportHost: host }, options),
      ]);
      return findingOf({ domain, ours, discovery, authorisation });
    });
  };

export type DomainCheck = ReturnType<typeof createDomainCheck>;

const withDeadline = async <T>(
  clock: Clock,
  outer: AbortSignal | undefined,
  work: (options: ResolveOptions) => Promise<T>,
): Promise<T> => {
  const ending = new AbortController();
  const end = () => ending.abort();
  const cancel = clock.after(LOOK_MS_MAX, end);
  outer?.addEventListener("abort", end);
  if (outer?.aborted) end();
  try {
    return await work({ signal: ending.signal });
  } finally {
    cancel();
    outer?.removeEventListener("abort", end);
  }
};

interface Answers {
  readonly domain: string;
  readonly ours: string;
  readonly discovery: Discovery;
  readonly authorisation: Result<Authorisation, NameTooLong>;
}

const findingOf = ({ domain, ours, discovery, authorisation }: Answers): Finding => {
  const advice = adviseRecord(domain, ours, discovery);
  const expected = advice.value === "" ? null : advice.value;
  const records = recordsOf(discovery);
  const address = addressCheck(domain, ours, discovery);
  const checks = [
    recordCheck(domain, { records, expected, discovery }),
    address,
    authorisation.ok ? authorisationCheck(authorisation.value) : tooLongCheck(authorisation.error),
  ];
  const policy = policyOf(discovery);
  const allowed = authorisation.ok ? allowedOf(authorisation.value) : "missing";
  return {
    checks: checks.map(shorten),
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

const shorten = (check: Check): Check => ({
  ...check,
  observed: shortenText(check.observed),
  expected: shortenText(check.expected),
});

const shortenText = (text: string | null): string | null =>
  text === null || text.length <= SHOWN_CHARACTERS_MAX
    ? text
    : `${text.slice(0, SHOWN_CHARACTERS_MAX).toWellFormed()}…`;

const verdictOf = (checks: readonly Check[]): Verdict => {
  if (checks.some(({ ok }) => ok === false)) return "bad";
  return checks.every(({ ok }) => ok === true) ? "good" : "indefinite";
};

/** The texts at the name that are DMARC records; null when the DNS could not say. */
const recordsOf = ({ published }: Discovery): string[] | null =>
  published.kind === "failure" && published.outcome !== "invalid_name"
    ? null
    : dmarcRecordsIn(published.kind === "failure" ? [] : published.texts).map(({ text }) => text);

/** The policy that applies: null when there is none, undefined when the DNS could not say. */
const policyOf = (discovery: Discovery): StatePolicy | null | undefined => {
  if (discovery.kind === "indefinite") return undefined;
  if (discovery.kind === "none") return null;
  const { policy, record } = discovery;
  const { own, inheritedFrom, ...rest } = policy;
  return { ...rest, pct: record.values.pct, own, inherited_from: inheritedFrom };
};

interface RecordFacts {
  readonly records: readonly string[] | null;
  readonly expected: string | null;
  readonly discovery: Discovery;
}

const recordCheck = (domain: string, { records, expected, discovery }: RecordFacts): Check => {
  const host = recordHost(domain);
  const base = { code: "record" as const, expected };
  if (records === null) return { ...base, ok: null, observed: null, message: failureMessage(discovery, host) };
  const observed = records.length === 0 ? null : records.join("\n");
  if (records.length === 1) {
    return { ...base, ok: true, observed, expected: observed, message: `There is one DMARC record at ${host}.` };
  }
  if (records.length > 1) {
    const message = `There are ${records.length} DMARC records at ${host}; receivers then use none. Keep one.`;
    return { ...base, ok: false, observed, message };
  }
  const message =
    discovery.kind === "inherited"
      ? `There is no DMARC record at ${host}; receivers apply the one of ${discovery.from}, and reports are about that domain.`
      : `There is no DMARC record at ${host}.`;
  return { ...base, ok: false, observed, message };
};

const addressCheck = (domain: string, ours: string, discovery: Discovery): Check => {
  const expected = mailtoUri(ours);
  const base = { code: "reporting_address" as const, observed: null, expected };
  const records = recordsOf(discovery);
  if (records === null) return { ...base, ok: null, message: failureMessage(discovery, recordHost(domain)) };
  if (records.length > 1) {
    return { ...base, ok: false, message: "With several records receivers use none, and report to nobody." };
  }
  if (discovery.kind === "own") {
    const { rua } = discovery.record.values;
    const observed = rua.length === 0 ? null : rua.map(({ text }) => text).join(",");
    const isOurs = rua.some(({ address }) => address === reportAddress(ours));
    const message = isOurs ? "The reporting address is in rua." : "The reporting address is not in rua.";
    return { ...base, ok: isOurs, observed, message };
  }
  if (discovery.kind === "inherited") {
    const isThere = discovery.record.values.rua.some(({ address }) => address === reportAddress(ours));
    const message = isThere
      ? `The reporting address is in the record of ${discovery.from}, which ${domain} inherits: such reports are about ${discovery.from}. It must be in a record of ${domain}, or enrol ${discovery.from}.`
      : `${domain} inherits the record of ${discovery.from}; the reporting address must be in a record of its own.`;
    return { ...base, ok: false, message };
  }
  const message = "Without a record there is no rua that could name the reporting address.";
  return { ...base, ok: false, message };
};

const failureMessage = ({ published }: Discovery, host: string): string =>
  `The DNS could not say what stands at ${host} (${published.kind === "failure" ? published.outcome : "no answer"}).`;

/** A record that turns reports elsewhere allows receivers to report, but not to us. */
const allowedOf = ({ status, redirectsTo }: Authorisation): Seen["authorisation"] => {
  if (status === "indefinite") return undefined;
  return status === "authorised" && redirectsTo.length > 0 ? "redirected" : status;
};

const authorisationCheck = (authorisation: Authorisation): Check => {
  const { status, observed, message } = authorisation;
  const allowed = allowedOf(authorisation);
  return {
    code: "authorisation",
    ok: allowed === undefined ? null : allowed === "authorised" || allowed === "not_needed",
    observed: observed.length === 0 ? null : observed.join("\n"),
    expected: status === "not_needed" ? null : AUTHORISING_TEXT,
    message,
  };
};

const tooLongCheck = ({ octets, octetsMax }: NameTooLong): Check => ({
  code: "authorisation",
  ok: false,
  observed: null,
  expected: AUTHORISING_TEXT,
  message: `The name that receivers would ask has ${octets} octets; the DNS allows ${octetsMax}.`,
});
