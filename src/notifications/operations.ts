import type { Operation } from "../http/openapi.ts";
import { BODY_ERRORS } from "../http/operation-errors.ts";
import { createUrlPolicy } from "../net/fetch-url.ts";
import { webhookUrlSchema } from "../webhooks/webhook-urls.ts";
import { notificationsChangeSchema, notificationsSchema } from "./schemas.ts";

const TAG = "Notifications";

const NOTIFICATIONS = {
  mode: "live",
  webhook_url: "https://example.com/hook",
  webhook_configured: true,
  recipients: ["ops@example.com"],
  blacklist_severity_min: null,
  blacklist_digest: "daily",
  updated_at: "2026-01-01T00:00:00.000Z",
};

/** The routes of an account's defaults, as the OpenAPI document describes them. */
export const NOTIFICATIONS_OPERATIONS: readonly Operation[] = [
  {
    method: "GET",
    path: "/v1/notifications",
    tag: TAG,
    summary: "The default webhook and recipients of the account, for the key's mode",
    responses: { 200: { description: "The settings.", schema: notificationsSchema, example: NOTIFICATIONS } },
    errors: ["insufficient_scope"],
  },
  {
    method: "PATCH",
    path: "/v1/notifications",
    tag: TAG,
    summary: "Change the default webhook and recipients of the account, for the key's mode",
    description:
      "Only what is given changes; null removes the URL. The defaults come on top of the webhook and recipients of a single target, domain or job.",
    body: {
      schema: notificationsChangeSchema(webhookUrlSchema(createUrlPolicy([]))),
      example: { webhook_url: "https://example.com/hook", recipients: ["ops@example.com"] },
    },
    responses: { 200: { description: "The settings.", schema: notificationsSchema, example: NOTIFICATIONS } },
    errors: ["insufficient_scope", ...BODY_ERRORS],
  },
];
