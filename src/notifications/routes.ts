import { Elysia } from "elysia";
import { readJson } from "../http/body.ts";
import type { Guard } from "../http/guard.ts";
import type { UrlPolicy } from "../net/fetch-url.ts";
import { webhookUrlSchema } from "../webhooks/webhook-urls.ts";
import type { Notifications } from "./notifications.ts";
import { notificationsChangeSchema } from "./schemas.ts";

export interface NotificationsRouteDeps {
  readonly guard: Guard;
  readonly notifications: Notifications;
  readonly rules: UrlPolicy;
}

const PATH = "/v1/notifications";

/** The default webhook and recipients of the key's account and mode. */
export const createNotificationsRoutes = ({ guard, notifications, rules }: NotificationsRouteDeps) => {
  const changeSchema = notificationsChangeSchema(webhookUrlSchema(rules));
  return new Elysia({ name: "notifications" })
    .use(guard)
    .get(PATH, async ({ caller }) => notifications.view(caller), { demand: { scope: "webhooks:read" } })
    .patch(
      PATH,
      async ({ request, caller }) => {
        const wanted = await readJson(request, changeSchema);
        const { webhook_url: webhookUrl, recipients, blacklist_severity_min, blacklist_digest } = wanted;
        await notifications.change(caller, {
          ...(webhookUrl === undefined ? {} : { webhookUrl }),
          ...(recipients === undefined ? {} : { recipients }),
          ...(blacklist_severity_min === undefined ? {} : { blacklistSeverityMin: blacklist_severity_min }),
          ...(blacklist_digest === undefined ? {} : { blacklistDigest: blacklist_digest }),
        });
        return notifications.view(caller);
      },
      { parse: "none", demand: { scope: "webhooks:write" } },
    );
};
