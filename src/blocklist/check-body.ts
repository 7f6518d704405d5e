import { z } from "zod";
import { isoTime } from "../base/clock.ts";
import { type Blocklist, zoneOf } from "../dnsbl/blocklist.ts";
import { maskKey } from "../dnsbl/list-keys.ts";
import type { ListOutcome } from "../dnsbl/lookup.ts";
import { type CheckRow, TARGET_STATUSES } from "./store.ts";
import type { TargetTransition } from "./transition.ts";

const outcomeSchema = z.enum(["listed", "not_listed", "unproven", "refused", "failed", "skipped"]);
const countSchema = z.int().min(0);

/** What one list said, where it was not "clean". Keys never stand in it. */
export const checkResultSchema = z
  .object({
    list: z.string(),
    outcome: outcomeSchema,
    listings: z.array(z.string()).meta({ description: "Listing ids, as in `listed_on`." }),
    codes: z.array(z.string()).meta({ description: "The answers as they came." }),
    text: z.string().nullable().meta({ description: "What the list wrote about it." }),
    reason: z.string().nullable().meta({ description: "Why it refused or failed, or why its answer proves nothing." }),
    remedy: z.string().nullable(),
    zone: z.string().nullable(),
    delist_url: z.string().nullable(),
    address: z.string().optional().meta({ description: "In a check of a range: of which address." }),
  })
  .meta({ title: "BlacklistResult" });

/** What of a check is kept as JSON. */
export const checkBodySchema = z.object({
  listed_on: z.array(z.string()),
  added: z.array(z.string()),
  removed: z.array(z.string()),
  counts: z.object({
    listed: countSchema,
    not_listed: countSchema,
    unproven: countSchema.default(0).meta({
      description: 'Lists that said "not listed" without a test entry of this kind to prove that they are alive.',
    }),
    refused: countSchema,
    failed: countSchema,
    skipped: countSchema,
  }),
  results: z.array(checkResultSchema),
  address: z
    .string()
    .optional()
    .meta({ description: "In the history of a range: the address that was checked, and on which something changed." }),
});
export type CheckBody = z.output<typeof checkBodySchema>;

const time = z.iso.datetime({ precision: 3 });

/** A check as the interface shows it. */
export const targetCheckSchema = checkBodySchema
  .extend({
    id: z.uuid(),
    trigger: z.enum(["scheduled", "manual"]),
    started_at: time,
    finished_at: time.nullable().meta({ description: "Null while it runs." }),
    status: z.enum([...TARGET_STATUSES, "running"]).meta({ description: "What it made of the target." }),
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

/** What is kept of a check: its conclusion, and the lists that did not simply say "not listed". */
export const checkBodyOf = (
  { listedOn, added, removed, counts }: TargetTransition,
  outcomes: readonly ListOutcome[],
  lists: readonly Blocklist[],
): CheckBody => ({
  listed_on: [...listedOn],
  added: [...added],
  removed: removed.map(({ listing }) => listing),
  counts,
  results: outcomes
    .filter(({ outcome }) => outcome !== "not_listed" && outcome !== "skipped")
    .map((outcome) =>
      resultOf(
        outcome,
        lists.find(({ id }) => id === outcome.list),
      ),
    ),
});

export const checkView = ({ id, trigger, startedAtMs, finishedAtMs, status, body }: CheckRow): CheckView => ({
  id,
  trigger,
  started_at: isoTime(startedAtMs),
  finished_at: isoTime(finishedAtMs),
  status,
  ...checkBodySchema.parse(JSON.parse(body)),
});

/** A check that has not ended yet. */
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
