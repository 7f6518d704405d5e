import { z } from "zod";
import { CATEGORIES, CONFIDENCES, SEVERITIES, TARGET_KINDS } from "../dnsbl/blocklist.ts";
import { labelSchema } from "../http/label-schema.ts";
import { recipientsSchema } from "../mail/recipients.ts";
import { targetCheckSchema } from "./check-body.ts";
import { TARGET_STATUSES } from "./store.ts";

const TARGET_CHARACTERS_MAX = 320;
const MUTED_LISTS_MAX = 200;
const RECIPIENTS_MAX = 10;
const NOTE_CHARACTERS_MAX = 1_000;
const LIST_CHARACTERS_MAX = 100;

const characters = (text: string): number => [...text].length;

const label = labelSchema("outbound 1");

const targetText = z
  .string()
  .trim()
  .min(1, "A domain or an IP address is needed")
  .refine((text) => characters(text) <= TARGET_CHARACTERS_MAX, `At most ${TARGET_CHARACTERS_MAX} characters`);

const recipients = recipientsSchema({
  most: RECIPIENTS_MAX,
  description: "Addresses that alert mail about listings and delistings goes to.",
});

const alertSeverityMin = z.enum(SEVERITIES).nullable().meta({
  description:
    "Listings below it are not sent; they stay in the history and the event feed. Null: as the account says (`GET /v1/notifications`).",
});

/** Body of `POST /v1/blacklist/targets`; what a URL may be is for the webhooks to say. */
export const newTargetSchema = (webhookUrl: z.ZodType<string, string>) =>
  z
    .strictObject({
      target: targetText.meta({
        description:
          "A domain below a public suffix, a public IPv4 or IPv6 address, or up to 1,024 IPv4 addresses as one target: `198.51.100.0/24` or `198.51.100.1-198.51.100.9`.",
        examples: ["example.com"],
      }),
      label: label.nullable().optional(),
      monitoring_enabled: z
        .boolean()
        .optional()
        .meta({ description: "Whether scheduled checks run; true unless told." }),
      webhook_url: webhookUrl.nullable().optional(),
      recipients: recipients.optional(),
      alert_severity_min: alertSeverityMin.optional(),
    })
    .meta({ title: "BlacklistTargetOrder" });

/** Body of `PATCH /v1/blacklist/targets/{id}`: only what is given changes; null removes. */
export const targetChangeSchema = (webhookUrl: z.ZodType<string, string>) =>
  z
    .strictObject({
      label: label.nullable().optional(),
      monitoring_enabled: z.boolean().optional(),
      webhook_url: webhookUrl.nullable().optional(),
      recipients: recipients.optional(),
      alert_severity_min: alertSeverityMin.optional(),
      muted_lists: z.array(z.string()).max(MUTED_LISTS_MAX).optional().meta({
        description:
          "Ids of lists (`spamhaus-zen`), which are not asked for this target, or of single listings as in `listed_on` (`spamhaus-pbl`), which are left out. Ids that have left the catalogue since can stay.",
      }),
    })
    .meta({ title: "BlacklistTargetChange" });

/** The filters of the list of targets. */
export const targetFiltersSchema = z.strictObject({
  status: z.enum(TARGET_STATUSES).optional(),
  kind: z.enum(TARGET_KINDS).optional(),
  target: targetText.optional(),
  monitoring_enabled: z
    .enum(["true", "false"])
    .transform((text) => text === "true")
    .optional(),
  severity: z.enum(SEVERITIES).optional(),
  list: z.string().min(1).max(LIST_CHARACTERS_MAX).optional(),
  label: z.string().min(1).optional(),
  sort: z.enum(["created", "severity"]).optional(),
});

/** The filters of the addresses of a range. */
export const memberFiltersSchema = targetFiltersSchema.pick({ status: true, severity: true, list: true });

/** Body of `PATCH /v1/blacklist/targets/{id}/listings/{listing}`: only what is given changes. */
export const listingNotesSchema = z
  .strictObject({
    acknowledged: z.boolean().optional().meta({ description: "Seen, and nothing is to be done about it." }),
    delisting_requested: z.boolean().optional(),
    note: z
      .string()
      .min(1, "Not empty: null removes it")
      .refine((text) => characters(text) <= NOTE_CHARACTERS_MAX, `At most ${NOTE_CHARACTERS_MAX} characters`)
      .nullable()
      .optional(),
  })
  .meta({ title: "BlacklistListingNotes" });

/** The query of the overview; `since` in milliseconds since 1970. */
export const overviewQuerySchema = z.strictObject({
  since: z.iso
    .datetime({ offset: true, error: "Must be a time such as 2026-01-01T00:00:00Z" })
    .transform((text) => Date.parse(text))
    .optional(),
});

export const checkFiltersSchema = z.strictObject({});

