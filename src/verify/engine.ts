import { type Clock, isoTime } from "../foundation/base/clock.ts";
import { type OnBehalfOf, OPERATOR } from "../foundation/base/on-behalf-of.ts";
import { type Address, parseAddress } from "../foundation/mail/address.ts";
import type { Channel, OutageJudgement } from "./smtp/outages.ts";
import { type AddressClassifier, beginCellEvidence, beginEvidence } from "./address-evidence.ts";
import type { DomainLookup, MailboxProber } from "./domain-evidence.ts";
import type { DnsblEvidence, DomainEvidence, Evidence, PlannedRetry } from "./evidence.ts";
import { noFinding } from "./findings.ts";
import {
  longestRetryWaitMs,
  planRetry,
  unansweredChannel,
  type ConcludedVerification,
  concludeVerification,
} from "./verdict.ts";

/**
 * Everything that a verification queries: lists, DNS, mail hosts. `open.ts` makes the one for live keys,
 * `test-platform.ts` the one for test keys.
 */
export interface VerificationPlatform {
  readonly classify: AddressClassifier;
  /** Matches the operator's suppression list; null where there is none. */
  readonly matchSuppression: ((normalizedEmail: string) => string | null) | null;
  readonly lookUpDomain: DomainLookup;
  readonly probeMailbox: MailboxProber;
  /** Looks the domain up in DNS blocklists; null where that signal is switched off. */
  readonly checkBlocklists: ((domain: DomainEvidence, address: Address) => Promise<DnsblEvidence | null>) | null;
  /** Waits before the retries, in seconds; as many retries as there are waits. */
  readonly retryWaitsS: readonly number[];
  readonly judgeOutage: (channel: Channel) => Promise<OutageJudgement>;
  /** With test keys: results are the same every time. Null where real servers are probed. */
  readonly simulation: Simulation | null;
}

export interface Simulation {
  /** `verified_at` of every result. */
  readonly verifiedAt: string;
  /** How long after the request the result is available; 0: in its response. */
  readonly delayMs: (begun: Evidence) => number;
}

/**
 * What to do with an attempt that got no response from anybody, if that is due to an outage: `conclude` anyway, `retry`
 * by the schedule, or `repeat` the attempt, which does not count.
 */
export type OutagePolicy = "conclude" | "retry" | "repeat";

export interface VerifyOptions<P extends OutagePolicy = OutagePolicy> {
  readonly onBehalfOf?: OnBehalfOf;
  /** Default: `conclude`. */
  readonly duringOutage?: P;
  /** Default: the platform matches its suppression list. */
  readonly toxic?: Evidence["toxic"];
  /** The hard bounce of the address that counts for the account, if there is one. */
  readonly bounce?: Evidence["bounce"];
  /** The attempt ends at the domain: neither mail hosts nor blocklists are queried. */
  readonly onlyDomain?: boolean;
}

/** What an attempt came to: a result, or a retry, which is part of the evidence already. */
export type AttemptedVerification =
  | ({ readonly kind: "concluded" } & ConcludedVerification)
  | { readonly kind: "retry"; readonly evidence: Evidence; readonly retry: PlannedRetry };

/** With the policy `repeat`, an attempt during an outage comes to nothing. */
export interface RepeatedVerification {
  readonly kind: "repeat";
}

/** Verifies addresses, attempt by attempt. Keeps no state between calls: everything is in the evidence. */
export class VerificationEngine {
  /** No retry is planned for later than this from now. */
  readonly longestWaitMs: number;

  constructor(
    private readonly platform: VerificationPlatform,
    private readonly clock: Clock,
  ) {
    this.longestWaitMs = longestRetryWaitMs(platform.retryWaitsS);
  }

  /** Whether results are simulated: nothing is queried or charged, and the evidence can be made again. */
  get isSimulated(): boolean {
    return this.platform.simulation !== null;
  }

  /** The evidence before the first attempt, from a submitted address. */
  begin = (submitted: string): Evidence => beginEvidence(submitted, this.platform.classify);

  /** The evidence before the first attempt, from a cell of a list. */
  beginCell = (submitted: string): Evidence => beginCellEvidence(submitted, this.platform.classify);

  /** How long to wait before the first attempt. */
  firstDelayMs = (begun: Evidence): number => this.platform.simulation?.delayMs(begun) ?? 0;

