import type { Db, Tx } from "../../db/open.ts";
import type { ReportOutcome } from "../report/outcome.ts";

/** How far a mailbox was read. */
export interface MailboxState {
  readonly uidValidity: string;
  readonly lastUid: number;
  readonly usageDay: number;
  readonly usageBytes: number;
}

/** A message that was stored, and what was found in it; both null when the ingestion is gone. */
export interface ProcessedMessage {
  readonly uid: number;
  readonly ingestion: string;
  readonly outcome: ReportOutcome | null;
  readonly reason: string | null;
}

/** How far the mailbox was read, and which of its messages are still to be marked there. */
export const createMailboxStore = ({ sqlite }: Db) => {
  const find = sqlite.prepare<MailboxState, [string]>(
    `SELECT uid_validity AS uidValidity, last_uid AS lastUid, usage_day AS usageDay, usage_bytes AS usageBytes
      FROM dmarc_mailboxes WHERE mailbox = ?`,
  );
  const clear = sqlite.prepare("DELETE FROM dmarc_mailboxes");
  const clearMarks = sqlite.prepare("DELETE FROM dmarc_mailbox_marks");
  const insert = sqlite.prepare(
    `INSERT INTO dmarc_mailboxes (mailbox, uid_validity, last_uid, usage_day, usage_bytes) VALUES (?, ?, 0, ?, ?)`,
  );
  const advance = sqlite.prepare("UPDATE dmarc_mailboxes SET last_uid = ? WHERE mailbox = ?");
  const addUsage = sqlite.prepare(
    `UPDATE dmarc_mailboxes SET usage_bytes = CASE usage_day WHEN $day THEN usage_bytes ELSE 0 END + $bytes, usage_day = $day
      WHERE mailbox = $mailbox`,
  );
  const addMark = sqlite.prepare("INSERT OR REPLACE INTO dmarc_mailbox_marks (uid, ingestion) VALUES (?, ?)");
  const marks = sqlite.prepare<{ count: number }, []>("SELECT count(*) AS count FROM dmarc_mailbox_marks");
  const isMarked = sqlite.prepare<unknown, [number]>("SELECT 1 FROM dmarc_mailbox_marks WHERE uid = ?");
  const settled = sqlite.prepare<ProcessedMessage, [number]>(
    `SELECT m.uid, m.ingestion, i.outcome, i.reason FROM dmarc_mailbox_marks m LEFT JOIN dmarc_ingestions i ON i.id = m.ingestion
      WHERE m.uid <= (SELECT last_uid FROM dmarc_mailboxes) AND (i.id IS NULL OR i.status = 'done') ORDER BY m.uid LIMIT ?`,
  );
  const removeMark = sqlite.prepare("DELETE FROM dmarc_mailbox_marks WHERE uid = ? AND ingestion = ?");
  const removeIngestion = sqlite.prepare("DELETE FROM dmarc_ingestions WHERE id = ? AND status = 'done'");
  const removeRaw = sqlite.prepare("DELETE FROM dmarc_raw WHERE ingestion = ?");

  return {
    /** Null for one that was not read yet. */
    find: (mailbox: string): MailboxState | null => find.get(mailbox),
    /** Begins to read a mailbox from its first message. What was known of it, and of any other, is removed. */
    begin(_tx: Tx, mailbox: string, uidValidity: string): void {
      const known = find.get(mailbox);
      clear.run();
      clearMarks.run();
      insert.run(mailbox, uidValidity, known?.usageDay ?? 0, known?.usageBytes ?? 0);
    },
    /** Notes that all messages up to a UID were stored or passed over. */
    advance: (_tx: Tx, mailbox: string, lastUid: number): void => void advance.run(lastUid, mailbox),
    addUsage: (_tx: Tx, mailbox: string, { day, bytes }: { readonly day: number; readonly bytes: number }): void =>
      void addUsage.run({ $day: day, $bytes: bytes, $mailbox: mailbox }),
    /** Notes that a message was stored, and is to be marked once it was read. */
    addMark: (_tx: Tx, uid: number, ingestion: string): void => void addMark.run(uid, ingestion),
    isMarked: (uid: number): boolean => isMarked.get(uid) !== null,
    /** How many messages are still to be marked. */
    countMarks: (): number => marks.get()?.count ?? 0,
    /**
     * Messages that were read and are still to be marked, in the order of their UIDs. Those beyond what is passed stay, so that
     * they are not fetched again.
     */
    settled: (limit: number): ProcessedMessage[] => settled.all(limit),
    removeMark: (_tx: Tx, { uid, ingestion }: ProcessedMessage): void => void removeMark.run(uid, ingestion),
    /** Removes a message in which there is no report. */
    removeIngestion(_tx: Tx, id: string): void {
      if (removeIngestion.run(id).changes > 0) removeRaw.run(id);
    },
  };
};

export type MailboxStore = ReturnType<typeof createMailboxStore>;
