import { countField, nullableText, textField } from "../foundation/http/schema-fields.ts";
import { z } from "zod";
import { isoTime } from "../foundation/base/clock.ts";
import { type Blocklist, zoneOf } from "./lists/blocklist.ts";
import { maskKey } from "./lists/list-settings.ts";
import type { ListOutcome } from "./lists/lookup.ts";
import { type CheckRow, TARGET_STATUSES } from "./store.ts";
import type { TargetTransition } from "./transition.ts";

const outcomeSchema = z.enum(["listed", "not_listed", "unproven", "refused", "failed", "skipped"]);

/** The result of one list other than "not listed". It never contains keys. */
export const checkResultSchema = z
  .object({
    list: textField("The id of the list."),
    outcome: outcomeSchema.meta({
      description: "`unproven`: not listed, but the list has no test point that proves it works.",
    }),
    listings: z.array(z.string()).meta({ description: "The ids of the listings, as in `listed_on`." }),
    codes: z.array(z.string()).meta({ description: "The A records that the list returned." }),
    text: nullableText("The explanation of the list (TXT record)."),
    reason: nullableText("Why the list refused, failed or proves nothing."),
    remedy: nullableText("What the operator of this service can do."),
    zone: nullableText("The DNS zone of the list."),
    delist_url: nullableText("The list's page for delisting requests."),
    address: z.string().optional().meta({ description: "In a check of a range: the address." }),
  })
  .meta({ title: "BlacklistResult" });

/** The stored result of a check. */
export const checkBodySchema = z.object({
  listed_on: z.array(z.string()).meta({ description: "The ids of the listings after the check." }),
  added: z.array(z.string()).meta({ description: "The ids of new listings." }),
  removed: z.array(z.string()).meta({ description: "The ids of removed listings." }),
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
  results: z.array(checkResultSchema).meta({ description: "The results other than `not_listed` and `skipped`." }),
  address: z.string().optional().meta({ description: "In the history of a range: the address that changed." }),
});
export type CheckBody = z.output<typeof checkBodySchema>;

const time = z.iso.datetime({ precision: 3 });

/** A check as the API returns it. */
export const targetCheckSchema = checkBodySchema
  .extend({
    id: z.uuid().meta({ description: "The id of the check." }),
    trigger: z.enum(["scheduled", "manual"]).meta({ description: "Whether it was requested." }),
    started_at: time.meta({ description: "When the check began." }),
    finished_at: time.nullable().meta({ description: "When it finished; null while it runs." }),
    status: z.enum([...TARGET_STATUSES, "running"]).meta({ description: "The status of the target after the check." }),
  })
  .meta({ title: "BlacklistCheck" });
export type CheckView = z.output<typeof targetCheckSchema>;

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
  counts: { listed: 0, not_listed: 0, unproven: 0, refused: 0, failed: 0, skipped: 0 },
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
