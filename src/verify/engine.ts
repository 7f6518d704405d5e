import { type Clock, isoTime } from "../base/clock.ts";
import { type OnBehalfOf, OPERATOR } from "../base/on-behalf-of.ts";
import type { Random } from "../base/secrets.ts";
import { type Address, normalizeLoosely, parseAddress } from "../mail/address.ts";
import { readAddressCell } from "../mail/address-in-cell.ts";
import { type AddressProblem, describeProblem } from "../mail/address-problem.ts";
import type { Channel } from "../probe/outages.ts";
import type { DnsblCheck } from "./dnsbl-evidence.ts";
import type { DomainLookup } from "./domain-evidence.ts";
import type { Attempt, DomainEvidence, Evidence, PlannedRetry } from "./evidence.ts";
import { noFinding } from "./findings.ts";
import { isDisposable, isRoleAccount } from "./lists.ts";
import type { MailboxProber } from "./mailbox-evidence.ts";
import { randomLocalPart } from "./random-recipient.ts";
import { suggestAddress } from "./suggestion.ts";
import { latestFinding } from "./verdict.ts";

export interface VerificationEngineDeps {
  readonly clock: Clock;
  readonly random: Random;
  readonly lookUpDomain: DomainLookup;
  readonly probeMailbox: MailboxProber;
  /** Asks the blocklists; null when that signal is switched off. */
  readonly checkBlocklists: DnsblCheck | null;
  /** The operator's own list; null where there is none. */
  readonly matchSuppression: ((normalizedEmail: string) => string | null) | null;
  /** Waits between tries after a temporary refusal, in seconds; as many retries as there are. */
  readonly retryWaitsS: readonly number[];
}

/** How long a planned retry waits. */
export const waitMsOf = ({ planned_at, due_at }: PlannedRetry): number => Date.parse(due_at) - Date.parse(planned_at);

/** A server's hint is followed up to this; longer ones are not worth a pending check. */
const HINT_S_MAX = 7_200;
/** Greylisting compares with seconds: coming back on the dot can be a moment early. */
const HINT_MARGIN_S = 1;

const NOTHING_YET = { domain: null, toxic: null, dnsbl: null, random_recipient: null, conclusion: null };

const BEGINNING = { ...NOTHING_YET, attempts: [], retries: [] };

const evidenceOfNone = (submitted: string, error: AddressProblem, suggestion: string | null): Evidence => {
  const [normalized_email, problem] = [normalizeLoosely(submitted), describeProblem(error)];
  const unlisted = { suggestion, role_account: null, disposable: null };
  return { address: { submitted, normalized_email, read_as: null, problem, ...unlisted }, ...BEGINNING };
};

const evidenceOf = (submitted: string, address: Address, readAs: string | null): Evidence => ({
  address: {
    submitted,
    normalized_email: address.normalized,
    read_as: readAs,
    problem: null,
    suggestion: suggestAddress(address),
    role_account: isRoleAccount(address.localPart),
    disposable: address.literal === null ? isDisposable(address.domain) : null,
  },
  ...BEGINNING,
});

/**
 * The evidence that needs no network: what the text itself and our lists say. Only white space may surround the
 * address; what else can be read as one (`Anna <anna@example.com>`) is suggested.
 */
export const beginEvidence = (submitted: string): Evidence => {
  const parsed = parseAddress(submitted);
  if (parsed.ok) return evidenceOf(submitted, parsed.value, null);
  const read = readAddressCell(submitted);
  return evidenceOfNone(submitted, parsed.error, read.ok ? read.value.text : null);
};

/** `beginEvidence` for a cell of a list, which is read for the address in it. */
export const beginCellEvidence = (submitted: string): Evidence => {
  const read = readAddressCell(submitted);
  if (!read.ok) return evidenceOfNone(submitted, read.error, null);
  const { text, address } = read.value;
  return evidenceOf(submitted, address, text === submitted.trim() ? null : text);
};

const internalFailure = (number: number, at: string): Attempt => ({
  number,
  started_at: at,
  finished_at: at,
  dialogues: [],
  finding: { ...noFinding(null), reading: "internal" },
});

/**
 * What DNS says now, or, where it fails at a retry, the mail hosts that it named before: a server that greylisted us is
 * not left waiting because of a resolver.
 */
const latestDomain = (now: DomainEvidence, before: DomainEvidence | null): DomainEvidence =>
  (now.outcome === "dns_error" || now.outcome === "local_failure") && before?.outcome === "mail_hosts"
    ? { ...before, questions: now.questions }
    : now;