  /**
   * One attempt at verifying an address, from its syntax to a verdict or a planned retry. `before` is what `begin` or the
   * attempt before returned. Never rejects for what servers do.
   */
  verify(before: Evidence, options?: VerifyOptions<"conclude" | "retry">): Promise<AttemptedVerification>;
  verify(before: Evidence, options: VerifyOptions): Promise<AttemptedVerification | RepeatedVerification>;
  async verify(before: Evidence, options: VerifyOptions = {}): Promise<AttemptedVerification | RepeatedVerification> {
    const { onBehalfOf = OPERATOR, duringOutage = "conclude", onlyDomain = false } = options;
    const { matchSuppression, lookUpDomain, probeMailbox, checkBlocklists } = this.platform;

    // Syntax: a text that is not an address is concluded at once.
    const parsed = parseAddress(before.address.read_as ?? before.address.submitted);
    if (!parsed.ok || before.address.problem !== null) return this.#concludeOrRetry(before, false);
    const address = parsed.value;

    // The operator's suppression list.
    const toxic = options.toxic ?? (matchSuppression && { entry: matchSuppression(address.normalized) });

    // The domain: MX records, their addresses, and which of these may be connected to.
    const domain = latestDomain(await lookUpDomain(address, onBehalfOf), before.domain);

    // The mailbox: RCPT TO at the mail hosts by preference. Meanwhile, the DNS blocklists.
    const { attempts, random_recipient: randomRecipient } = before;
    const previousSession = attempts.at(-1)?.sessions.at(-1) ?? null;
    const probe = { address, domain, randomRecipient, number: attempts.length + 1, previousSession, onBehalfOf };
    const [mailbox, dnsbl] = await Promise.all([
      domain.outcome === "mail_hosts" && !onlyDomain ? probeMailbox(probe) : null,
      before.dnsbl ?? (onlyDomain ? null : (checkBlocklists?.(domain, address) ?? null)),
    ]);
    const found = { ...before, toxic, bounce: options.bounce ?? null, domain, dnsbl };
    const evidence =
      mailbox === null
        ? found
        : { ...found, random_recipient: mailbox.randomRecipient, attempts: [...attempts, mailbox.attempt] };

    // The verdict; or a retry, where a later attempt may find out more.
    const policy = await this.#outagePolicy(evidence, duringOutage);
    return policy === "repeat" ? { kind: "repeat" } : this.#concludeOrRetry(evidence, policy === "retry");
  }

  /** The evidence of a verification that needs no real server, and is to end at once; null for every other. */
  async verifyAtOnce(begun: Evidence): Promise<Evidence | null> {
    if (begun.address.problem !== null) return begun;
    return this.isSimulated && this.firstDelayMs(begun) === 0 ? this.reproduce(begun) : null;
  }

  /** The evidence of a completed verification that was not stored: made again where it is simulated, else its start. */
  async reproduce(begun: Evidence): Promise<Evidence> {
    if (!this.isSimulated) return begun;
    const verified = await this.verify(begun);
    return verified.kind === "concluded" ? verified.evidence : begun;
  }

  /** The result of the evidence. `atMs` is `verified_at` where results are not simulated. */
  conclude(evidence: Evidence, atMs = this.clock.nowMs()): ConcludedVerification {
    return concludeVerification(evidence, this.platform.simulation?.verifiedAt ?? isoTime(atMs));
  }

  /** The attempt that ended in a bug of ours: `internal_error`, unless an earlier attempt gives a reason to retry. */
  fail(before: Evidence): AttemptedVerification {
    const at = isoTime(this.clock.nowMs());
    const number = before.attempts.length + 1;
    const finding = { ...noFinding(null), reading: "internal" as const };
    const attempt = { number, started_at: at, finished_at: at, sessions: [], finding };
    return this.#concludeOrRetry({ ...before, attempts: [...before.attempts, attempt] }, false);
  }

  #concludeOrRetry(evidence: Evidence, isOutage: boolean): AttemptedVerification {
    const plan = { nowMs: this.clock.nowMs(), retryWaitsS: this.platform.retryWaitsS, isOutage };
    const retry = planRetry(evidence, plan);
    if (retry === null) return { kind: "concluded", ...this.conclude(evidence) };
    return { kind: "retry", evidence: { ...evidence, retries: [...evidence.retries, retry] }, retry };
  }

  /** Applies the caller's policy if the attempt got no response and that is due to an outage; else `conclude`. */
  async #outagePolicy(evidence: Evidence, policy: OutagePolicy): Promise<OutagePolicy> {
    const channel = policy === "conclude" ? null : unansweredChannel(evidence);
    if (channel === null) return "conclude";
    const judging = this.platform.judgeOutage(channel);
    if (policy === "repeat") return (await judging) === "believed" ? "conclude" : "repeat";
    // Failures of DNS and of this machine are retried anyway: the judgement need not be awaited.
    if (channel !== "smtp") return "conclude";
    const judged = await judging;
    // While it is open, as after a restart in an outage, a verification that was retried before is retried again.
    return judged === "outage" || (judged === "open" && evidence.retries.length > 0) ? "retry" : "conclude";
  }
}

/**
 * What DNS says now or, where it fails at a retry, the mail hosts that it named before: a failing resolver must not end
 * the wait for a server that greylisted us.
 */
const latestDomain = (now: DomainEvidence, before: DomainEvidence | null): DomainEvidence =>
  (now.outcome === "dns_error" || now.outcome === "local_failure") && before?.outcome === "mail_hosts"
    ? { ...before, dns_queries: now.dns_queries }
    : now;
