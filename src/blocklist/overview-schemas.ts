import { z } from "zod";
import { CATEGORIES, TARGET_KINDS } from "./lists/blocklist.ts";
import { SEVERITIES } from "../foundation/base/severity.ts";
import { targetSchema } from "./schemas.ts";
import { TARGET_STATUSES } from "./store.ts";

/** The query of the overview; `since` is parsed to milliseconds since 1970. */
export const overviewQuerySchema = z.strictObject({
  since: z.iso
    .datetime({ offset: true, error: "A time is needed, as 2026-01-01T00:00:00Z" })
    .transform((text) => Date.parse(text))
    .optional()
    .meta({ description: "Changes since this time. Default: the last 24 hours. Events are kept for 30 days." }),
});

const time = (description: string) => z.iso.datetime({ precision: 3 }).meta({ description });
const count = (description: string) => z.int().min(0).meta({ description });
const text = (description: string) => z.string().meta({ description });
const textOrNull = (description: string) => z.string().nullable().meta({ description });

const changeSchema = z.object({
  event_id: z.uuid().meta({ description: "The id of the event." }),
  at: time("When it was found."),
  change: z.enum(["listed", "delisted"]).meta({ description: "Whether the listing was added or removed." }),
  target_id: z.uuid().meta({ description: "The id of the target; of an address, that of its range." }),
  target: text("The domain or address."),
  label: textOrNull("The label of the target."),
  listing: text("The id of the listing."),
  listing_name: text("The name of the listing."),
  severity: z.enum(SEVERITIES).nullable().meta({ description: "The severity of the listing." }),
  category: z.enum(CATEGORIES).nullable().meta({ description: "Why something is on this list." }),
  reason: textOrNull("Why a listing was removed; null for a new one."),
});

const targetCountsSchema = z.object({
  total: count("Targets, without the addresses of ranges."),
  addresses_in_ranges: count("Addresses of ranges."),
  ranges: count("Ranges."),
  listed: count("Targets that `?status=listed` returns, including those that are `unknown` now."),
  paused: count("Targets that are not monitored."),
  by_status: z.record(z.enum(TARGET_STATUSES), count("Targets of this status.")).meta({ description: "By status." }),
  by_kind: z.record(z.enum(TARGET_KINDS), count("Targets of this kind.")).meta({ description: "By kind." }),
});

const listingCountsSchema = z.object({
  total: count("All listings, including those of addresses in ranges."),
  acknowledged: count("Listings that were acknowledged."),
  by_severity: z.record(z.enum(SEVERITIES), count("Listings of this severity.")).meta({ description: "By severity." }),
});

const changesSchema = z.object({
  listed: count("New listings."),
  delisted: count("Removed listings."),
  is_complete: z.boolean().meta({ description: "False if there were too many to count; the feed has all." }),
  recent: z.array(changeSchema).meta({ description: "The latest 50, newest first." }),
  feed: text("The URL of the event feed since that time."),
});

const troubledListSchema = z.object({
  list: text("The id of the list."),
  name: text("The name of the list."),
  kind: z.enum(TARGET_KINDS).meta({ description: "The kind of target that was tested." }),
  state: text("The state of the list, as in `GET /v1/blacklist/lists`."),
  reason: textOrNull("Why the list cannot be used."),
  remedy: textOrNull("What the operator of this service can do."),
  tested_at: time("When the list was last tested."),
});

/** Response of `GET /v1/blacklist/overview`. */
export const overviewSchema = z
  .object({
    generated_at: time("When the overview was made."),
    since: time("The start of the changes."),
    targets: targetCountsSchema.meta({ description: "Counts of targets." }),
    listings: listingCountsSchema.meta({ description: "Counts of listings." }),
    worst: z
      .array(
        targetSchema.pick({
          id: true,
          kind: true,
          value: true,
          label: true,
          status: true,
          severity: true,
          listings: true,
          listings_count: true,
        }),
      )
      .meta({ description: "The ten targets with the most severe unacknowledged listings, with five listings each." }),
    changes: changesSchema.meta({ description: "Listings and delistings." }),
    lists_in_trouble: z
      .array(troubledListSchema)
      .meta({ description: "Lists that cannot be used at present through the resolver of this service." }),
  })
  .meta({ title: "BlacklistOverview" });
