import type { Guard } from "../../foundation/http/guard.ts";
import { handle, serveRoutes } from "../../foundation/http/route.ts";
import type { UrlPolicy } from "../../foundation/net/fetch-url.ts";
import type { Notifications } from "./notifications.ts";
import { GET_NOTIFICATIONS, SET_MAIL, updateNotifications } from "./operations.ts";

export interface NotificationsRouteOptions {
  readonly guard: Guard;
  readonly notifications: Notifications;
  readonly rules: UrlPolicy;
}

/** Serves the default webhook and recipients of the key's account and mode. */
export const createNotificationsRoutes = ({ guard, notifications, rules }: NotificationsRouteOptions) =>
  serveRoutes(guard, [
    handle(GET_NOTIFICATIONS, ({ caller }) => notifications.view(caller)),

    handle(SET_MAIL, async ({ body: { recipient, kind, enabled }, caller }) => {
      await notifications.setMail(caller, { recipient, kind, isOn: enabled });
      return notifications.view(caller);
    }),

    handle(updateNotifications(rules), async ({ body, caller }) => {
      const { webhook_url: webhookUrl, recipients, blacklist_severity_min, blacklist_digest } = body;
      await notifications.change(caller, {
        ...(webhookUrl === undefined ? {} : { webhookUrl }),
        ...(recipients === undefined ? {} : { recipients }),
        ...(blacklist_severity_min === undefined ? {} : { blacklistSeverityMin: blacklist_severity_min }),
        ...(blacklist_digest === undefined ? {} : { blacklistDigest: blacklist_digest }),
      });
      return notifications.view(caller);
    }),
  ]);
