import { forEachIsolated } from "../../foundation/base/in-steps.ts";
import type { Owner } from "../../foundation/base/secrets.ts";
import type { Tx } from "../../foundation/db/open.ts";
import type { Runtime } from "../../foundation/db/runtime.ts";
import type { Mailer } from "../../foundation/net/mailer.ts";
import { composeMail } from "./compose-mail.ts";
import type { MailContent, MailLinks } from "./mail-content.ts";
import type { MaintenanceWindows } from "../windows/windows.ts";
import { type MailSubscriptions, mailOffOf, type MailTopic } from "./subscription-store.ts";

/** Something that waits in a mail queue for one recipient. */
export interface QueuedMail {
  readonly id: string;
  readonly createdAtMs: number;
}

/** A durable queue of what is to be mailed. */
export interface MailQueue<Row extends QueuedMail> {
  /** Recipients with queued rows, in the order of their addresses, after `after`. */
  recipients(after: string, limit: number): readonly string[];
  /** The rows of a recipient, the oldest first. */
  rowsFor(recipient: string): readonly Row[];
  remove(tx: Tx, rows: readonly Row[]): void;
}

/** How mail leaves the service: the relay, the links in it, and who wants it no longer. */
export interface Mailing extends Pick<MailLinks, "baseUrl" | "brandName"> {
  readonly mailer: Mailer;
  readonly subscriptions: MailSubscriptions;
  /** When nothing is sent. */
  readonly windows: Pick<MaintenanceWindows, "mustWait" | "waitedUntilMs">;
}

export interface MailBatcherDeps<Row extends QueuedMail> {
  /** What the log calls such a mail: `DMARC alert mail`. */
  readonly name: string;
  readonly queue: MailQueue<Row>;
  readonly mailing: Mailing;
  /** The mail about some rows, never none of them; null when there is nothing left to say: the rows are removed. */
  readonly compose: (rows: readonly Row[], recipient: string) => Promise<MailContent | null> | MailContent | null;
  /** Rows of different accounts and kinds go into mails of their own. Null: its account is not known any more. */
  readonly topicOf: (row: Row) => Omit<MailTopic, "recipient"> | null;
  /** The first row of a mail waits this long for others. */
  readonly gatherMs: number;
  /** A recipient is mailed at most once in this time. */
  readonly intervalMs: number;
}

export type MailRuntime = Pick<Runtime, "db" | "clock" | "log">;

/** After this long without success a mail is dropped: the next one says it better. */
const RETRY_MS_MAX = 24 * 60 * 60_000;
const RECIPIENTS_AT_ONCE = 100;

/**
 * Mails what is queued, one mail to each recipient about all of it. Rows are removed when the mail was accepted, refused for good or
 * is a day old; what a crash leaves in the queue is sent by the next run.
 */
export class MailBatcher<Row extends QueuedMail> {
  /** When each recipient was last mailed, monotonic. */
  readonly #mailedAtMs = new Map<string, number>();

  constructor(
    private readonly runtime: MailRuntime,
    private readonly deps: MailBatcherDeps<Row>,
  ) {}