const time = z.iso.datetime({ precision: 3 });

const noteSchema = z
  .object({ at: time, by: z.string().meta({ description: "Name of the key." }).nullable() })
  .nullable();

export const targetListingSchema = z
  .object({
    id: z.string(),
    list: z.string().nullable().meta({ description: "Null when the catalogue has the list no more." }),
    name: z.string(),
    severity: z.enum(SEVERITIES).nullable(),
    category: z.enum(CATEGORIES).nullable(),
    meaning: z.string(),
    address: z.string().nullable().meta({ description: "In a range: the address that is listed." }),
    since: time,
    last_seen_at: time.meta({
      description: "When the list last said so; it stays listed while the list does not answer.",
    }),
    delist_url: z.string().nullable(),
    acknowledged: noteSchema,
    delisting_requested: noteSchema,
    note: z.object({ text: z.string(), at: time, by: z.string().nullable() }).nullable(),
  })
  .meta({ title: "BlacklistTargetListing" });

export const targetSchema = z
  .object({
    id: z.uuid(),
    kind: z.enum(TARGET_KINDS),
    value: z.string().meta({
      description:
        "The normalized target, in the form the lists are queried with; of a range, its network or its two ends.",
    }),
    members: z.int().nullable().meta({ description: "How many addresses a range has; null for all else." }),
    range_id: z.uuid().nullable().meta({ description: "The range that an address belongs to." }),
    label: z.string().nullable(),
    status: z.enum(TARGET_STATUSES),
    severity: z.enum(SEVERITIES).nullable().meta({ description: "Of the worst listing; null when there is none." }),
    monitoring_enabled: z.boolean(),
    listings: z.array(targetListingSchema).meta({
      description: "What lists it, the worst first; of a range, the first 100 of its addresses.",
    }),
    listings_count: z.int(),
    seen_at: time.nullable().meta({
      description:
        "When a list last confirmed one of the listings shown. It stands still while the lists do not answer.",
    }),
    listed_on: z.array(z.string()).meta({ description: "Listing ids, as far as known: unknown never clears." }),
    muted_lists: z.array(z.string()),
    last_checked_at: time.nullable(),
    next_check_at: time.meta({
      description: "While paused, the time at which it would be checked if it were resumed now.",
    }),
    webhook_configured: z.boolean().meta({
      description: "Whether events are sent: false also when the receiver answered 410, until the URL is set again.",
    }),
    recipients: z.array(z.string()),
    alert_severity_min: z.enum(SEVERITIES).nullable(),
    created_at: time,
  })
  .meta({ title: "BlacklistTarget" });

const cursor = z.string().nullable();

export const targetsSchema = z
  .object({ targets: z.array(targetSchema), next_cursor: cursor })
  .meta({ title: "BlacklistTargetList" });

export const membersSchema = z
  .object({ members: z.array(targetSchema), next_cursor: cursor })
  .meta({ title: "BlacklistMemberList" });

export const checkedSchema = z
  .object({ target: targetSchema, check: targetCheckSchema })
  .meta({ title: "BlacklistCheckedTarget" });

export const checksSchema = z
  .object({ checks: z.array(targetCheckSchema), next_cursor: cursor })
  .meta({ title: "BlacklistCheckList" });

const listingSchema = z.object({
  id: z.string(),
  name: z.string(),
  meanings: z.array(z.string()),
  category: z.enum(CATEGORIES),
  severity: z.enum(SEVERITIES),
});

export const listsSchema = z
  .object({
    version: z.string(),
    lists: z.array(
      z
        .object({
          id: z.string(),
          name: z.string(),
          operator: z.string(),
          kinds: z.array(z.enum(TARGET_KINDS)),
          zone: z.string().nullable().meta({ description: "Null when it needs a key that is not there." }),
          enabled: z.boolean().meta({ description: "Whether it is asked." }),
          severity: z.enum(SEVERITIES),
          confidence: z.enum(CONFIDENCES),
          usage: z
            .object({
              terms: z.string(),
              volume: z.string().nullable(),
              cost: z.string().nullable(),
              registration: z.string().nullable(),
              url: z.string().nullable(),
            })
            .nullable()
            .meta({ description: "Who may use it, as its operator says; null where nothing is published." }),
          listings: z.array(listingSchema),
          delist_url: z.string().nullable(),
          lookup_url: z.string().nullable(),
          notes: z.string().nullable(),
          health: z.array(
            z.object({
              kind: z.enum(TARGET_KINDS),
              state: z.enum(["healthy", "refused", "silent", "wildcard", "unreachable", "unknown"]),
              reason: z.string().nullable(),
              remedy: z.string().nullable(),
              tested_at: time.nullable(),
            }),
          ),
        })
        .meta({ title: "Blacklist" }),
    ),
  })
  .meta({ title: "BlacklistCatalogue" });
