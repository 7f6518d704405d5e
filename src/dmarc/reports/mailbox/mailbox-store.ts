import type { Db, Tx } from "../../../foundation/db/open.ts";
import type { ReportOutcome } from "../report/outcome.ts";
import { statements } from "../../../foundation/db/statements.ts";

/** The UID up to which a mailbox was read, and how much was fetched on `usageDay`. */
export interface MailboxState {
  readonly uidValidity: string;
  readonly lastUid: number;
  readonly usageDay: number;
  readonly usageBytes: number;
}

/** A stored message and the outcome of its ingestion; both null when that is gone. */
export interface ProcessedMessage {
  readonly uid: number;
  readonly ingestion: string;
  readonly outcome: ReportOutcome | null;
  readonly reason: string | null;
}

const prepareStatements = ({ sqlite }: Pick<Db, "sqlite">) =>
  statements({
    find: () =>
      sqlite.prepare<MailboxState, [string]>(
        `SELECT uid_validity AS uidValidity, last_uid AS lastUid, usage_day AS usageDay, usage_bytes AS usageBytes
      FROM dmarc_mailboxes WHERE mailbox = ?`,
      ),
    clear: () => sqlite.prepare("DELETE FROM dmarc_mailboxes"),
    clearMarks: () => sqlite.prepare("DELETE FROM dmarc_mailbox_marks"),
    insert: () =>
      sqlite.prepare(
        `INSERT INTO dmarc_mailboxes (mailbox, uid_validity, last_uid, usage_day, usage_bytes) VALUES (?, ?, 0, ?, ?)`,
      ),
    advance: () => sqlite.prepare("UPDATE dmarc_mailboxes SET last_uid = ? WHERE mailbox = ?"),
    addUsage: () =>
      sqlite.prepare(
        `UPDATE dmarc_mailboxes SET usage_bytes = CASE usage_day WHEN $day THEN usage_bytes ELSE 0 END + $bytes, usage_day = $day
      WHERE mailbox = $mailbox`,
      ),
    addMark: () => sqlite.prepare("INSERT OR REPLACE INTO dmarc_mailbox_marks (uid, ingestion) VALUES (?, ?)"),
    countMarks: () => sqlite.prepare<{ count: number }, []>("SELECT count(*) AS count FROM dmarc_mailbox_marks"),
    isMarked: () => sqlite.prepare<unknown, [number]>("SELECT 1 FROM dmarc_mailbox_marks WHERE uid = ?"),
    processed: () =>
      sqlite.prepare<ProcessedMessage, [number]>(
        `SELECT m.uid, m.ingestion, i.outcome, i.reason FROM dmarc_mailbox_marks m LEFT JOIN dmarc_ingestions i ON i.id = m.ingestion
      WHERE m.uid <= (SELECT last_uid FROM dmarc_mailboxes) AND (i.id IS NULL OR i.status = 'done') ORDER BY m.uid LIMIT ?`,
      ),
    removeMark: () => sqlite.prepare("DELETE FROM dmarc_mailbox_marks WHERE uid = ? AND ingestion = ?"),
    removeIngestion: () => sqlite.prepare("DELETE FROM dmarc_ingestions WHERE id = ? AND status = 'done'"),
    removeRaw: () => sqlite.prepare("DELETE FROM dmarc_raw WHERE ingestion = ?"),
  });

/** The UID up to which the mailbox was read, and its messages that are still to be marked on the server. */
export class MailboxStore {
  readonly #sql;

  constructor(db: Pick<Db, "sqlite">) {
    this.#sql = prepareStatements(db);
  }

  /** Null for a mailbox that was not read yet. */
  find(mailbox: string): MailboxState | null {
    return this.#sql.find.get(mailbox);
  }

  /** Begins to read a mailbox from its first message. The state of any other mailbox is removed. */
  begin(_tx: Tx, mailbox: string, uidValidity: string): void {
    const known = this.find(mailbox);
    this.#sql.clear.run();
    this.#sql.clearMarks.run();
    this.#sql.insert.run(mailbox, uidValidity, known?.usageDay ?? 0, known?.usageBytes ?? 0);
  }

  /** Notes that all messages up to a UID are stored or skipped. */
  advance(_tx: Tx, mailbox: string, lastUid: number): void {
    this.#sql.advance.run(lastUid, mailbox);
  }

  addUsage(_tx: Tx, mailbox: string, { day, bytes }: { readonly day: number; readonly bytes: number }): void {
    this.#sql.addUsage.run({ $day: day, $bytes: bytes, $mailbox: mailbox });
  }

  /** Notes that a message is stored and has to be marked once it was read. */
  addMark(_tx: Tx, uid: number, ingestion: string): void {
    this.#sql.addMark.run(uid, ingestion);
  }

  isMarked(uid: number): boolean {
    return this.#sql.isMarked.get(uid) !== null;
  }

  /** How many messages are still to be marked. */
  countMarks(): number {
    return this.#sql.countMarks.get()?.count ?? 0;
  }

  /** Messages that were read and are still to be marked, in the order of their UIDs, up to the last UID that is stored. */
  processed(limit: number): ProcessedMessage[] {
    return this.#sql.processed.all(limit);
  }

  removeMark(_tx: Tx, { uid, ingestion }: ProcessedMessage): void {
    this.#sql.removeMark.run(uid, ingestion);
  }

  /** Removes the ingestion of a message without a report. */
  removeIngestion(_tx: Tx, id: string): void {
    if (this.#sql.removeIngestion.run(id).changes > 0) this.#sql.removeRaw.run(id);
  }
}
