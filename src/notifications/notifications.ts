import { type Clock, isoTime } from "../base/clock.ts";
import { AppError } from "../base/errors.ts";
import { nextDigestMs } from "../base/digest-schedule.ts";
import type { Db } from "../db/open.ts";
import type { WebhookUrls } from "../webhooks/webhook-urls.ts";
import { type RecipientDomains, recipientsProblem } from "../mail/recipients.ts";
import type { NotificationDefaults, NotificationsOwner, NotificationsStore } from "./store.ts";

export interface NotificationsDeps {
  readonly db: Db;
  readonly store: NotificationsStore;
  readonly urls: WebhookUrls;
  readonly clock: Clock;
  /** Whether mail can be sent at all. */
  readonly hasMail: boolean;
  /** At which domains recipients may be. */
  readonly recipientDomains: RecipientDomains;
}

/** The default webhook and recipients of an account, live and test each for itself. */
export const createNotifications = (deps: NotificationsDeps) => {
  const { db, store, urls, clock, hasMail, recipientDomains } = deps;
  const refuseRecipients = (recipients: readonly string[]): void => {
    const message =
      recipients.length === 0 || hasMail
        ? recipientsProblem(recipients, recipientDomains)
        : "This service sends no mail: POSTWARDEN_NOTIFY_SMTP_URL and POSTWARDEN_NOTIFY_FROM are not set";
    if (message !== null) throw new AppError("Invalid request body", { issues: [{ path: "recipients", message }] });
  };
  return {
    /** The settings as the interface shows them. */
    view({ accountId, mode }: NotificationsOwner) {
      const row = store.find({ accountId, mode });
      const webhookUrl = row?.webhookUrl ?? null;
      return {
        mode,
        webhook_url: webhookUrl,
        webhook_configured: webhookUrl !== null && !urls.isDisabled({ accountId, mode }, webhookUrl),
        recipients: row?.recipients ?? [],
        blacklist_severity_min: row?.blacklistSeverityMin ?? null,
        blacklist_digest: row?.blacklistDigest ?? "off",
        updated_at: row === undefined ? null : isoTime(row.updatedAtMs),
      };
    },

    /** Changes what is given. Throws `Invalid request body` for recipients whom the service sends no mail. */
    async change({ accountId, mode }: NotificationsOwner, wanted: Partial<NotificationDefaults>): Promise<void> {
      if (wanted.recipients !== undefined) refuseRecipients(wanted.recipients);
      const owner = { accountId, mode };
      const move = await db.commit((tx) => {
        const before = store.findDefaults(owner);
        const nowMs = clock.nowMs();
        const { webhookUrl: to, blacklistDigest: digest } = wanted;
        const due = digest === undefined ? {} : { blacklistDigestDueAtMs: nextDigestMs(digest, nowMs) };
        store.save(tx, { ...owner, ...before, ...wanted, ...due, updatedAtMs: nowMs });
        if (to !== undefined && to !== null) urls.enable(tx, owner, to);
        const from = before.webhookUrl;
        return to === undefined || from === null || from === to ? null : { from, to };
      });
      if (move !== null) await urls.moveDefault(owner, move.from, move.to);
    },
  };
};

export type Notifications = ReturnType<typeof createNotifications>;
