import { declareRoute } from "../../foundation/http/route.ts";
import type { UrlPolicy } from "../../foundation/net/fetch-url.ts";
import { webhookUrlSchema } from "../webhooks/webhook-urls.ts";
import { mailChangeSchema, notificationsChangeSchema, notificationsSchema } from "./schemas.ts";

const TAG = "Notifications";
const PATH = "/v1/notifications";

const NOTIFICATIONS = {
  mode: "live",
  webhook_url: "https://example.com/hook",
  webhook_configured: true,
  recipients: ["ops@example.com"],
  blacklist_severity_min: null,
  blacklist_digest: "daily",
  stopped: [{ recipient: "anna@example.com", kind: "blocklist_digest", at: "2026-01-01T00:00:00.000Z" }],
  updated_at: "2026-01-01T00:00:00.000Z",
};

const responses = { 200: { description: "The settings.", schema: notificationsSchema, example: NOTIFICATIONS } };

export const GET_NOTIFICATIONS = declareRoute({
  ...{ method: "GET", path: PATH, operationId: "getNotifications", tag: TAG },
  summary: "Get the default webhook and recipients",
  description: "Returns the settings of the account for the key's mode.",
  scope: "webhooks:read",
  responses,
});

/** `policy`: which URLs are allowed. */
export const updateNotifications = (policy: UrlPolicy) =>
  declareRoute({
    ...{ method: "PATCH", path: PATH, operationId: "updateNotifications", tag: TAG },
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
  ...{ method: "PATCH", path: `${PATH}/mail`, operationId: "setNotificationMail", tag: TAG },
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
