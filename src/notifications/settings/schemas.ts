import { z } from "zod";
import { flagField, nullableText, nullableTime, textField, timeField } from "../../foundation/http/schema-fields.ts";
import { SEVERITIES } from "../../foundation/base/severity.ts";
import { recipientSchema, recipientsSchema } from "../../foundation/mail/recipients.ts";
import { MAIL_KINDS } from "../mail/mail-subscriptions.ts";

const RECIPIENTS_MAX = 10;

const recipients = recipientsSchema({
  most: RECIPIENTS_MAX,
  description:
    "Receive alert mail about all targets and domains, in addition to the recipients of a single one. An address in both receives one mail.",
});

/** Body of `PATCH /v1/notifications`: only given fields change; null removes. */
export const notificationsChangeSchema = (webhookUrl: z.ZodType<string, string>) =>
  z
    .strictObject({
      webhook_url: webhookUrl.nullable().optional().meta({ description: "Receives every event; null removes it." }),
      recipients: recipients.optional(),
      blacklist_severity_min: z
        .enum(SEVERITIES)
        .nullable()
        .optional()
        .meta({ description: "Listings of a lower severity are not sent; null for the default." }),
      blacklist_digest: z
        .enum(["off", "daily", "weekly"])
        .optional()
        .meta({ description: "How often all listings are mailed." }),
    })
    .meta({ title: "NotificationsChange" });

/** Body of `PATCH /v1/notifications/mail`. */
export const mailChangeSchema = z
  .strictObject({
    recipient: recipientSchema.meta({ description: "The address that the mail goes to." }),
    kind: z.enum(MAIL_KINDS).meta({ description: "Which mail." }),
    enabled: flagField("False stops it, true resumes it."),
  })
  .meta({ title: "MailChange" });

export const notificationsSchema = z
  .object({
    mode: z
      .enum(["live", "test"])
      .meta({ description: "The mode of the calling key. Each mode has its own settings." }),
    webhook_url: nullableText(
      "Receives every event, in addition to the URL of its target, domain or job. If both are the same URL, the event is sent once.",
    ),
    webhook_configured: flagField(
      "Whether events are sent; false also after the receiver responded 410, until the URL is set again.",
    ),
    recipients: z.array(z.string()).meta({ description: "Addresses that receive alert mail." }),
    blacklist_severity_min: z.enum(SEVERITIES).nullable().meta({
      description:
        "Listings of a lower severity are not sent; they remain in the history and the event feed. Null: webhooks get all, mail those from `medium`. A target can override it (`alert_severity_min`).",
    }),
    blacklist_digest: z.enum(["off", "daily", "weekly"]).meta({
      description:
        "Mail about all listings to these recipients and those of the targets, at 06:00 UTC; weekly on Mondays.",
    }),
    stopped: z
      .array(
        z.object({
          recipient: textField("Who receives it no longer."),
          kind: z.enum(MAIL_KINDS).meta({ description: "Which mail." }),
          at: timeField("When it was stopped."),
        }),
      )
      .meta({
        description:
          "Mail that recipients stopped by the link in it, or that `PATCH /v1/notifications/mail` stopped. It stays stopped until it is resumed, whoever is added as a recipient.",
      }),
    updated_at: nullableTime("Null if nothing has been set."),
  })
  .meta({ title: "Notifications" });
