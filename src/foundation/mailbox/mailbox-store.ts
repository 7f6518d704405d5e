import type { Db, Tx } from "../db/open.ts";
import { rows, sqlStatements } from "../db/statements.ts";

/** The UID up to which a mailbox was read, and how much was fetched on `usageDay`. */
export interface MailboxState {
  readonly uidValidity: string;
  readonly lastUid: number;
  readonly usageDay: number;
  readonly usageBytes: number;
}

/** Where the progress of a mailbox is stored: each kind of mail has two tables, so that one folder can hold both kinds. */
export interface MailboxTables {
  readonly state: "dmarc_mailboxes" | "bounce_mailboxes";
  readonly marks: "dmarc_mailbox_marks" | "bounce_mailbox_marks";
  /** The column of a mark beside its UID. */
  readonly item: "ingestion" | "outcome";
}

const statementsOf = ({ state, marks, item }: MailboxTables) => ({
  find: rows<MailboxState, [string]>(
    `SELECT uid_validity AS uidValidity, last_uid AS lastUid, usage_day AS usageDay, usage_bytes AS usageBytes
      FROM ${state} WHERE mailbox = ?`,
  ),
  clear: `DELETE FROM ${state}`,
  clearMarks: `DELETE FROM ${marks}`,
  insert: `INSERT INTO ${state} (mailbox, uid_validity, last_uid, usage_day, usage_bytes) VALUES (?, ?, 0, ?, ?)`,
  advance: `UPDATE ${state} SET last_uid = ? WHERE mailbox = ?`,
  addUsage: `UPDATE ${state} SET usage_bytes = CASE usage_day WHEN $day THEN usage_bytes ELSE 0 END + $bytes, usage_day = $day
      WHERE mailbox = $mailbox`,
  addMark: `INSERT OR REPLACE INTO ${marks} (uid, ${item}) VALUES (?, ?)`,
  countMarks: rows<{ count: number }, []>(`SELECT count(*) AS count FROM ${marks}`),
  isMarked: rows<unknown, [number]>(`SELECT 1 FROM ${marks} WHERE uid = ?`),
  removeMark: `DELETE FROM ${marks} WHERE uid = ? AND ${item} = ?`,
});

/** The UID up to which the mailbox was read, and its messages that are still to be marked on the server. */
export class MailboxStore {
  readonly #sql;

  constructor(db: Db, tables: MailboxTables) {
    this.#sql = sqlStatements(db, statementsOf(tables));
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

  addUsage(_tx: Tx, mailbox: string, { day, bytes }: { day: number; bytes: number }): void {
    this.#sql.addUsage.run({ $day: day, $bytes: bytes, $mailbox: mailbox });
  }

  /** Notes that a message is stored and has to be marked once it was read; `item` says as what. */
  addMark(_tx: Tx, uid: number, item: string): void {
    this.#sql.addMark.run(uid, item);
  }

  isMarked(uid: number): boolean {
    return this.#sql.isMarked.get(uid) !== null;
  }

  /** How many messages are still to be marked. */
  countMarks(): number {
    return this.#sql.countMarks.get()?.count ?? 0;
  }

  removeMark(_tx: Tx, uid: number, item: string): void {
    this.#sql.removeMark.run(uid, item);
  }
}
