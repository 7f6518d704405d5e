import { and, asc, eq, lte, type SQL, sql } from "drizzle-orm";
import type { Owner } from "../../foundation/base/secrets.ts";
import { OF_ENABLED_ACCOUNT, statements } from "../../foundation/db/statements.ts";
import type { Db, Tx } from "../../foundation/db/open.ts";
import { accountNotifications } from "../../foundation/db/schema-webhooks.ts";
import { nextDigestMs } from "../../foundation/base/days.ts";
import { isoTime } from "../../foundation/base/clock.ts";
import { AppError } from "../../foundation/base/errors.ts";
import type { DbClock } from "../../foundation/db/runtime.ts";
import { NO_MAIL_PROBLEM, type RecipientDomains, recipientsProblem } from "../../foundation/mail/recipients.ts";
import type { MailSubscriptions, MailTopic } from "../mail/subscription-store.ts";
import type { WebhookUrls } from "../webhooks/url-store.ts";

/** The settings of an account and mode, in addition to the URL and recipients of a target, domain or job. */
export type NotificationsRow = Readonly<typeof accountNotifications.$inferSelect>;
export type NotificationDefaults = Omit<NotificationsRow, "accountId" | "mode" | "updatedAtMs">;

const NOTHING: NotificationDefaults = {
  webhookUrl: null,
  recipients: [],
  blacklistSeverityMin: null,
  blacklistDigest: "off",
  blacklistDigestDueAtMs: null,
};

const table = accountNotifications;
const belongsTo = ({ accountId, mode }: Owner): SQL | undefined =>
  and(eq(table.accountId, accountId), eq(table.mode, mode));

export class NotificationsStore {
  readonly #sql;

  constructor(private readonly db: Db) {
    const ofOwner = [eq(table.accountId, sql.placeholder("accountId")), eq(table.mode, sql.placeholder("mode"))];
    this.#sql = statements({
      find: () =>
        db.orm
          .select()
          .from(table)
          .where(and(...ofOwner))
          .prepare(),
    });
  }

  /** Undefined if nothing has been set. */
  find({ accountId, mode }: Owner): NotificationsRow | undefined {
    return this.#sql.find.get({ accountId, mode });
  }

  /** The settings of an owner, or the initial ones. */
  findDefaults(owner: Owner): NotificationDefaults {
    return this.find(owner) ?? NOTHING;
  }

  /** Accounts and modes whose digest of listings is due, the longest waiting first. */
  dueDigests(nowMs: number, limit: number) {
    const due = and(lte(table.blacklistDigestDueAtMs, nowMs), sql.raw(OF_ENABLED_ACCOUNT));
    const rows = this.db.orm
      .select()
      .from(table)
      .where(due)
      .orderBy(asc(table.blacklistDigestDueAtMs))
      .limit(limit)
      .all();
    return rows.map(({ accountId, mode, recipients, blacklistSeverityMin: severityMin, blacklistDigest }) => {
      const period = blacklistDigest === "weekly" ? ("weekly" as const) : ("daily" as const);
      return { accountId, mode, recipients, severityMin, period };
    });
  }

  postponeDigest(_tx: Tx, owner: Owner, dueAtMs: number | null) {
    this.db.orm.update(table).set({ blacklistDigestDueAtMs: dueAtMs }).where(belongsTo(owner)).run();
  }

  save(_tx: Tx, { accountId, mode, ...values }: NotificationsRow) {
    const target = [table.accountId, table.mode];
    this.db.orm
      .insert(table)
      .values({ accountId, mode, ...values })
      .onConflictDoUpdate({ target, set: values })
      .run();
  }
}

/** A kind of mail to a recipient, and whether it is to be sent. */
export interface MailChange extends Pick<MailTopic, "recipient" | "kind"> {
  readonly isOn: boolean;
}

const TEST_PROBLEM = { path: "recipient", message: "Mail is sent for live keys only. Use a live key." };

/** The default webhook and recipients of each account and mode. */
export class Notifications {
  constructor(
    private readonly runtime: DbClock,
    private readonly deps: {
      store: NotificationsStore;
      urls: WebhookUrls;
      subscriptions: MailSubscriptions;
      /** Whether the service can send mail. */
      hasMail: boolean;
      /** Domains of allowed recipients. */
      recipientDomains: RecipientDomains;
    },
  ) {}

  /** The settings as the API shows them. */
  view({ accountId, mode }: Owner) {
    const { store, urls, subscriptions } = this.deps;
    const row = store.find({ accountId, mode });
    // Mail is only sent for live keys.
    const stopped = mode === "live" ? subscriptions.stopped(accountId) : [];
    const webhookUrl = row?.webhookUrl ?? null;
    return {
      mode,
      webhook_url: webhookUrl,
      webhook_configured: webhookUrl !== null && !urls.isDisabled({ accountId, mode }, webhookUrl),
      recipients: row?.recipients ?? [],
      blacklist_severity_min: row?.blacklistSeverityMin ?? null,
      blacklist_digest: row?.blacklistDigest ?? "off",
      stopped: stopped.map(({ recipient, kind, stoppedAtMs }) => ({
        recipient,
        kind,
        at: isoTime(stoppedAtMs ?? 0),
      })),
      updated_at: row === undefined ? null : isoTime(row.updatedAtMs),
    };
  }

  /** Changes the given fields. Throws `Invalid request body` for recipients that the service sends no mail to. */
  async change({ accountId, mode }: Owner, change: Partial<NotificationDefaults>) {
    const { store, urls } = this.deps;
    const { db, clock } = this.runtime;
    if (change.recipients !== undefined) this.#refuseRecipients(change.recipients);
    const owner = { accountId, mode };
    const { webhookUrl: to, blacklistDigest: digest } = change;
    const from = await db.commit((tx) => {
      const before = store.findDefaults(owner);
      const nowMs = clock.nowMs();
      const due = digest === undefined ? {} : { blacklistDigestDueAtMs: nextDigestMs(digest, nowMs) };
      store.save(tx, { ...owner, ...before, ...change, ...due, updatedAtMs: nowMs });
      if (to !== undefined && to !== null) urls.enable(tx, owner, to);
      return before.webhookUrl;
    });
    if (to !== undefined && from !== null && from !== to) await urls.moveDefault(owner, from, to);
  }

  /** Stops or resumes a kind of mail to a recipient, as the link in the mail does. Test keys send no mail. */
  async setMail({ accountId, mode }: Owner, { recipient, kind, isOn }: MailChange) {
    if (mode === "test") throw new AppError("Invalid request body", { issues: [TEST_PROBLEM] });
    await this.deps.subscriptions.set({ accountId, recipient, kind }, isOn);
  }

  #refuseRecipients(recipients: readonly string[]) {
    const { hasMail, recipientDomains } = this.deps;
    const canSend = recipients.length === 0 || hasMail;
    const message = canSend ? recipientsProblem(recipients, recipientDomains) : NO_MAIL_PROBLEM;
    if (message !== null) throw new AppError("Invalid request body", { issues: [{ path: "recipients", message }] });
  }
}
