import type { Blocklist } from "./lists/blocklist.ts";
import type { ListOutcome } from "./lists/lookup.ts";
import type { TargetStatus, TargetRow } from "./store.ts";

/**
 * Why a listing was removed: the list no longer has it, is no longer queried, or was muted by the user; or the list, which
 * cannot be tested, has not repeated it for a long time.
 */
export const DELISTING_REASONS = ["observed", "list_retired", "list_muted", "expired"] as const;
export type DelistingReason = (typeof DELISTING_REASONS)[number];

export interface Removal {
  readonly listing: string;
  readonly reason: DelistingReason;
}

/** How many lists had which outcome. */
export type OutcomeCounts = Readonly<Record<ListOutcome["outcome"], number>>;

export interface KnownState {
  readonly status: TargetStatus;
  readonly listedOn: readonly string[];
}

export interface ConclusionContext {
  readonly lists: readonly Blocklist[];
  readonly mutedLists: readonly string[];
  readonly hasExpired: (listing: string, list: string) => boolean;
}

/** The state of a target after a check, and what changed. */
export interface TargetTransition {
  readonly status: "clean" | "listed" | "unknown";
  readonly listedOn: readonly string[];
  readonly added: readonly string[];
  readonly removed: readonly Removal[];
  readonly counts: OutcomeCounts;
}

/**
 * Derives the new state of a target from one outcome per list. Unknown never clears: the last listings of a list stand
 * while it refuses or fails. When no list responded, only the status changes, to `unknown`.
 *
 * `lists` are those in use; listings of any other list are removed. `outcomes` are of the lists that were queried.
 * `mutedLists` has ids of lists, which are not queried, and of single listings, which are ignored. `hasExpired` tells
 * whether a list without test points has not repeated a listing for a long time.
 */
export const applyOutcomes = (
  before: KnownState,
  outcomes: readonly ListOutcome[],
  context: ConclusionContext,
): TargetTransition => {
  const { lists, mutedLists } = context;
  const counts = countOutcomes(outcomes, lists.length);
  const isMuted = (listing: string): boolean => mutedLists.includes(listing);
  if (counts.listed + counts.not_listed + counts.unproven === 0) {
    return { status: "unknown", listedOn: before.listedOn, added: [], removed: [], counts };
  }
  const now = outcomes.flatMap(({ listings }) => listings.map(({ id }) => id)).filter((id) => !isMuted(id));
  const added = [...new Set(now)].filter((id) => !before.listedOn.includes(id));
  const removed = before.listedOn.flatMap((listing): Removal[] => {
    const reason = removalReason(listing, outcomes, context);
    return reason === null ? [] : [{ listing, reason }];
  });
  const kept = before.listedOn.filter((id) => !removed.some(({ listing }) => listing === id));
  const listedOn = [...kept, ...added].toSorted();
  // A list with muted listings only does not make the target clean.
  const statusThen = counts.not_listed > 0 ? "clean" : "unknown";
  return { status: listedOn.length > 0 ? "listed" : statusThen, listedOn, added, removed, counts };
};

/** Lists that were not queried (muted ones) count as skipped. */
const countOutcomes = (outcomes: readonly ListOutcome[], listsCount: number): OutcomeCounts => {
  const count = (wanted: ListOutcome["outcome"]) => outcomes.filter(({ outcome }) => outcome === wanted).length;
  const skipped = count("skipped") + Math.max(0, listsCount - outcomes.length);
  return {
    listed: count("listed"),
    not_listed: count("not_listed"),
    unproven: count("unproven"),
    refused: count("refused"),
    failed: count("failed"),
    skipped,
  };
};

const removalReason = (
  listing: string,
  outcomes: readonly ListOutcome[],
  { lists, mutedLists, hasExpired }: ConclusionContext,
): DelistingReason | null => {
  if (mutedLists.includes(listing)) return "list_muted";
  const list = lists.find(({ codes }) => codes.some(({ id }) => id === listing));
  if (list === undefined) return "list_retired";
  if (mutedLists.includes(list.id)) return "list_muted";
  const outcome = outcomes.find((candidate) => candidate.list === list.id);
  if (outcome === undefined) return null;
  switch (outcome.outcome) {
    case "listed":
      return outcome.listings.some(({ id }) => id === listing) ? null : "observed";
    case "not_listed":
      return "observed";
    case "skipped":
      return "list_retired";
    case "unproven":
      return hasExpired(listing, list.id) ? "expired" : null;
    case "refused":
    case "failed":
      return null;
    default:
      return outcome.outcome satisfies never;
  }
};

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** How often due targets are checked. */
const PASS_EVERY_MS = MINUTE_MS;
const LISTED_EVERY_MS = HOUR_MS;
const OTHERWISE_EVERY_MS = 6 * HOUR_MS;
const JITTER_SHARE = 0.05;
/** A backlog is spread over this time, listed targets first. */
const LISTED_SPREAD_MS = 15 * MINUTE_MS;
const OTHERWISE_SPREAD_MS = HOUR_MS;

/** A number from 0 to 1 that depends on the id only: the last eight digits of a UUIDv7 are random. */
export const jitterShareOf = (id: string): number => Number.parseInt(id.slice(-8), 16) / 0xff_ff_ff_ff;

/** Retry after the first, second … check in a row that ended `unknown`; the last value for all further ones. */
const UNKNOWN_RETRIES_MS = [2, 5, 10, 20, 40, 60].map((minutes) => minutes * MINUTE_MS);

/** What the time of the next check depends on. */
type ScheduledTarget = Pick<TargetRow, "id" | "status" | "listedOn" | "unknownChecks">;

const everyMsOf = ({ status, listedOn, unknownChecks }: ScheduledTarget): number => {
  if (status === "unknown") return UNKNOWN_RETRIES_MS[Math.max(0, unknownChecks - 1)] ?? LISTED_EVERY_MS;
  return status === "listed" || listedOn.length > 0 ? LISTED_EVERY_MS : OTHERWISE_EVERY_MS;
};

/**
 * When to check a target again: in about one hour if it has listings, otherwise in six; after `unknown` in minutes, and
 * less often each time. With jitter.
 */
export const nextTargetCheckMs = (target: ScheduledTarget, nowMs: number): number =>
  Math.round(nowMs + everyMsOf(target) * (1 - JITTER_SHARE + 2 * JITTER_SHARE * jitterShareOf(target.id)));

/** The next full minute, when due targets are checked next. */
export const nextPassMs = (nowMs: number): number => (Math.floor(nowMs / PASS_EVERY_MS) + 1) * PASS_EVERY_MS;

/** A new time for one of many overdue targets. */
export const spreadMs = (id: string, status: TargetStatus, nowMs: number): number =>
  Math.round(nowMs + (status === "listed" ? LISTED_SPREAD_MS : OTHERWISE_SPREAD_MS) * jitterShareOf(id));
