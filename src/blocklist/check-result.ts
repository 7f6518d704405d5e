import { type Blocklist, zoneOf, maskKey, countEach } from "./lists/blocklist.ts";
import { type ListOutcome, LIST_OUTCOMES } from "./lists/lookup.ts";
import { type TargetStatus, type TargetRow, type CheckRow, TARGET_STATUSES } from "./store.ts";
import {
  countField,
  nullableText,
  textField,
  enumField,
  idField,
  listField,
  namedResponse,
  textsField,
} from "../foundation/http/schema-fields.ts";
import { z } from "zod";
import { isoTime } from "../foundation/base/clock.ts";

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

export type KnownState = Pick<TargetRow, "status" | "listedOn">;

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
  const isMuted = (listing: string) => mutedLists.includes(listing);
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
  const counts = { ...NO_OUTCOMES };
  for (const { outcome } of outcomes) counts[outcome]++;
  counts.skipped += Math.max(0, listsCount - outcomes.length);
  return counts;
};

const NO_OUTCOMES = countEach(LIST_OUTCOMES, () => 0);

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

const everyMsOf = ({ status, listedOn, unknownChecks }: ScheduledTarget) => {
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

/** The result of one list other than "not listed". It never contains keys. */
export const checkResultSchema = namedResponse("BlacklistResult", {
  list: textField("The id of the list."),
  outcome: z.enum(LIST_OUTCOMES).meta({
    description: "`unproven`: not listed, but the list has no test point that proves it works.",
  }),
  listings: textsField("The ids of the listings, as in `listed_on`."),
  codes: textsField("The A records that the list returned."),
  text: nullableText("The explanation of the list (TXT record)."),
  reason: nullableText("Why the list refused, failed or proves nothing."),
  remedy: nullableText("What the operator of this service can do."),
  zone: nullableText("The DNS zone of the list."),
  delist_url: nullableText("The list's page for delisting requests."),
  address: z.string().optional().meta({ description: "In a check of a range: the address." }),
});

/** The stored result of a check. */
export const checkBodySchema = z.object({
  listed_on: textsField("The ids of the listings after the check."),
  added: textsField("The ids of new listings."),
  removed: textsField("The ids of removed listings."),
  counts: z
    .object({
      listed: countField("Lists that have an entry."),
      not_listed: countField("Lists without an entry."),
      unproven: countField("Lists without an entry and without a test point that proves that they work.").default(0),
      refused: countField("Lists that refused the query."),
      failed: countField("Lists that did not give a usable response."),
      skipped: countField("Lists that were not queried."),
    })
    .meta({ description: "The number of lists by the outcome of their lookup." }),
  not_listed: z.array(z.string()).optional().meta({
    description:
      "The ids of the lists without an entry. Missing in checks of a whole range and in those of older versions.",
  }),
  mailed_to: countField("How many recipients an alert mail about the changes was queued for.").optional(),
  results: listField(checkResultSchema, "The results other than `not_listed` and `skipped`."),
  address: z.string().optional().meta({ description: "In the history of a range: the address that changed." }),
});
export type CheckBody = z.output<typeof checkBodySchema>;

const time = z.iso.datetime({ precision: 3 });

/** A check as the API returns it. */
export const targetCheckSchema = checkBodySchema
  .extend({
    id: idField("The id of the check."),
    trigger: enumField(["scheduled", "manual"], "Whether it was requested."),
    started_at: time.meta({ description: "When the check began." }),
    finished_at: time.nullable().meta({ description: "When it finished; null while it runs." }),
    status: enumField([...TARGET_STATUSES, "running"], "The status of the target after the check."),
  })
  .meta({ title: "BlacklistCheck" });
export type CheckView = z.output<typeof targetCheckSchema>;

export const CHECK_EXAMPLE = {
  id: "019aa0d6-5b7e-7c31-9f4c-0d9a3c3f1a53",
  trigger: "manual",
  started_at: "2026-01-01T00:00:01.000Z",
  finished_at: "2026-01-01T00:00:03.120Z",
  status: "listed",
  listed_on: ["spamhaus-sbl"],
  added: ["spamhaus-sbl"],
  removed: [],
  counts: { listed: 1, not_listed: 20, unproven: 0, refused: 0, failed: 1, skipped: 9 },
  results: [
    {
      list: "spamhaus-zen",
      outcome: "listed",
      listings: ["spamhaus-sbl"],
      codes: ["127.0.0.2"],
      text: "https://www.spamhaus.org/sbl/query/SBL000000",
      reason: null,
      remedy: null,
      zone: "zen.spamhaus.org",
      delist_url: "https://check.spamhaus.org/",
    },
  ],
};

export const RUNNING_EXAMPLE = {
  ...CHECK_EXAMPLE,
  finished_at: null,
  status: "running",
  listed_on: [],
  added: [],
  counts: NO_OUTCOMES,
  results: [],
};

const resultOf = (outcome: ListOutcome, list: Blocklist | undefined): CheckBody["results"][number] => {
  const zone = list === undefined ? null : zoneOf(list);
  return {
    list: outcome.list,
    outcome: outcome.outcome,
    listings: outcome.listings.map(({ id }) => id),
    codes: [...outcome.returnCodes],
    text: outcome.text,
    reason: outcome.reason,
    remedy: outcome.remedy,
    zone: list === undefined || zone === null ? null : maskKey(list, zone),
    delist_url: list?.delistUrl ?? null,
  };
};

/** The stored result of a check: its conclusion, and the results of lists other than "not listed". */
export const checkBodyOf = (
  { listedOn, added, removed, counts }: TargetTransition,
  outcomes: readonly ListOutcome[],
  lists: readonly Blocklist[],
): CheckBody => ({
  listed_on: [...listedOn],
  added: [...added],
  removed: removed.map(({ listing }) => listing),
  counts,
  not_listed: outcomes.filter(({ outcome }) => outcome === "not_listed").map(({ list }) => list),
  results: outcomes
    .filter(({ outcome }) => outcome !== "not_listed" && outcome !== "skipped")
    .map((outcome) =>
      resultOf(
        outcome,
        lists.find(({ id }) => id === outcome.list),
      ),
    ),
});

/** A finished check as the API returns it. */
export const checkView = (check: CheckRow): CheckView => ({
  id: check.id,
  trigger: check.trigger,
  started_at: isoTime(check.startedAtMs),
  finished_at: isoTime(check.finishedAtMs),
  status: check.status,
  ...bodyOf(check),
});

/** A check that is still running, as the API returns it. */
export const runningView = ({
  id,
  trigger,
  startedAtMs,
}: Pick<CheckRow, "id" | "trigger" | "startedAtMs">): CheckView => ({
  id,
  trigger,
  started_at: isoTime(startedAtMs),
  finished_at: null,
  status: "running",
  listed_on: [],
  added: [],
  removed: [],
  counts: NO_OUTCOMES,
  results: [],
});

/** Parses the stored result of a check. */
export const bodyOf = ({ body }: Pick<CheckRow, "body">): CheckBody => checkBodySchema.parse(JSON.parse(body));

/** Checks, the current one included, in which the list was queried and did not repeat the listing. */
const CHECKS_TO_EXPIRE = 4;

/**
 * Whether a listing of a list without test points has expired. `earlier` are all checks within the time that a listing
 * stands without being repeated: none of them may have found it, and enough of them must have queried the list.
 */
export const hasExpired = (earlier: readonly CheckRow[], listing: string, list: string): boolean => {
  const results = earlier.map((check) => bodyOf(check).results);
  if (results.some((all) => all.some(({ listings }) => listings.includes(listing)))) return false;
  const unrepeated = results.filter((all) => all.some((one) => one.list === list && one.outcome === "unproven"));
  return unrepeated.length + 1 >= CHECKS_TO_EXPIRE;
};
