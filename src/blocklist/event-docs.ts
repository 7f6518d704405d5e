import { z } from "zod";
import {
  flagField,
  nullableText,
  textField,
  enumField,
  idField,
  listField,
  namedResponse,
  nullableEnum,
  nullableId,
  textsField,
} from "../foundation/http/schema-fields.ts";
import { CATEGORIES, TARGET_KINDS } from "./lists/blocklist.ts";
import { SEVERITIES } from "../foundation/base/severity.ts";
import type { EventDoc } from "../foundation/http/openapi.ts";
import { TARGET_STATUSES } from "./store.ts";
import { DELISTING_REASONS } from "./check-result.ts";

const time = z.iso.datetime({ precision: 3 });

const factsSchema = z.object({
  target_id: idField("The id of the target; of an address, that of its range."),
  target: textField("The domain or address."),
  range: nullableText("The range that the address belongs to; null otherwise."),
  kind: enumField(TARGET_KINDS, "What the target is."),
  label: nullableText("The label of the target."),
  mode: enumField(["live", "test"], "The mode of the key that added the target."),
  listing: textField("The id of the listing."),
  listing_name: textField("The name of the listing."),
  list: nullableText("The id of the list; null if it is no longer in the catalogue."),
  category: nullableEnum(CATEGORIES, "Why something is on this list."),
  severity: nullableEnum(SEVERITIES, "How much it affects mail delivery."),
  meaning: textField("What the listing means, as a sentence."),
  delist_url: nullableText("The list's page for delisting requests."),
  previous_status: enumField(TARGET_STATUSES, "The status before the check."),
  status: enumField(TARGET_STATUSES, "The status after the check."),
  listed_on: textsField("The ids of all listings after the check."),
  flapping: flagField("Whether the listing was added or removed for at least the fourth time within a day."),
  check_id: nullableId("The id of the check; null when the list was muted."),
  checked_at: time.meta({ description: "When the change was found." }),
});

const listedSchema = factsSchema
  .extend({
    codes: textsField("The A records that the list returned."),
    text: nullableText("The explanation of the list (TXT record)."),
  })
  .meta({ title: "BlacklistListed" });

const delistedSchema = factsSchema
  .extend({
    reason: enumField(
      DELISTING_REASONS,
      "`observed`: the list has no entry any more; `list_retired`: it is no longer queried; `list_muted`: you muted it; `expired`: it did not repeat the entry for 48 hours.",
    ),
  })
  .meta({ title: "BlacklistDelisted" });

const usabilitySchema = namedResponse("BlacklistUsability", {
  list: nullableText("The id of the list; null when it concerns all lists."),
  list_name: textField("The name of the list."),
  kinds: listField(z.enum(TARGET_KINDS), "What the list has entries for."),
  state: enumField(
    ["healthy", "refused", "silent", "wildcard", "unreachable", "unknown"],
    "`healthy`: the list can be used.",
  ),
  reason: nullableText("Why the list cannot be used."),
  remedy: nullableText("What the operator of this service can do."),
  mode: z.literal("live").meta({ description: "Always `live`." }),
  checked_at: time.meta({ description: "When the state was found." }),
});

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

const listName: EventDoc["title"] = (text) => text("list_name") || text("name") || text("list");

const listingIncident =
  (ends: boolean): NonNullable<EventDoc["incident"]> =>
  (text) => ({ about: ["listing", text("target_id"), text("target"), text("listing")], ends, severity: "medium" });
/** A list, or all lists together. */
const listIncident =
  (ends: boolean): NonNullable<EventDoc["incident"]> =>
  (text) => ({ about: ["list", text("list")], ends, severity: "low" });

/** The events of blocklist monitoring, as the OpenAPI document describes them. */
export const BLOCKLIST_EVENTS: readonly EventDoc[] = [
  {
    type: "blacklist.listed",
    tag: "Blocklist monitoring",
    summary: "A target was listed",
    title: (text) => `${text("target")} is listed on ${text("listing_name")}`,
    incident: listingIncident(false),
    data: listedSchema,
    example: { ...FACTS, codes: ["127.0.0.2"], text: "Blocked - see https://www.spamcop.net/" },
  },
  {
    type: "blacklist.delisted",
    tag: "Blocklist monitoring",
    summary: "A target was delisted",
    title: (text) => `${text("target")} is no longer listed on ${text("listing_name")}`,
    incident: listingIncident(true),
    data: delistedSchema,
    example: { ...FACTS, previous_status: "listed", status: "clean", listed_on: [], reason: "observed" },
  },
  {
    type: "blacklist.list_unusable",
    tag: "Blocklist monitoring",
    summary: "A blocklist cannot be used",
    title: (text) => `The blocklist ${listName(text)} is unusable`,
    incident: listIncident(false),
    data: usabilitySchema,
    example: {
      ...LIST_FACTS,
      state: "refused",
      reason: "The list refuses queries from public resolvers.",
      remedy: "Use your own recursive resolver.",
    },
  },
  {
    type: "blacklist.list_usable",
    tag: "Blocklist monitoring",
    summary: "A blocklist can be used again",
    title: (text) => `The blocklist ${listName(text)} is usable again`,
    incident: listIncident(true),
    data: usabilitySchema,
    example: { ...LIST_FACTS, state: "healthy", reason: null, remedy: null },
  },
];
