import type { DomainRow, DomainStatus } from "./domain-store.ts";

/** Who asked for a check: the enrolment, the timetable, or a user. */
export type Trigger = "enrolled" | "scheduled" | "manual";
/** `bad` when something is definitely wrong, `indefinite` when nothing is but the DNS did not answer everything. */
export type CheckOutcome = "good" | "bad" | "indefinite";

export type StatusFacts = Pick<DomainRow, "id" | "status" | "badSinceMs" | "createdAtMs">;

export interface StatusTransition {
  readonly status: DomainStatus;
  /** When the first of the bad answers came that have not yet moved the status. */
  readonly badSinceMs: number | null;
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** A scheduled check is believed when a second one so much later says the same: a server may be behind the others. */
export const CONFIRMATION_MS = 30 * MINUTE_MS;
/** When the second check comes; a little later, so that it is never too early. */
const SECOND_LOOK_MS = 35 * MINUTE_MS;
const RETRY_MS = 30 * MINUTE_MS;
const REGULAR_MS = DAY_MS;
/** A policy that is enforced and lapses lets forged mail in at once. */
const ENFORCED_MS_MIN = HOUR_MS;
/** Checks of enforced domains in an hour, over all domains; with more domains each of them is checked less often. */
const ENFORCED_CHECKS_PER_HOUR_MAX = 6_000;
/** While the owner is about to publish the record. */
const PENDING_MS = HOUR_MS;
const PENDING_DAYS = 14;
const JITTER_SHARE = 0.05;

/** What a finished check makes of a domain's status (contract §6). Pure. */
export const nextStatus = (
  { status, badSinceMs }: StatusFacts,
  verdict: CheckOutcome,
  { trigger, nowMs }: { readonly trigger: Trigger; readonly nowMs: number },
): StatusTransition => {
  if (verdict === "indefinite" || trigger === "enrolled") return { status, badSinceMs };
  if (verdict === "good") return { status: "active", badSinceMs: null };
  if (trigger === "manual") return { status: "action_required", badSinceMs: null };
  if (status !== "active") return { status, badSinceMs: null };
  if (badSinceMs === null) return { status, badSinceMs: nowMs };
  return nowMs - badSinceMs >= CONFIRMATION_MS
    ? { status: "action_required", badSinceMs: null }
    : { status, badSinceMs };
};

export interface CheckTiming extends StatusFacts {
  /** The DNS did not answer everything. */
  readonly isIndefinite: boolean;
  /** Since when something waits for its confirmation; null when nothing does. */
  readonly doubtSinceMs: number | null;
  /** Null unless the policy is enforced: then how often it is checked, see `enforcedCheckMs`. */
  readonly enforcedEveryMs: number | null;
}

/**
 * How often a domain with an enforced policy is checked: hourly, and less often where the service monitors so many domains that
 * this would be more than 6,000 checks an hour; at least daily.
 */
export const enforcedCheckMs = (monitoredDomains: number): number =>
  Math.min(REGULAR_MS, Math.max(ENFORCED_MS_MIN, (monitoredDomains / ENFORCED_CHECKS_PER_HOUR_MAX) * HOUR_MS));

/** When a domain is checked next, never all domains at the same time. */
export const nextDnsCheckMs = (outlook: CheckTiming, nowMs: number): number => {
  const { id, status, createdAtMs, isIndefinite, doubtSinceMs, enforcedEveryMs } = outlook;
  if (isIndefinite) return nowMs + RETRY_MS;
  if (doubtSinceMs !== null) return Math.max(nowMs + MINUTE_MS, doubtSinceMs + SECOND_LOOK_MS);
  const isAwaited = status === "pending" && nowMs - createdAtMs < PENDING_DAYS * DAY_MS;
  const settledMs = status === "pending" ? REGULAR_MS : (enforcedEveryMs ?? REGULAR_MS);
  const everyMs = isAwaited ? PENDING_MS : settledMs;
  return Math.round(nowMs + everyMs * (1 - JITTER_SHARE + 2 * JITTER_SHARE * spreadOf(id)));
};

/** Where between 0 and 1 a domain stands, by its id alone: the last eight digits of a UUIDv7 are random. */
export const spreadOf = (id: string): number => Number.parseInt(id.slice(-8), 16) / 0xff_ff_ff_ff;
