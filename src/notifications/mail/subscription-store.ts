import { isSecretToken, newSecretToken } from "../../foundation/base/secrets.ts";
import type { Tx, Db } from "../../foundation/db/open.ts";
import type { DbClock } from "../../foundation/db/runtime.ts";
import type { MailOff } from "./mail-content.ts";
import { and, asc, eq, isNotNull } from "drizzle-orm";
import { mailSubscriptions } from "../../foundation/db/schema-webhooks.ts";

/** A kind of mail to a recipient of an account, with the token of its links. */
export type MailSubscription = Readonly<typeof mailSubscriptions.$inferSelect>;

/** What a recipient can stop. */
export type MailTopic = Pick<MailSubscription, "accountId" | "recipient" | "kind">;

const subscriptions = mailSubscriptions;
const isTopic = ({ accountId, recipient, kind }: MailTopic) =>
  and(eq(subscriptions.accountId, accountId), eq(subscriptions.recipient, recipient), eq(subscriptions.kind, kind));

export class SubscriptionStore {
  constructor(private readonly db: Db) {}

  find(topic: MailTopic): MailSubscription | undefined {
    return this.db.orm.select().from(subscriptions).where(isTopic(topic)).get();
  }

  findByToken(token: string): MailSubscription | undefined {
    return this.db.orm.select().from(subscriptions).where(eq(subscriptions.token, token)).get();
  }

  insert(_tx: Tx, subscription: MailSubscription) {
    this.db.orm.insert(subscriptions).values(subscription).run();
  }

  setStopped(_tx: Tx, token: string, stoppedAtMs: number | null) {
    this.db.orm.update(subscriptions).set({ stoppedAtMs }).where(eq(subscriptions.token, token)).run();
  }

  /** What recipients of an account have stopped, by recipient. */
  listStopped(accountId: string, limit: number): MailSubscription[] {
    return this.db.orm
      .select()
      .from(subscriptions)
      .where(and(eq(subscriptions.accountId, accountId), isNotNull(subscriptions.stoppedAtMs)))
      .orderBy(asc(subscriptions.recipient), asc(subscriptions.kind))
      .limit(limit)
      .all();
  }
}

export const MAIL_KINDS = ["blocklist_alerts", "blocklist_digest", "dmarc_alerts", "dmarc_digest", "lists"] as const;
export type MailKind = (typeof MAIL_KINDS)[number];

/** What people call each kind. */
export const MAIL_KIND_NAMES: Readonly<Record<MailKind, string>> = {
  blocklist_alerts: "blocklist alerts",
  blocklist_digest: "blocklist digests",
  dmarc_alerts: "DMARC alerts",
  dmarc_digest: "DMARC digests",
  lists: "mails about lists",
};

/** What the audit log calls a change of a subscription. */
export const mailAction = (isOn: boolean): string => (isOn ? "notifications.resume" : "notifications.stop");

const LISTED_MAX = 500;

/** The path of the page that stops the mails of a token. */
export const offPath = (token: string): string => `/notifications/off/${token}`;

/** Who receives which kind of mail no longer. A recipient stops it by the link in the mail, a user in the settings. */
export class MailSubscriptions {
  constructor(
    private readonly runtime: DbClock,
    private readonly store: SubscriptionStore,
  ) {}

  /** The subscription that a mail belongs to; made for the first mail. */
  async open(topic: MailTopic): Promise<MailSubscription> {
    return this.store.find(topic) ?? this.runtime.db.commit((tx) => this.#openIn(tx, topic));
  }

  /** The subscription of a link; undefined for a link that no mail had. */
  findByToken(token: string): MailSubscription | undefined {
    return isSecretToken(token) ? this.store.findByToken(token) : undefined;
  }

  /** Stops or resumes a kind of mail to a recipient, whether or not there was one before. Repeating it changes nothing. */
  async set(topic: MailTopic, isOn: boolean): Promise<MailSubscription> {
    return this.runtime.db.commit((tx) => this.setIn(tx, topic, isOn));
  }

  /** `set` inside a transaction. */
  setIn(tx: Tx, topic: MailTopic, isOn: boolean): MailSubscription {
    const found = this.#openIn(tx, topic);
    if ((found.stoppedAtMs === null) === isOn) return found;
    const stoppedAtMs = isOn ? null : this.runtime.clock.nowMs();
    this.store.setStopped(tx, found.token, stoppedAtMs);
    return { ...found, stoppedAtMs };
  }

  /** What recipients of an account receive no longer; at most 500. */
  stopped(accountId: string): readonly MailSubscription[] {
    return this.store.listStopped(accountId, LISTED_MAX);
  }

  #openIn(tx: Tx, { accountId, recipient, kind }: MailTopic): MailSubscription {
    const found = this.store.find({ accountId, recipient, kind });
    if (found !== undefined) return found;
    const createdAtMs = this.runtime.clock.nowMs();
    const opened = { token: newSecretToken(), accountId, recipient, kind, stoppedAtMs: null, createdAtMs };
    this.store.insert(tx, opened);
    return opened;
  }
}

/** How the reader of a mail stops such mail. */
export const mailOffOf = ({ token, recipient, kind }: MailSubscription): MailOff => ({
  what: MAIL_KIND_NAMES[kind],
  recipient,
  path: offPath(token),
  command: `postwarden notifications stop ${recipient} --kind ${kind}`,
});
