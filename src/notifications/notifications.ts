import { type Clock, isoTime, nextTurn } from "../base/clock.ts";
import { AppError } from "../base/errors.ts";
import { nextDigestMs } from "../base/digest-schedule.ts";
import type { Db, Tx } from "../db/open.ts";
import type { UrlMove } from "../webhooks/move-store.ts";
import { type RecipientDomains, recipientsProblem } from "../mail/recipients.ts";
import type { NotificationDefaults, NotificationsOwner, NotificationsStore } from "./store.ts";

export interface NotificationsDeps {
  readonly db: Db;
  readonly store: NotificationsStore;
  /** Turns a URL on again that its receiver had turned off. */
  readonly turnOnUrl: (tx: Tx, owner: NotificationsOwner, url: string) => void;
  /** Whether the receiver of a URL had it turned off. */
  readonly isUrlOff: (owner: NotificationsOwner, url: string) => boolean;
  /** Moves some of what waits for the default URL to the new one, or cancels it; true when there may be more. */
  readonly moveSome: (tx: Tx, owner: NotificationsOwner, move: UrlMove) => boolean;
  readonly clock: Clock;
  /** Whether mail can be sent at all. */
  readonly hasMail: boolean;
  /** At which domains recipients may be. */
  readonly recipientDomains: RecipientDomains;
}

/** The default webhook and recipients of an account, live and test each for itself. */
export const createNotifications = (deps: NotificationsDeps) => {
  const { db, store, turnOnUrl, isUrlOff, moveSome, clock, hasMail, recipientDomains } = deps;
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
        webhook_configured: webhookUrl !== null && !isUrlOff({ accountId, mode }, webhookUrl),
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
        if (to !== undefined && to !== null) turnOnUrl(tx, owner, to);
        const from = before.webhookUrl;
        return to === undefined || from === null || from === to ? null : { subject: null, from, to };
      });
      if (move === null) return;
      while (await db.commit((tx) => moveSome(tx, owner, move))) await nextTurn();
    },
  };
};

export type Notifications = ReturnType<typeof createNotifications>;
