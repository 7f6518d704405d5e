import type { Database as Sqlite } from "bun:sqlite";
import type { Db, Tx } from "../../foundation/db/open.ts";
import { type SubStatus, UNSETTLED } from "../../verify/result.ts";
import type { ResultColumns } from "./result-columns.ts";
import { statements } from "../../foundation/db/statements.ts";

/** A distinct address of a list, as first submitted. */
export interface NewAddress {
  readonly position: number;
  readonly email: string;
  readonly normalizedEmail: string;
}

export interface NewRow {
  readonly rowIndex: number;
  readonly position: number;
  /** Null when it is spelled as on the first occurrence. */
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

/** An address to load into the queue; `done`: it is finished. */
export interface PendingAddress {
  readonly position: number;
  readonly normalizedEmail: string;
  readonly dueAtMs: number;
  readonly done: number;
}

/** An address with its result, for a comparison. */
export interface AddressResult extends Pick<NewAddress, "position" | "email" | "normalizedEmail"> {
  /** Null: not finished. */
  readonly subStatus: SubStatus | null;
}

/** A row with its address and result. */
export interface ListedRow extends Omit<ResultColumns, "subStatus"> {
  readonly rowIndex: number;
  readonly submittedEmail: string;
  readonly normalizedEmail: string;
  /** Null: not finished; the other columns of the result are meaningless. */
  readonly subStatus: SubStatus | null;
  /** The number of the last trouble of its address with a mail host; null: none. */
  readonly trouble: number | null;
}

export interface ListedCells extends ListedRow {
  /** Of its address. */
  readonly position: number;
  readonly cells: string | null;
}

/** Addresses to verify again by their old result and its UTC day. */
type ReopenedOfDay = Readonly<{ subStatus: SubStatus; day: number; addresses: number }>;

/** The columns of a `ListedRow`, of rows `r` and addresses `a`. */
export const LISTED_COLUMNS = `r.row_index AS rowIndex, coalesce(r.submitted_email, a.email) AS submittedEmail,
  a.normalized_email AS normalizedEmail, a.sub_status AS subStatus, a.quality_score AS qualityScore, a.confidence,
  a.signals, a.verified_at_ms AS verifiedAtMs, a.trouble`;
const FROM_BEHIND = `FROM bulk_rows r JOIN bulk_addresses a ON a.job = r.job AND a.position = r.position
  WHERE r.job = ? AND r.row_index > ? ORDER BY r.row_index LIMIT ?`;

/** Characters of cells read at once: a cell may have hundreds of thousands. */
const PORTION_CHARACTERS_MAX = 512 * 1024;

/** The first rows, up to `PORTION_CHARACTERS_MAX`; at least one. */
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

const UNSETTLED_LIST = UNSETTLED.map((subStatus) => `'${subStatus}'`).join(", ");

const prepareReads = (sqlite: Sqlite) =>
  statements({
    emailAt: () =>
      sqlite.prepare<{ email: string }, [number, number]>(
        "SELECT email FROM bulk_addresses WHERE job = ? AND position = ?",
      ),
    open: () =>
      sqlite.prepare<OpenAddress, [number, number]>(
        `SELECT position, email, rows, due_at_ms AS dueAtMs FROM bulk_addresses
      WHERE job = ? AND position = ? AND sub_status IS NULL`,
      ),
    pending: () =>
      sqlite.prepare<PendingAddress, [number, number, number]>(
        `SELECT position, normalized_email AS normalizedEmail, due_at_ms AS dueAtMs, sub_status IS NOT NULL AS done
      FROM bulk_addresses WHERE job = ? AND position > ? ORDER BY position LIMIT ?`,
      ),
    results: () =>
      sqlite.prepare<AddressResult, [number, number, number]>(
        `SELECT position, email, normalized_email AS normalizedEmail, sub_status AS subStatus
      FROM bulk_addresses WHERE job = ? AND position > ? ORDER BY position LIMIT ?`,
      ),
    readEvidence: () =>
      sqlite.prepare<{ body: Uint8Array }, [number, number]>(
        "SELECT body FROM bulk_evidence WHERE job = ? AND position = ?",
      ),
    rowsBehind: () => sqlite.prepare<ListedRow, [number, number, number]>(`SELECT ${LISTED_COLUMNS} ${FROM_BEHIND}`),
    cellsBehind: () =>
      sqlite.prepare<ListedCells, [number, number, number]>(
        `SELECT ${LISTED_COLUMNS}, r.position, r.cells ${FROM_BEHIND}`,
      ),
    rowAt: () =>
      sqlite.prepare<ListedRow & { position: number }, [number, number]>(
        `SELECT ${LISTED_COLUMNS}, r.position FROM bulk_rows r JOIN bulk_addresses a ON a.job = r.job AND a.position = r.position
      WHERE r.job = ? AND r.row_index = ?`,
      ),
    countUnsettled: () =>
      sqlite.prepare<{ count: number }, [number, number, number]>(
        `SELECT count(*) AS count FROM bulk_addresses
      WHERE job = ? AND position >= ? AND position < ? AND sub_status IN (${UNSETTLED_LIST})`,
      ),
  });

const prepareWrites = (sqlite: Sqlite) =>
  statements({
    insertAddress: () =>
      sqlite.prepare<unknown, [number, number, string, string]>(
        "INSERT INTO bulk_addresses (job, position, email, normalized_email, rows) VALUES (?, ?, ?, ?, 1)",
      ),
    addRows: () =>
      sqlite.prepare<unknown, [number, number, number]>(
        "UPDATE bulk_addresses SET rows = rows + ? WHERE job = ? AND position = ?",
      ),
    insertRow: () =>
      sqlite.prepare<unknown, [number, number, number, string | null, string | null]>(
        "INSERT INTO bulk_rows (job, row_index, position, submitted_email, cells) VALUES (?, ?, ?, ?, ?)",
      ),
    finish: () =>
      sqlite.prepare<unknown, [string, number, number, string, number, number, number]>(
        `UPDATE bulk_addresses SET sub_status = ?, quality_score = ?, confidence = ?, signals = ?, verified_at_ms = ?
      WHERE job = ? AND position = ? AND sub_status IS NULL`,
      ),
    postpone: () =>
      sqlite.prepare<unknown, [number, number, number]>(
        "UPDATE bulk_addresses SET due_at_ms = ? WHERE job = ? AND position = ? AND sub_status IS NULL",
      ),
    putEvidence: () =>
      sqlite.prepare<unknown, [number, number, Uint8Array]>(
        "INSERT OR REPLACE INTO bulk_evidence (job, position, body) VALUES (?, ?, ?)",
      ),
    dropEvidence: () =>
      sqlite.prepare<unknown, [number, number]>("DELETE FROM bulk_evidence WHERE job = ? AND position = ?"),
    dropUnsettled: () =>
      sqlite.prepare<unknown, [number, number, number]>(
        `DELETE FROM bulk_evidence WHERE (job, position) IN (SELECT job, position FROM bulk_addresses
      WHERE job = ? AND position >= ? AND position < ? AND sub_status IN (${UNSETTLED_LIST}))`,
      ),
    unsettledByDay: () =>
      sqlite.prepare<ReopenedOfDay, [number, number, number]>(
        `SELECT sub_status AS subStatus, verified_at_ms / 86400000 AS day, count(*) AS addresses FROM bulk_addresses
      WHERE job = ? AND position >= ? AND position < ? AND sub_status IN (${UNSETTLED_LIST}) GROUP BY 1, 2`,
      ),
    reopen: () =>
      sqlite.prepare<unknown, [number, number, number]>(
        `UPDATE bulk_addresses SET sub_status = NULL, quality_score = NULL, confidence = NULL, signals = NULL,
      verified_at_ms = NULL, due_at_ms = 0
      WHERE job = ? AND position >= ? AND position < ? AND sub_status IN (${UNSETTLED_LIST})`,
      ),
  });

const prepareRemovals = (sqlite: Sqlite) => {
  const removalOf = (table: string, key: string) =>
    sqlite.prepare<unknown, [number, number, number]>(
      `DELETE FROM ${table} WHERE job = ? AND ${key} <= (SELECT max(${key}) FROM
        (SELECT ${key} FROM ${table} WHERE job = ? ORDER BY ${key} LIMIT ?))`,
    );
  return [
    removalOf("bulk_rows", "row_index"),
    removalOf("bulk_evidence", "position"),
    removalOf("bulk_addresses", "position"),
    removalOf("bulk_troubles", "number"),
  ];
};

const prepareExpiry = (sqlite: Sqlite) =>
  statements({
    evidence: () =>
      sqlite.prepare<unknown, [number, number, number]>(
        `DELETE FROM bulk_evidence WHERE job = ? AND position <= (SELECT max(position) FROM
      (SELECT position FROM bulk_evidence WHERE job = ? ORDER BY position LIMIT ?))`,
      ),
    sizes: () =>
      sqlite.prepare<{ rowIndex: number; bytes: number }, [number, number, number]>(
        `SELECT row_index AS rowIndex, coalesce(octet_length(cells), 0) AS bytes FROM bulk_rows
      WHERE job = ? AND row_index > ? ORDER BY row_index LIMIT ?`,
      ),
    cells: () =>
      sqlite.prepare<unknown, [number, number, number]>(
        "UPDATE bulk_rows SET cells = NULL WHERE job = ? AND row_index > ? AND row_index <= ? AND cells IS NOT NULL",
      ),
  });

/** The rows and addresses of lists. Plain SQL, because a list may have a million of them. */
export class ListStore {
  readonly #reads;
  readonly #writes;
  readonly #removals;
  readonly #expiry;

