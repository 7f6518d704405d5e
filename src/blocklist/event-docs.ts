import { z } from "zod";
import { CATEGORIES, SEVERITIES, TARGET_KINDS } from "../dnsbl/blocklist.ts";
import type { EventDoc } from "../http/openapi.ts";
import { TARGET_STATUSES } from "./store.ts";
import { DELISTING_REASONS } from "./transition.ts";

const time = z.iso.datetime({ precision: 3 });

const factsSchema = z.object({
  target_id: z.uuid(),
  target: z.string(),
  range: z.string().nullable().meta({
    description: "The range that the address belongs to, whose id `target_id` then is; null otherwise.",
  }),
  kind: z.enum(TARGET_KINDS),
  label: z.string().nullable(),
  mode: z.enum(["live", "test"]),
  listing: z.string(),
  listing_name: z.string(),
  list: z.string().nullable().meta({ description: "Null when the catalogue has the list no more." }),
  category: z.enum(CATEGORIES).nullable(),
  severity: z.enum(SEVERITIES).nullable(),
  meaning: z.string(),
  delist_url: z.string().nullable(),
  previous_status: z.enum(TARGET_STATUSES),
  status: z.enum(TARGET_STATUSES),
  listed_on: z.array(z.string()),
  flapping: z.boolean().meta({ description: "Whether it came or went for the fourth time within a day, or more." }),
  check_id: z.uuid().nullable().meta({ description: "Null when the list was muted." }),
  checked_at: time,
});

const listedSchema = factsSchema
  .extend({
    codes: z.array(z.string()).meta({ description: "The answers as they came." }),
    text: z.string().nullable().meta({ description: "What the list wrote about it." }),
  })
  .meta({ title: "BlacklistListed" });

const delistedSchema = factsSchema.extend({ reason: z.enum(DELISTING_REASONS) }).meta({ title: "BlacklistDelisted" });

const usabilitySchema = z
  .object({
    list: z.string().nullable().meta({ description: "Null when it concerns all lists at once." }),
    list_name: z.string(),
    kinds: z.array(z.enum(TARGET_KINDS)),
    state: z.enum(["healthy", "refused", "silent", "wildcard", "unreachable", "unknown"]),
    reason: z.string().nullable(),
    remedy: z.string().nullable().meta({ description: "What the operator can do about it." }),
    mode: z.literal("live"),
    checked_at: time,
  })
  .meta({ title: "BlacklistUsability" });

const LIST_FACTS = {
  list: "spamhaus-zen",
  list_name: "Spamhaus ZEN",
  kinds: ["ipv4", "ipv6"],
  mode: "live",
  checked_at: "2026-01-01T00:30:00.000Z",
};

const FACTS = {
  target_id: "019aa0d6-5b7e-7c31-9f4c-0d9a3c3f1a52",
  target: "198.51.100.7",
  range: null,
  kind: "ipv4",
  label: "outbound 1",
  mode: "live",
  listing: "spamcop",
  listing_name: "SpamCop SCBL",
  list: "spamcop",
  category: "spam",
  severity: "high",
  meaning: "Reported as a source of spam by users or traps.",
  delist_url: "https://www.spamcop.net/bl.shtml",
  previous_status: "clean",
  status: "listed",
  listed_on: ["spamcop"],
  flapping: false,
  check_id: "019aa0d6-5b7e-7c31-9f4c-0d9a3c3f1a53",
  checked_at: "2026-01-01T00:00:03.120Z",
};

/** The events of blocklist monitoring, as the OpenAPI document describes them. */
export const BLOCKLIST_EVENTS: readonly EventDoc[] = [
  {
    type: "blacklist.listed",
    tag: "Blocklist monitoring",
    summary: "A listing of a target came",
    data: listedSchema,
    example: { ...FACTS, codes: ["127.0.0.2"], text: "Blocked - see https://www.spamcop.net/" },
  },
  {
    type: "blacklist.delisted",
    tag: "Blocklist monitoring",
    summary: "A listing of a target is gone",
    data: delistedSchema,
    example: { ...FACTS, previous_status: "listed", status: "clean", listed_on: [], reason: "observed" },
  },
  {
    type: "blacklist.list_unusable",
    tag: "Blocklist monitoring",
    summary: "A blocklist cannot be used",
    data: usabilitySchema,
    example: {
      ...LIST_FACTS,
      state: "refused",
      reason: "The list refuses queries from public resolvers.",
      remedy: "Use a resolver of your own.",
    },
  },
  {
    type: "blacklist.list_usable",
    tag: "Blocklist monitoring",
    summary: "A blocklist can be used again",
    data: usabilitySchema,
    example: { ...LIST_FACTS, state: "healthy", reason: null, remedy: null },
  },
];
