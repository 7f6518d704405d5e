import type { Database as Sqlite } from "bun:sqlite";
import { newId } from "../../foundation/base/secrets.ts";
import type { Db, Tx } from "../../foundation/db/open.ts";
import { statements } from "../../foundation/db/statements.ts";
import type { MailQueue, QueuedMail } from "../../notifications/mail/mail-batcher.ts";
import type { JobRow } from "./job-store.ts";

/** A list that has ended, for one recipient. */
export interface QueuedListMail extends QueuedMail {
  readonly accountId: string;
  /** `number` of the job. */
  readonly job: number;
}

/** Lists in one mail. */
const ROWS_MAX = 100;

const prepare = (sqlite: Sqlite) =>
  statements({
    insert: () =>
      sqlite.prepare<unknown, [string, string, string, number, number]>(
        "INSERT INTO bulk_mails (id, recipient, account_id, job, created_at_ms) VALUES (?, ?, ?, ?, ?)",
      ),
    recipients: () =>
      sqlite.prepare<{ recipient: string }, [string, number]>(
        "SELECT DISTINCT recipient FROM bulk_mails WHERE recipient > ? ORDER BY recipient LIMIT ?",
      ),
    rowsFor: () =>
      sqlite.prepare<QueuedListMail, [string, number]>(
        `SELECT id, account_id AS accountId, job, created_at_ms AS createdAtMs FROM bulk_mails
      WHERE recipient = ? ORDER BY id LIMIT ?`,
      ),
    remove: () => sqlite.prepare<unknown, [string]>("DELETE FROM bulk_mails WHERE id = ?"),
  });

/** The mails about lists that have ended, written in the transaction that ends the list. */
export class ListMailStore implements MailQueue<QueuedListMail> {
  readonly #sql;

  constructor({ sqlite }: Pick<Db, "sqlite">) {
    this.#sql = prepare(sqlite);
  }

  /** Queues the mail of a job, if one is wanted. Test keys send no mail, and an erased address gets no mail. */
  queue(_tx: Tx, { number, accountId, mode, notifyEmail }: JobRow, nowMs: number): void {
    if (mode === "live" && notifyEmail?.includes("@") === true)
      this.#sql.insert.run(newId(), notifyEmail, accountId, number, nowMs);
  }

  recipients(after: string, limit: number): readonly string[] {
    return this.#sql.recipients.all(after, limit).map(({ recipient }) => recipient);
  }

  rowsFor(recipient: string): readonly QueuedListMail[] {
    return this.#sql.rowsFor.all(recipient, ROWS_MAX);
  }

  remove(_tx: Tx, rows: readonly QueuedListMail[]): void {
    for (const { id } of rows) this.#sql.remove.run(id);
  }
}