  constructor({ sqlite }: Db) {
    this.#reads = prepareReads(sqlite);
    this.#writes = prepareWrites(sqlite);
    this.#removals = prepareRemovals(sqlite);
    this.#expiry = prepareExpiry(sqlite);
  }

  insertAddress(_tx: Tx, job: number, { position, email, normalizedEmail }: NewAddress): void {
    this.#writes.insertAddress.run(job, position, email, normalizedEmail);
  }

  /** Counts further rows of an address. */
  addRows(_tx: Tx, job: number, { position, rows }: { readonly position: number; readonly rows: number }): void {
    this.#writes.addRows.run(rows, job, position);
  }

  insertRow(_tx: Tx, job: number, row: NewRow): void {
    this.#writes.insertRow.run(job, row.rowIndex, row.position, row.submittedEmail, row.cells);
  }

  /** An address as it was first submitted. */
  emailAt(job: number, position: number): string | undefined {
    return this.#reads.emailAt.get(job, position)?.email;
  }

  /** An address; undefined when it is finished. */
  findOpen(job: number, position: number): OpenAddress | undefined {
    return this.#reads.open.get(job, position) ?? undefined;
  }

  /** The addresses after a position, finished ones included. */
  addressesBehind(job: number, position: number, limit: number): PendingAddress[] {
    return this.#reads.pending.all(job, position, limit);
  }

