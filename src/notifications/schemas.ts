import { z } from "zod";
import { SEVERITIES } from "../dnsbl/blocklist.ts";
import { recipientsSchema } from "../mail/recipients.ts";

const RECIPIENTS_MAX = 10;

const recipients = recipientsSchema({
  most: RECIPIENTS_MAX,
  description:
    "Addresses that alert mail about all targets and domains goes to, beside the recipients of a single one. An address that is in both gets one mail.",
});

/** Body of `PATCH /v1/notifications`: only what is given changes; null removes. What a URL may be is for the webhooks to say. */
export const notificationsChangeSchema = (webhookUrl: z.ZodType<string, string>) =>
  z
    .strictObject({
      webhook_url: webhookUrl.nullable().optional(),
      recipients: recipients.optional(),
      blacklist_severity_min: z.enum(SEVERITIES).nullable().optional(),
      blacklist_digest: z.enum(["off", "daily", "weekly"]).optional(),
    })
    .meta({ title: "NotificationsChange" });

export const notificationsSchema = z
  .object({
    mode: z.enum(["live", "test"]).meta({ description: "Of the calling key; the other mode has settings of its own." }),
    webhook_url: z.string().nullable().meta({
      description:
        "Where every event goes, beside the URL of its target, domain or job. Where both are the same URL, the event goes there once.",
    }),
    webhook_configured: z.boolean().meta({
      description: "Whether events are sent: false also when the receiver answered 410, until the URL is set again.",
    }),
    recipients: z.array(z.string()),
    blacklist_severity_min: z.enum(SEVERITIES).nullable().meta({
      description:
        "Listings on blocklists below it are not sent; they stay in the history and the event feed. Null: webhooks get all, mail those from `medium` on. A target can have its own (`alert_severity_min`).",
    }),
    blacklist_digest: z.enum(["off", "daily", "weekly"]).meta({
      description:
        "Mail about all listings, to these recipients and those of the targets: at 06:00 UTC, weekly on Mondays.",
    }),
    updated_at: z.iso.datetime({ precision: 3 }).nullable().meta({ description: "Null while nothing was ever set." }),
  })
  .meta({ title: "Notifications" });
