import { z } from "zod";
import { CATEGORIES, CONFIDENCES, SEVERITIES, TARGET_KINDS } from "../dnsbl/blocklist.ts";
import { labelSchema } from "../http/label.ts";
import { recipientsSchema } from "../mail/recipients.ts";
import { checkSchema } from "./check-body.ts";
import { TARGET_STATUSES } from "./store.ts";

const TARGET_CHARACTERS_MAX = 320;
const MUTED_LISTS_MAX = 200;
const RECIPIENTS_MAX = 10;

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

/** Body of `POST /v1/blacklist/targets`; what a URL may be is for the webhooks to say. */
export const targetOrderSchema = (webhookUrl: z.ZodType<string, string>) =>
  z
    .strictObject({
      target: targetText.meta({
        description: "A domain below a public suffix, or a public IPv4 or IPv6 address.",
        examples: ["example.com"],
      }),
      label: label.nullable().optional(),
      monitoring_enabled: z
        .boolean()
        .optional()
        .meta({ description: "Whether scheduled checks run; true unless told." }),
      webhook_url: webhookUrl.nullable().optional(),
      recipients: recipients.optional(),
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
});

export const noFiltersSchema = z.strictObject({});

const time = z.iso.datetime({ precision: 3 });

export const targetSchema = z
  .object({
    id: z.uuid(),
    kind: z.enum(TARGET_KINDS),
    value: z.string().meta({ description: "The normalized target, in the form the lists are queried with." }),
    label: z.string().nullable(),
    status: z.enum(TARGET_STATUSES),
    monitoring_enabled: z.boolean(),
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
    created_at: time,
  })
  .meta({ title: "BlacklistTarget" });

const cursor = z.string().nullable();

export const targetsSchema = z
  .object({ targets: z.array(targetSchema), next_cursor: cursor })
  .meta({ title: "BlacklistTargetList" });

export const checkedSchema = z
  .object({ target: targetSchema, check: checkSchema })
  .meta({ title: "BlacklistCheckedTarget" });

export const checksSchema = z
  .object({ checks: z.array(checkSchema), next_cursor: cursor })
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
