import type { Db, Tx } from "../db/open.ts";
import { type SubStatus, UNSETTLED } from "../verify/result.ts";
import type { ResultColumns } from "./result-columns.ts";

/** An address of a list, as it first comes. */
export interface NewAddress {
  readonly position: number;
  readonly email: string;
  readonly normalizedEmail: string;
}

export interface NewRow {
  readonly rowIndex: number;
  readonly position: number;
  /** Null when it is spelled as the address first was. */
  readonly submittedEmail: string | null;
  /** JSON of the cells; null when the row is the address alone. */
  readonly cells: string | null;
}

/** An address that is not finished. */
export interface OpenAddress {
  readonly position: number;
  readonly email: string;
  readonly rows: number;
  readonly dueAtMs: number;
}

/** What is needed to plan the work on an address. */
export interface PendingAddress {
  readonly position: number;
  readonly normalizedEmail: string;
  readonly dueAtMs: number;
}

/** A row with its address and what became of it. */
export interface ListedRow extends Omit<ResultColumns, "subStatus"> {
  readonly rowIndex: number;
  readonly submittedEmail: string;
  readonly normalizedEmail: string;
  /** Null: not finished, and the other columns of the result mean nothing. */
  readonly subStatus: SubStatus | null;
}

export interface ListedCells extends ListedRow {
  readonly cells: string | null;
}

const LISTED = `r.row_index AS rowIndex, coalesce(r.submitted_email, a.email) AS submittedEmail,
  a.normalized_email AS normalizedEmail, a.sub_status AS subStatus, a.quality_score AS qualityScore, a.confidence,
  a.signals, a.verified_at_ms AS verifiedAtMs`;
const FROM_BEHIND = `FROM bulk_rows r JOIN bulk_addresses a ON a.job = r.job AND a.position = r.position
  WHERE r.job = ? AND r.row_index > ? ORDER BY r.row_index LIMIT ?`;

/** Characters of cells that are read at one go: a cell may have hundreds of thousands. */
const PORTION_CHARACTERS_MAX = 512 * 1024;

/** The first of some rows, until they have so many characters. */
const portionOf = <R>(rows: Iterable<R>, charactersOf: (row: R) => number): R[] => {
  const portion: R[] = [];
  let characters = 0;
  for (const row of rows) {
    portion.push(row);
    characters += charactersOf(row);
    if (characters >= PORTION_CHARACTERS_MAX) break;
  }
  return portion;
};