  /** Sends all mails that are due. A failure of one does not stop the others. */
  async send() {
    const { queue, intervalMs } = this.deps;
    const nowMs = this.runtime.clock.monotonicMs();
    for (const [recipient, atMs] of this.#mailedAtMs)
      if (nowMs - atMs >= intervalMs) this.#mailedAtMs.delete(recipient);
    for (let after = ""; ;) {
      const recipients = queue.recipients(after, RECIPIENTS_AT_ONCE);
      const last = recipients.at(-1);
      if (last === undefined) return;
      const due = recipients.filter((recipient) => !this.#mailedAtMs.has(recipient));
      await forEachIsolated(due, (recipient) => this.#sendTo(recipient), { onFailure: this.#logFailure });
      after = last;
    }
  }

  async #sendTo(recipient: string) {
    const { queue, gatherMs, topicOf } = this.deps;
    const rows = queue.rowsFor(recipient);
    const [oldest] = rows;
    if (oldest === undefined) return;
    const ageMs = this.runtime.clock.nowMs() - oldest.createdAtMs;
    // What was queued while the system's clock was ahead waits no longer.
    if (ageMs >= 0 && ageMs < gatherMs) return;
    const groups = Map.groupBy(rows, (row) => {
      const { accountId = "", kind = "" } = topicOf(row) ?? {};
      return `${kind}:${accountId}`;
    });
    const send = (group: readonly Row[]) => this.#sendOne(recipient, group);
    const ready = [...groups.values()].filter((group) => !this.#mustWait(group));
    await forEachIsolated(ready, send, { onFailure: this.#logFailure });
  }

  /** Whether a maintenance window of their account is on. */
  #mustWait([oldest]: readonly Row[]) {
    const owner = this.#ownerOf(oldest);
    return owner !== null && this.deps.mailing.windows.mustWait(owner, oldest?.createdAtMs ?? 0);
  }

  /** Since when the oldest row could be sent. */
  #waitingSinceMs([oldest]: readonly Row[]) {
    const [owner, createdAtMs] = [this.#ownerOf(oldest), oldest?.createdAtMs ?? 0];
    return owner === null ? createdAtMs : this.deps.mailing.windows.waitedUntilMs(owner, createdAtMs);
  }

  /** Mail is sent for live keys only. */
  #ownerOf(row: Row | undefined): Owner | null {
    const topic = row === undefined ? null : this.deps.topicOf(row);
    return topic === null ? null : { accountId: topic.accountId, mode: "live" };
  }

  async #sendOne(recipient: string, rows: readonly Row[]) {
    const { name, mailing, compose } = this.deps;
    const links = await this.#linksFor(recipient, rows);
    const content = links === null ? null : await compose(rows, recipient);
    if (links === null || content === null) return this.#remove(rows);
    const mail = { to: recipient, ...composeMail(content, links), oneClickUrl: oneClickUrlOf(links) };
    const sent = await mailing.mailer(mail);
    if (sent.ok) {
      this.#mailedAtMs.set(recipient, this.runtime.clock.monotonicMs());
      return this.#remove(rows);
    }
    const { isFinal, problem } = sent.error;
    const isTooOld = this.runtime.clock.nowMs() - this.#waitingSinceMs(rows) > RETRY_MS_MAX;
    if (!isFinal && !isTooOld)
      return this.runtime.log.warn(`${name} not accepted, will be retried`, { error: problem });
    this.runtime.log.error(`${name} dropped`, { entries: rows.length, error: problem });
    await this.#remove(rows);
  }

  /** The links of a mail about rows of one topic; null when its recipient has stopped such mail. */
  async #linksFor(recipient: string, [row]: readonly Row[]): Promise<MailLinks | null> {
    const { mailing, topicOf } = this.deps;
    const { baseUrl, brandName, subscriptions } = mailing;
    const topic = row === undefined ? null : topicOf(row);
    if (topic === null) return { baseUrl, brandName, off: null };
    const subscription = await subscriptions.open({ ...topic, recipient });
    return subscription.stoppedAtMs === null ? { baseUrl, brandName, off: mailOffOf(subscription) } : null;
  }

  #remove(rows: readonly Row[]) {
    return this.runtime.db.commit((tx) => this.deps.queue.remove(tx, rows));
  }

  readonly #logFailure = (_item: unknown, error: unknown) =>
    this.runtime.log.error(`${this.deps.name} failed, will be retried in the next run`, { error });
}

/** The URL for RFC 8058, which only allows https. */
const oneClickUrlOf = ({ baseUrl, off }: MailLinks) =>
  baseUrl?.startsWith("https:") === true && off !== null ? baseUrl + off.path : null;
