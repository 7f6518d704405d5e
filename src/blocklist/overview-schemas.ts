import { z } from "zod";
import { CATEGORIES, SEVERITIES, TARGET_KINDS } from "../dnsbl/blocklist.ts";
import { targetSchema } from "./schemas.ts";
import { TARGET_STATUSES } from "./store.ts";

const time = z.iso.datetime({ precision: 3 });
const count = z.int().min(0);

const changeSchema = z.object({
  event_id: z.uuid(),
  at: time,
  change: z.enum(["listed", "delisted"]),
  target_id: z.uuid(),
  target: z.string(),
  label: z.string().nullable(),
  listing: z.string(),
  listing_name: z.string(),
  severity: z.enum(SEVERITIES).nullable(),
  category: z.enum(CATEGORIES).nullable(),
  reason: z.string().nullable().meta({ description: "Of a delisting." }),
});

/** The body of `GET /v1/blacklist/overview`. */
export const overviewSchema = z
  .object({
    generated_at: time,
    since: time,
    targets: z.object({
      total: count,
      addresses_in_ranges: count,
      ranges: count,
      listed: count.meta({ description: "As `?status=listed`: also those that are `unknown` at present." }),
      paused: count,
      by_status: z.record(z.enum(TARGET_STATUSES), count),
      by_kind: z.record(z.enum(TARGET_KINDS), count),
    }),
    listings: z.object({
      total: count.meta({ description: "Every listing of every address, those of ranges too." }),
      acknowledged: count,
      by_severity: z.record(z.enum(SEVERITIES), count),
    }),
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
      .meta({ description: "The ten worst targets by what nobody acknowledged, with five listings each." }),
    changes: z.object({
      listed: count,
      delisted: count,
      is_complete: z.boolean().meta({ description: "False when there were too many to count: the feed has them all." }),
      recent: z.array(changeSchema).meta({ description: "The latest 50, newest first." }),
      feed: z.string().meta({ description: "Where all of them are." }),
    }),
    lists_in_trouble: z
      .array(
        z.object({
          list: z.string(),
          name: z.string(),
          kind: z.enum(TARGET_KINDS),
          state: z.string(),
          reason: z.string().nullable(),
          remedy: z.string().nullable(),
          tested_at: time,
        }),
      )
      .meta({ description: "Lists that cannot be believed through this resolver at present." }),
  })
  .meta({ title: "BlacklistOverview" });