/** The rows and addresses of lists: a million of them pass here, so the statements are written by hand. */
export const createListStore = (db: Db) => {
  const { sqlite } = db;
  const insertAddress = sqlite.prepare<unknown, [number, number, string, string]>(
    "INSERT INTO bulk_addresses (job, position, email, normalized_email, rows) VALUES (?, ?, ?, ?, 1)",
  );
  const addRows = sqlite.prepare<unknown, [number, number, number]>(
    "UPDATE bulk_addresses SET rows = rows + ? WHERE job = ? AND position = ?",
  );
  const insertRow = sqlite.prepare<unknown, [number, number, number, string | null, string | null]>(
    "INSERT INTO bulk_rows (job, row_index, position, submitted_email, cells) VALUES (?, ?, ?, ?, ?)",
  );
  const emailAt = sqlite.prepare<{ email: string }, [number, number]>(
    "SELECT email FROM bulk_addresses WHERE job = ? AND position = ?",
  );
  const open = sqlite.prepare<OpenAddress, [number, number]>(
    `SELECT position, email, rows, due_at_ms AS dueAtMs FROM bulk_addresses
      WHERE job = ? AND position = ? AND sub_status IS NULL`,
  );
  const pending = sqlite.prepare<PendingAddress & { done: number }, [number, number, number]>(
    `SELECT position, normalized_email AS normalizedEmail, due_at_ms AS dueAtMs, sub_status IS NOT NULL AS done
      FROM bulk_addresses WHERE job = ? AND position > ? ORDER BY position LIMIT ?`,
  );
  const finish = sqlite.prepare<unknown, [string, number, number, string, number, number, number]>(
    `UPDATE bulk_addresses SET sub_status = ?, quality_score = ?, confidence = ?, signals = ?, verified_at_ms = ?
      WHERE job = ? AND position = ? AND sub_status IS NULL`,
  );
  const postpone = sqlite.prepare<unknown, [number, number, number]>(
    "UPDATE bulk_addresses SET due_at_ms = ? WHERE job = ? AND position = ? AND sub_status IS NULL",
  );
  const putEvidence = sqlite.prepare<unknown, [number, number, Uint8Array]>(
    "INSERT OR REPLACE INTO bulk_evidence (job, position, body) VALUES (?, ?, ?)",
  );
  const dropEvidence = sqlite.prepare<unknown, [number, number]>(
    "DELETE FROM bulk_evidence WHERE job = ? AND position = ?",
  );
  const readEvidence = sqlite.prepare<{ body: Uint8Array }, [number, number]>(
    "SELECT body FROM bulk_evidence WHERE job = ? AND position = ?",
  );
  const rowsBehind = sqlite.prepare<ListedRow, [number, number, number]>(`SELECT ${LISTED} ${FROM_BEHIND}`);
  const cellsBehind = sqlite.prepare<ListedCells, [number, number, number]>(`SELECT ${LISTED}, r.cells ${FROM_BEHIND}`);
  const rowAt = sqlite.prepare<ListedRow & { position: number }, [number, number]>(
    `SELECT ${LISTED}, r.position FROM bulk_rows r JOIN bulk_addresses a ON a.job = r.job AND a.position = r.position
      WHERE r.job = ? AND r.row_index = ?`,
  );
  const UNSETTLED_LIST = UNSETTLED.map((subStatus) => `'${subStatus}'`).join(", ");
  const countUnsettled = sqlite.prepare<{ count: number }, [number, number, number]>(
    `SELECT count(*) AS count FROM bulk_addresses
      WHERE job = ? AND position >= ? AND position < ? AND sub_status IN (${UNSETTLED_LIST})`,
  );
  const dropUnsettled = sqlite.prepare<unknown, [number, number, number]>(
    `DELETE FROM bulk_evidence WHERE (job, position) IN (SELECT job, position FROM bulk_addresses
      WHERE job = ? AND position >= ? AND position < ? AND sub_status IN (${UNSETTLED_LIST}))`,
  );
  const reopen = sqlite.prepare<unknown, [number, number, number]>(
    `UPDATE bulk_addresses SET sub_status = NULL, quality_score = NULL, confidence = NULL, signals = NULL,
      verified_at_ms = NULL, due_at_ms = 0
      WHERE job = ? AND position >= ? AND position < ? AND sub_status IN (${UNSETTLED_LIST})`,
  );
  const removalOf = (table: string, key: string) =>
    sqlite.prepare<unknown, [number, number, number]>(
      `DELETE FROM ${table} WHERE job = ? AND ${key} <= (SELECT max(${key}) FROM
        (SELECT ${key} FROM ${table} WHERE job = ? ORDER BY ${key} LIMIT ?))`,
    );
  const portions = [
    removalOf("bulk_rows", "row_index"),
    removalOf("bulk_evidence", "position"),
    removalOf("bulk_addresses", "position"),
  ];

  return {
    insertAddress: (_tx: Tx, job: number, { position, email, normalizedEmail }: NewAddress): void =>
      void insertAddress.run(job, position, email, normalizedEmail),
    /** The address stands in so many rows more. */
    addRows: (_tx: Tx, job: number, { position, rows }: { position: number; rows: number }): void =>
      void addRows.run(rows, job, position),
    insertRow: (_tx: Tx, job: number, row: NewRow): void =>
      void insertRow.run(job, row.rowIndex, row.position, row.submittedEmail, row.cells),
    /** How an address was first spelled. */
    emailAt: (job: number, position: number): string | undefined => emailAt.get(job, position)?.email,

    /** The address, unless it is finished. */
    findOpen: (job: number, position: number): OpenAddress | undefined => open.get(job, position) ?? undefined,
    /** The addresses behind a position, finished ones told apart, so that a list is walked in even steps. */
    addressesBehind: (job: number, position: number, limit: number) => pending.all(job, position, limit),

    /** Writes a result down; false when the address was finished already. */
    finish(_tx: Tx, job: number, { position, columns }: { position: number; columns: ResultColumns }): boolean {
      const { subStatus, qualityScore, confidence, signals, verifiedAtMs } = columns;
      return finish.run(subStatus, qualityScore, confidence, signals, verifiedAtMs, job, position).changes > 0;
    },
    postpone: (_tx: Tx, job: number, { position, dueAtMs }: { position: number; dueAtMs: number }): boolean =>
      postpone.run(dueAtMs, job, position).changes > 0,
    saveEvidence: (_tx: Tx, job: number, { position, body }: { position: number; body: Uint8Array }): void =>
      void putEvidence.run(job, position, body),
    dropEvidence: (_tx: Tx, job: number, position: number): void => void dropEvidence.run(job, position),
    findEvidence: (job: number, position: number): Uint8Array | undefined => readEvidence.get(job, position)?.body,

    /** The row, and the place of its address. */
    rowAt: (job: number, rowIndex: number): (ListedRow & { readonly position: number }) | undefined =>
      rowAt.get(job, rowIndex) ?? undefined,
    /** How many addresses from a position on, before another, nobody has settled. */
    countUnsettled: (job: number, from: number, before: number): number =>
      countUnsettled.get(job, from, before)?.count ?? 0,
    /** Makes those open again, without evidence, as if nothing had been tried. */
    reopen(_tx: Tx, job: number, from: number, before: number): void {
      dropUnsettled.run(job, from, before);
      reopen.run(job, from, before);
    },

    /** Rows in their order from behind an index: up to `limit`, fewer where they are large; none only when there is none. */
    rowsBehind: (job: number, rowIndex: number, limit: number): ListedRow[] =>
      portionOf(rowsBehind.iterate(job, rowIndex, limit), ({ submittedEmail }) => submittedEmail.length),
    /** The same with their cells. */
    cellsBehind: (job: number, rowIndex: number, limit: number): ListedCells[] =>
      portionOf(
        cellsBehind.iterate(job, rowIndex, limit),
        ({ submittedEmail, cells }) => submittedEmail.length + (cells?.length ?? 0),
      ),

    /** Removes up to `limit` rows, pieces of evidence or addresses of a list; false when nothing is left of it. */
    removeSome: (_tx: Tx, job: number, limit: number): boolean =>
      portions.some((portion) => portion.run(job, job, limit).changes > 0),
  };
};

export type ListStore = ReturnType<typeof createListStore>;
