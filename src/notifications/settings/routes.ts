import { camelKeys } from "../../foundation/base/key-case.ts";
import type { Guard } from "../../foundation/http/guard.ts";
import { handle, serveRoutes, declareRoute } from "../../foundation/http/route.ts";
import type { UrlPolicy } from "../../foundation/net/fetch-url.ts";
import type { Notifications } from "./store.ts";
import { webhookUrlSchema } from "../webhooks/url-store.ts";
import { z } from "zod";
import {
  flagField,
  nullableText,
  nullableTime,
  textField,
  timeField,
  enumField,
  listField,
  namedBody,
  namedResponse,
  nullableEnum,
  optionalEnum,
  textsField,
  okResponse,
} from "../../foundation/http/schema-fields.ts";
import { SEVERITIES } from "../../foundation/base/severity.ts";
import { recipientSchema, recipientsSchema } from "../../foundation/mail/recipients.ts";
import { MAIL_KINDS } from "../mail/subscription-store.ts";

const RECIPIENTS_MAX = 10;

export const accountRecipients = recipientsSchema({
  most: RECIPIENTS_MAX,
  description:
    "Receive alert mail about all targets and domains, in addition to the recipients of a single one. An address in both receives one mail.",
});

/** Body of `PATCH /v1/notifications`: only given fields change; null removes. */
export const notificationsChangeSchema = (webhookUrl: z.ZodType<string, string>) =>
  namedBody("NotificationsChange", {
    webhook_url: webhookUrl.nullable().optional().meta({ description: "Receives every event; null removes it." }),
    recipients: accountRecipients.optional(),
    blacklist_severity_min: z
      .enum(SEVERITIES)
      .nullable()
      .optional()
      .meta({ description: "Listings of a lower severity are not sent; null for the default." }),
    blacklist_digest: optionalEnum(["off", "daily", "weekly"], "How often all listings are mailed."),
  });

/** Body of `PATCH /v1/notifications/mail`. */
export const mailChangeSchema = namedBody("MailChange", {
  recipient: recipientSchema.meta({ description: "The address that the mail goes to." }),
  kind: enumField(MAIL_KINDS, "Which mail."),
  enabled: flagField("False stops it, true resumes it."),
});

export const notificationsSchema = namedResponse("Notifications", {
  mode: enumField(["live", "test"], "The mode of the calling key. Each mode has its own settings."),
  webhook_url: nullableText(
    "Receives every event, in addition to the URL of its target, domain or job. If both are the same URL, the event is sent once.",
  ),
  webhook_configured: flagField(
    "Whether events are sent; false also after the receiver responded 410, until the URL is set again.",
  ),
  recipients: textsField("Addresses that receive alert mail."),
  blacklist_severity_min: nullableEnum(
    SEVERITIES,
    "Listings of a lower severity are not sent; they remain in the history and the event feed. Null: webhooks get all, mail those from `medium`. A target can override it (`alert_severity_min`).",
  ),
  blacklist_digest: enumField(
    ["off", "daily", "weekly"],
    "Mail about all listings to these recipients and those of the targets, at 06:00 UTC; weekly on Mondays.",
  ),
  stopped: listField(
    z.object({
      recipient: textField("Who receives it no longer."),
      kind: enumField(MAIL_KINDS, "Which mail."),
      at: timeField("When it was stopped."),
    }),
    "Mail that recipients stopped by the link in it, or that `PATCH /v1/notifications/mail` stopped. It stays stopped until it is resumed, whoever is added as a recipient.",
  ),
  updated_at: nullableTime("Null if nothing has been set."),
});

const TAG = "Notifications";
const PATH = "/v1/notifications";

const EXAMPLE = {
  mode: "live",
  webhook_url: "https://example.com/hook",
  webhook_configured: true,
  recipients: ["ops@example.com"],
  blacklist_severity_min: null,
  blacklist_digest: "daily",
  stopped: [{ recipient: "anna@example.com", kind: "blocklist_digest", at: "2026-01-01T00:00:00.000Z" }],
  updated_at: "2026-01-01T00:00:00.000Z",
};

const responses = { 200: okResponse("The settings.", notificationsSchema, EXAMPLE) };

export const GET_NOTIFICATIONS = declareRoute({
  method: "GET",
  path: PATH,
  operationId: "getNotifications",
  tag: TAG,
  summary: "Get the default webhook and recipients",
  description: "Returns the settings of the account for the key's mode.",
  scope: "webhooks:read",
  responses,
});

/** `policy`: which URLs are allowed. */
export const updateNotifications = (policy: UrlPolicy) =>
  declareRoute({
    method: "PATCH",
    path: PATH,
    operationId: "updateNotifications",
    tag: TAG,
    summary: "Change the default webhook and recipients",
    description:
      "Changes only the fields that are given; null removes the URL. Events and mail go to the defaults in addition to the webhook and recipients of the target, domain or job.",
    scope: "webhooks:write",
    body: {
      schema: notificationsChangeSchema(webhookUrlSchema(policy)),
      example: { webhook_url: "https://example.com/hook", recipients: ["ops@example.com"] },
    },
    responses,
  });

export const SET_MAIL = declareRoute({
  method: "PATCH",
  path: `${PATH}/mail`,
  operationId: "setNotificationMail",
  tag: TAG,
  summary: "Stop or resume a kind of mail to a recipient",
  description:
    "Does what the link in each mail does. Stopped mail is listed in `stopped`. Live keys only: test keys send no mail.",
  scope: "webhooks:write",
  body: {
    schema: mailChangeSchema,
    example: { recipient: "anna@example.com", kind: "blocklist_digest", enabled: true },
  },
  responses,
});

/** Serves the default webhook and recipients of the key's account and mode. */
export const createNotificationsRoutes = ({
  guard,
  notifications,
  rules,
}: {
  guard: Guard;
  notifications: Notifications;
  rules: UrlPolicy;
}) =>
  serveRoutes(guard, [
    handle(GET_NOTIFICATIONS, ({ caller }) => notifications.view(caller)),

    handle(SET_MAIL, async ({ body: { recipient, kind, enabled }, caller }) => {
      await notifications.setMail(caller, { recipient, kind, isOn: enabled });
      return notifications.view(caller);
    }),

    handle(updateNotifications(rules), async ({ body, caller }) => {
      await notifications.change(caller, camelKeys(body));
      return notifications.view(caller);
    }),
  ]);