  /** The addresses after a position with their results. */
  resultsBehind(job: number, position: number, limit: number): AddressResult[] {
    return this.#reads.results.all(job, position, limit);
  }

  /** Stores a result; false when the address was finished already. */
  finish(
    _tx: Tx,
    job: number,
    { position, columns }: { readonly position: number; readonly columns: ResultColumns },
  ): boolean {
    const { subStatus, qualityScore, confidence, signals, verifiedAtMs } = columns;
    return (
      this.#writes.finish.run(subStatus, qualityScore, confidence, signals, verifiedAtMs, job, position).changes > 0
    );
  }

  /** Stores the time of the next attempt; false when the address is finished. */
  postpone(
    _tx: Tx,
    job: number,
    { position, dueAtMs }: { readonly position: number; readonly dueAtMs: number },
  ): boolean {
    return this.#writes.postpone.run(dueAtMs, job, position).changes > 0;
  }

  saveEvidence(
    _tx: Tx,
    job: number,
    { position, body }: { readonly position: number; readonly body: Uint8Array },
  ): void {
    this.#writes.putEvidence.run(job, position, body);
  }

  dropEvidence(_tx: Tx, job: number, position: number): void {
    this.#writes.dropEvidence.run(job, position);
  }

  findEvidence(job: number, position: number): Uint8Array | undefined {
    return this.#reads.readEvidence.get(job, position)?.body;
  }

  rowAt(job: number, rowIndex: number): (ListedRow & { readonly position: number }) | undefined {
    return this.#reads.rowAt.get(job, rowIndex) ?? undefined;
  }

  /** The number of unsettled addresses from a position on, up to and without another. */
  countUnsettled(job: number, from: number, before: number): number {
    return this.#reads.countUnsettled.get(job, from, before)?.count ?? 0;
  }

  /** Removes the results and evidence of those addresses. Returns how many, by result and its UTC day. */
  reopen(_tx: Tx, job: number, from: number, before: number): ReopenedOfDay[] {
    const reopened = this.#writes.unsettledByDay.all(job, from, before);
    this.#writes.dropUnsettled.run(job, from, before);
    this.#writes.reopen.run(job, from, before);
    return reopened;
  }

  /** Rows in order after an index: at most `limit`, fewer when they are large, none only at the end. */
  rowsBehind(job: number, rowIndex: number, limit: number): ListedRow[] {
    const rows = this.#reads.rowsBehind.iterate(job, rowIndex, limit);
    return portionOf(rows, ({ submittedEmail }) => submittedEmail.length);
  }

  /** The same with their cells. */
  cellsBehind(job: number, rowIndex: number, limit: number): ListedCells[] {
    const rows = this.#reads.cellsBehind.iterate(job, rowIndex, limit);
    return portionOf(rows, ({ submittedEmail, cells }) => submittedEmail.length + (cells?.length ?? 0));
  }

  /** Removes up to `limit` pieces of evidence of a list; false when nothing is left. */
  removeSomeEvidence(_tx: Tx, job: number, limit: number): boolean {
    return this.#expiry.evidence.run(job, job, limit).changes > 0;
  }

  /** Removes the cells of up to `limit` rows after one, fewer when they are large. Returns the last row; null at the end. */
  removeCells(
    _tx: Tx,
    job: number,
    { after, limit }: { readonly after: number; readonly limit: number },
  ): number | null {
    const last = portionOf(this.#expiry.sizes.iterate(job, after, limit), ({ bytes }) => bytes).at(-1);
    if (last === undefined) return null;
    this.#expiry.cells.run(job, after, last.rowIndex);
    return last.rowIndex;
  }

  /** Removes up to `limit` rows, evidence or addresses of a list; false when nothing is left. */
  removeSome(_tx: Tx, job: number, limit: number): boolean {
    return this.#removals.some((removal) => removal.run(job, job, limit).changes > 0);
  }
}
