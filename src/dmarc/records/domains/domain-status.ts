import type { DomainRow, DomainStatus } from "./domain-store.ts";

/** What started a check: the enrolment, the schedule, or a user. */
export type Trigger = "enrolled" | "scheduled" | "manual";
/** `bad`: a check failed. `indefinite`: none failed, but a query got no response. */
export type CheckOutcome = "good" | "bad" | "indefinite";

export type StatusFacts = Pick<DomainRow, "id" | "mode" | "status" | "badSinceMs" | "createdAtMs">;

export interface StatusTransition {
  readonly status: DomainStatus;
  /** When the first bad outcome was seen that has not changed the status yet. */
  readonly badSinceMs: number | null;
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** A bad scheduled check counts when a second one this much later confirms it: one name server may be behind the others. */
export const CONFIRMATION_MS = 30 * MINUTE_MS;
/** When the confirming check runs; a little later, so that it is never too early. */
const CONFIRMING_CHECK_MS = 35 * MINUTE_MS;
const RETRY_MS = 30 * MINUTE_MS;
const REGULAR_MS = DAY_MS;
/** When an enforced policy lapses, forged mail is delivered immediately. */
const ENFORCED_MS_MIN = HOUR_MS;
/** Checks of enforced domains per hour, all together; with more domains each is checked less often. */
const ENFORCED_CHECKS_PER_HOUR_MAX = 6_000;
/** While the owner is about to publish the record. */
const PENDING_MS = HOUR_MS;
const PENDING_DAYS = 14;
const JITTER_SHARE = 0.05;
/** Domains of test keys are never due: the last year that ISO 8601 can write with four digits. */
export const NEVER_CHECKED_MS = Date.UTC(9999, 0, 1);

/** The status of a domain after a check (contract §6). Pure. */
export const nextStatus = (
  { status, badSinceMs }: Pick<StatusFacts, "status" | "badSinceMs">,
  outcome: CheckOutcome,
  { trigger, nowMs }: { readonly trigger: Trigger; readonly nowMs: number },
): StatusTransition => {
  if (outcome === "indefinite" || trigger === "enrolled") return { status, badSinceMs };
  if (outcome === "good") return { status: "active", badSinceMs: null };
  if (trigger === "manual") return { status: "action_required", badSinceMs: null };
  if (status !== "active") return { status, badSinceMs: null };
  if (badSinceMs === null) return { status, badSinceMs: nowMs };
  return nowMs - badSinceMs >= CONFIRMATION_MS
    ? { status: "action_required", badSinceMs: null }
    : { status, badSinceMs };
};

export interface CheckTiming extends StatusFacts {
  /** Whether the DNS left a query unanswered. */
  readonly isIndefinite: boolean;
  /** Since when a change waits for its confirmation; null when none does. */
  readonly unconfirmedSinceMs: number | null;
  /** The interval of checks of an enforced policy: see `enforcedCheckMs`; null unless the policy is enforced. */
  readonly enforcedEveryMs: number | null;
}

/**
 * The interval of checks of a domain with an enforced policy: an hour, and more where the service monitors so many domains that
 * this would be more than 6,000 checks an hour; at most a day.
 */
export const enforcedCheckMs = (monitoredDomains: number): number =>
  Math.min(REGULAR_MS, Math.max(ENFORCED_MS_MIN, (monitoredDomains / ENFORCED_CHECKS_PER_HOUR_MAX) * HOUR_MS));

/** When a domain is checked next; the jitter spreads the checks of all domains. */
export const nextDnsCheckMs = (timing: CheckTiming, nowMs: number): number => {
  const { id, mode, status, createdAtMs, isIndefinite, unconfirmedSinceMs, enforcedEveryMs } = timing;
  if (mode === "test") return NEVER_CHECKED_MS;
  if (isIndefinite) return nowMs + RETRY_MS;
  if (unconfirmedSinceMs !== null) return Math.max(nowMs + MINUTE_MS, unconfirmedSinceMs + CONFIRMING_CHECK_MS);
  const isAwaited = status === "pending" && nowMs - createdAtMs < PENDING_DAYS * DAY_MS;
  const settledMs = status === "pending" ? REGULAR_MS : (enforcedEveryMs ?? REGULAR_MS);
  const everyMs = isAwaited ? PENDING_MS : settledMs;
  return Math.round(nowMs + everyMs * (1 - JITTER_SHARE + 2 * JITTER_SHARE * spreadOf(id)));
};

/** A fixed number between 0 and 1 for an id: the last eight digits of a UUIDv7 are random. */
export const spreadOf = (id: string): number => Number.parseInt(id.slice(-8), 16) / 0xff_ff_ff_ff;