/** DNS outcomes that may be others in a moment; what is wrong with the domain's records themselves stays. */
const DNS_FAILURES: ReadonlySet<string> = new Set([
  ...["servfail", "refused", "timeout", "malformed", "network_error", "unconfirmed"],
]);
/** What stopped us from dialling, of what may be over at the next try. */
const LOCAL_RULES: ReadonlySet<string> = new Set(["local_failure", "proxy_failed"]);

/**
 * Where the latest attempt got no answer from anybody, so that an outage may be behind it; null when it was answered,
 * or when it failed for a bug.
 */
export const unansweredAt = ({ domain, attempts }: Evidence): Channel | null => {
  if (domain?.outcome === "local_failure") return "dns_sockets";
  if (domain?.outcome === "dns_error")
    return domain.questions.some(({ outcome }) => DNS_FAILURES.has(outcome)) ? "dns" : null;
  const latest = attempts.at(-1)?.finding;
  if (domain?.outcome !== "mail_hosts" || latest === undefined) return null;
  if (latest.reading === "unreachable") return "smtp";
  return latest.reading === "internal" && LOCAL_RULES.has(latest.rule ?? "") ? "egress" : null;
};

/** Why the evidence wants another try, and the server's own word on when; null when it does not. */
const reasonToRetry = (evidence: Evidence, isOutage: boolean): { reason: string; hintS: number | null } | null => {
  const channel = unansweredAt(evidence);
  const finding = latestFinding(evidence);
  if (finding?.retryable) {
    if (evidence.domain?.outcome !== "mail_hosts" || evidence.domain.unverifiable_provider !== null) return null;
    return { reason: finding.reading, hintS: finding.retry_hint_s };
  }
  if (channel === "dns") return { reason: "dns_error", hintS: null };
  if (channel === "dns_sockets" || channel === "egress") return { reason: "local_failure", hintS: null };
  return channel === "smtp" && isOutage ? { reason: "smtp_unreachable", hintS: null } : null;
};

/** Gathers evidence, attempt by attempt. Keeps nothing between calls: everything is in the evidence. */
export const createVerificationEngine = (deps: VerificationEngineDeps) => {
  const { clock, random, lookUpDomain, probeMailbox, checkBlocklists, matchSuppression, retryWaitsS } = deps;

  return {
    /** One more attempt: asks DNS and, if there is a mail host, the mail hosts. Never rejects for what others do. */
    async attempt(before: Evidence, onBehalfOf: OnBehalfOf = OPERATOR): Promise<Evidence> {
      const parsed = parseAddress(before.address.read_as ?? before.address.submitted);
      if (!parsed.ok) return before;
      const address = parsed.value;
      const toxic = matchSuppression === null ? null : { entry: matchSuppression(address.normalized) };
      const domain = latestDomain(await lookUpDomain(address, onBehalfOf), before.domain);
      if (domain.outcome !== "mail_hosts") return { ...before, toxic, domain };
      const { attempts } = before;
      const randomRecipient = before.random_recipient ?? `${randomLocalPart(random)}@${address.domain}`;
      const number = attempts.length + 1;
      const previousSession = attempts.at(-1)?.dialogues.at(-1) ?? null;
      const [attempt, dnsbl] = await Promise.all([
        probeMailbox({ address, domain, randomRecipient, number, previousSession, onBehalfOf }),
        before.dnsbl ?? checkBlocklists?.(domain) ?? null,
      ]);
      return { ...before, toxic, domain, random_recipient: randomRecipient, dnsbl, attempts: [...attempts, attempt] };
    },

    /**
     * The next try that the evidence asks for, or null when the matter is settled or the tries are used up. A mail host
     * that could not be reached is asked again only in an outage.
     */
    planRetry(evidence: Evidence, isOutage = false): PlannedRetry | null {
      const wanted = reasonToRetry(evidence, isOutage);
      const scheduledS = retryWaitsS[evidence.retries.length];
      if (wanted === null || scheduledS === undefined) return null;
      const { reason, hintS } = wanted;
      const isHinted = hintS !== null && hintS <= HINT_S_MAX;
      const waitS = isHinted ? hintS + HINT_MARGIN_S : scheduledS;
      const nowMs = clock.nowMs();
      return {
        reason,
        planned_at: isoTime(nowMs),
        due_at: isoTime(nowMs + waitS * 1000),
        waited_for: isHinted ? "server_hint" : "schedule",
      };
    },

    /** No retry is planned for later than this from now, in milliseconds. */
    longestWaitMs: Math.max(HINT_S_MAX + HINT_MARGIN_S, ...retryWaitsS) * 1000,

    /** The evidence of a check that failed on our side. */
    failed: (evidence: Evidence): Evidence => ({
      ...evidence,
      attempts: [...evidence.attempts, internalFailure(evidence.attempts.length + 1, isoTime(clock.nowMs()))],
    }),
  };
};

export type VerificationEngine = ReturnType<typeof createVerificationEngine>;
