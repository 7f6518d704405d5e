import { isoTime, type Clock } from "../foundation/base/clock.ts";
import type { Channel } from "./smtp/outages.ts";
import type { Evidence, PlannedRetry } from "./evidence.ts";
import { isRetriedOnce } from "./replies.ts";
import { latestFinding } from "./verdict.ts";

/** A server's retry hint is followed up to this; longer ones are not worth a pending verification. */
const HINT_S_MAX = 7_200;
/** Greylisting compares whole seconds: a retry at exactly the hinted time can be too early. */
const HINT_MARGIN_S = 1;
/** No host is left alone longer than this: other accounts wait for it, too. */
const PAUSE_MS_MAX = 10 * 60_000;

/** DNS outcomes that may change within a moment; what is wrong with the domain's own records stays. */
const DNS_FAILURES: ReadonlySet<string> = new Set([
  "servfail",
  "refused",
  "timeout",
  "malformed",
  "network_error",
  "unconfirmed",
]);
/** Local reasons for not connecting that may be over at the next attempt. */
const LOCAL_RULES: ReadonlySet<string> = new Set(["local_failure", "proxy_failed"]);

/**
 * The channel on which the latest attempt got no response, so that an outage may be the cause; null when it got one, or
 * when it failed because of a bug.
 */
export const unansweredChannel = ({ domain, attempts }: Evidence): Channel | null => {
  if (domain?.outcome === "local_failure") return "dns_sockets";
  if (domain?.outcome === "dns_error")
    return domain.dns_queries.some(({ outcome }) => DNS_FAILURES.has(outcome)) ? "dns" : null;
  const latest = attempts.at(-1)?.finding;
  if (domain?.outcome !== "mail_hosts" || latest === undefined) return null;
  if (latest.reading === "unreachable") return "smtp";
  return latest.reading === "internal" && LOCAL_RULES.has(latest.rule ?? "") ? "egress" : null;
};

/** A host that names a blocklist at the retry as well is left alone. */
const wasRetriedOnce = ({ attempts }: Evidence): boolean =>
  attempts.filter(({ finding }) => isRetriedOnce(finding.rule)).length > 1 &&
  isRetriedOnce(attempts.at(-1)?.finding.rule ?? null);

/** Why the evidence calls for another attempt, with the server's own hint when; null when it does not. */
const reasonToRetry = (evidence: Evidence, isOutage: boolean): { reason: string; hintS: number | null } | null => {
  const channel = unansweredChannel(evidence);
  const finding = latestFinding(evidence);
  if (finding?.retryable) {
    if (evidence.domain?.outcome !== "mail_hosts" || evidence.domain.unverifiable_provider !== null) return null;
    if (finding.retry_hint_s === null && wasRetriedOnce(evidence)) return null;
    return { reason: finding.reading, hintS: finding.retry_hint_s };
  }
  if (channel === "dns") return { reason: "dns_error", hintS: null };
  if (channel === "dns_sockets" || channel === "egress") return { reason: "local_failure", hintS: null };
  return channel === "smtp" && isOutage ? { reason: "smtp_unreachable", hintS: null } : null;
};

export interface RetryPolicy {
  readonly nowMs: number;
  /** Waits before the retries, in seconds; as many retries as there are waits. */
  readonly retryWaitsS: readonly number[];
  /** In an outage, an unreachable mail host is tried again as well. */
  readonly isOutage: boolean;
}

const isFollowed = (hintS: number | null): hintS is number => hintS !== null && hintS <= HINT_S_MAX;

/** How long a host is left alone that has shut us out: until the first retry is due. Zero when nothing is retried. */
export const pauseMsOf = (hintS: number | null, [firstS = 0]: readonly number[]): number => {
  const waitS = firstS > 0 && isFollowed(hintS) ? hintS + HINT_MARGIN_S : firstS;
  return Math.min(waitS * 1000, PAUSE_MS_MAX);
};

/** The next attempt that the evidence calls for; null when it is conclusive or the retries are used up. */
export const planRetry = (evidence: Evidence, { nowMs, retryWaitsS, isOutage }: RetryPolicy): PlannedRetry | null => {
  const wanted = reasonToRetry(evidence, isOutage);
  const scheduledS = retryWaitsS[evidence.retries.length];
  if (wanted === null || scheduledS === undefined) return null;
  const { reason, hintS } = wanted;
  const isHinted = isFollowed(hintS);
  const waitS = isHinted ? hintS + HINT_MARGIN_S : scheduledS;
  return {
    reason,
    planned_at: isoTime(nowMs),
    due_at: isoTime(nowMs + waitS * 1000),
    waited_for: isHinted ? "server_hint" : "schedule",
  };
};

/** How long a planned retry waits. */
export const waitMsOf = ({ planned_at, due_at }: PlannedRetry): number => Date.parse(due_at) - Date.parse(planned_at);

/** No retry is planned for later than this from now, in milliseconds. */
export const longestRetryWaitMs = (retryWaitsS: readonly number[]): number =>
  Math.max(HINT_S_MAX + HINT_MARGIN_S, ...retryWaitsS) * 1000;

/** Waits after a bug; when it occurs once more often, the check is given up. */
const BUG_WAITS_MS: readonly number[] = [5_000, 30_000, 120_000];
/** A check that cannot even be given up is tried again this often. */
const LAST_WAIT_MS = 600_000;

interface BugCount {
  readonly times: number;
  /** Null once the wait is over. */
  readonly cancel: (() => void) | null;
}

/** Which checks ended in a bug, how often, and when each is tried again. In memory: a restart tries them all again. */
export class BugBackoff {
  readonly #counts = new Map<string, BugCount>();

  constructor(private readonly clock: Clock) {}

  /** Calls `again` after a wait that grows each time, and returns that wait. */
  schedule(id: string, again: () => void): number {
    const times = (this.#counts.get(id)?.times ?? 0) + 1;
    const waitMs = BUG_WAITS_MS[times - 1] ?? LAST_WAIT_MS;
    const cancel = this.clock.after(waitMs, () => {
      this.#counts.set(id, { times, cancel: null });
      again();
    });
    this.#counts.set(id, { times, cancel });
    return waitMs;
  }

  isWaiting(id: string): boolean {
    return (this.#counts.get(id)?.cancel ?? null) !== null;
  }

  /** The waits are used up: the check is to be given up. */
  isExhausted(id: string): boolean {
    return (this.#counts.get(id)?.times ?? 0) >= BUG_WAITS_MS.length;
  }

  clear(id: string): void {
    this.#counts.delete(id);
  }

  stop(): void {
    for (const { cancel } of this.#counts.values()) cancel?.();
    this.#counts.clear();
  }
}
