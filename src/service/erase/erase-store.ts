import type { Database as Sqlite } from "bun:sqlite";
import type { Db, Tx } from "../../foundation/db/open.ts";
import { RawStore } from "../../dmarc/reports/ingest/raw-store.ts";
import { ERASED } from "./address-pattern.ts";
import { statements } from "../../foundation/db/statements.ts";

/** A verification that may be of the address. */
export interface FoundVerification {
  readonly id: string;
  readonly accountId: string;
  readonly mode: "live" | "test";
  readonly email: string;
  readonly normalizedEmail: string;
}

/** An address of a list that may be the address. */
export interface FoundListAddress {
  readonly job: number;
  readonly position: number;
  readonly email: string;
  readonly normalizedEmail: string;
  /** How many rows have it. */
  readonly rows: number;
}

/** Stored evidence, compressed or as JSON. */
export interface FoundEvidence {
  readonly table: EvidenceTable;
  readonly rowid: number;
  readonly body: Uint8Array | string;
}

/** A report mail or file as received. */
export interface FoundRaw {
  readonly ingestion: string;
  readonly bytes: Uint8Array;
}

export type EvidenceTable = "verification_evidence" | "bulk_evidence";

/** A table with the columns that hold text. */
export interface TextTable {
  readonly name: string;
  readonly columns: readonly string[];
  /** Identifies a row: `rowid`, or the numbers of the primary key. */
  readonly key: readonly string[];
}

/** A row with its text columns. */
export interface TextRow {
  readonly key: readonly number[];
  readonly texts: Readonly<Record<string, string | null>>;
}

/** Tables whose content is not text, or that are read by their own statements only. */
const OTHER_TABLES: ReadonlySet<string> = new Set([
  "dmarc_raw",
  "dmarc_raw_chunks",
  "verification_evidence",
  "bulk_evidence",
  "bulk_counts",
]);

const mayContain = (column: string): string => `instr(lower(${column}), ?1) > 0`;

/** The statements of an erasure; a test checks the query plan of each. */
export const prepareErasure = (sqlite: Sqlite) =>
  statements({
    verifications: () =>
      sqlite.prepare<FoundVerification & { rowid: number }, [string, number, number]>(
        `SELECT rowid, id, account_id AS accountId, mode, email, normalized_email AS normalizedEmail FROM verifications
      WHERE rowid > ?2 AND (${mayContain("email")} OR ${mayContain("normalized_email")}) ORDER BY rowid LIMIT ?3`,
      ),
    isPending: () =>
      sqlite.prepare<object, [string]>("SELECT id FROM verifications WHERE id = ? AND status = 'pending'"),
    removeVerification: () => sqlite.prepare<unknown, [string]>("DELETE FROM verifications WHERE id = ?"),
    removeEvidenceOf: () =>
      sqlite.prepare<unknown, [string]>("DELETE FROM verification_evidence WHERE verification_id = ?"),
    removeIdempotencyKeys: () =>
      sqlite.prepare<unknown, [string]>("DELETE FROM idempotency_keys WHERE resource_id = ?"),
    listAddresses: () =>
      sqlite.prepare<FoundListAddress, [string, number, number, number]>(
        `SELECT job, position, email, normalized_email AS normalizedEmail, rows
      FROM bulk_addresses WHERE (job, position) > (?2, ?3) AND (${mayContain("email")} OR ${mayContain("normalized_email")})
      ORDER BY job, position LIMIT ?4`,
      ),
    isOpen: () =>
      sqlite.prepare<{ isOpen: 0 | 1 }, [number, number]>(
        "SELECT sub_status IS NULL AS isOpen FROM bulk_addresses WHERE job = ? AND position = ?",
      ),
    eraseListAddress: () =>
      sqlite.prepare<unknown, [number, number]>(
        `UPDATE bulk_addresses SET email = '${ERASED}', normalized_email = '${ERASED}' WHERE job = ? AND position = ?`,
      ),
    eraseRows: () =>
      sqlite.prepare<unknown, [string | null, number, number]>(
        `UPDATE bulk_rows SET submitted_email = NULL, cells = iif(cells IS NULL, NULL, ?) WHERE job = ? AND position = ?`,
      ),
    removeListEvidence: () =>
      sqlite.prepare<unknown, [number, number]>("DELETE FROM bulk_evidence WHERE job = ? AND position = ?"),
    evidence: () => ({
      verification_evidence: sqlite.prepare<Omit<FoundEvidence, "table">, [number, number]>(
        "SELECT rowid, body FROM verification_evidence WHERE rowid > ? ORDER BY rowid LIMIT ?",
      ),
      bulk_evidence: sqlite.prepare<Omit<FoundEvidence, "table">, [number, number]>(
        "SELECT rowid, body FROM bulk_evidence WHERE rowid > ? ORDER BY rowid LIMIT ?",
      ),
    }),
    removeEvidence: () => ({
      verification_evidence: sqlite.prepare<unknown, [number]>("DELETE FROM verification_evidence WHERE rowid = ?"),
      bulk_evidence: sqlite.prepare<unknown, [number]>("DELETE FROM bulk_evidence WHERE rowid = ?"),
    }),
    raw: () =>
      sqlite.prepare<Pick<FoundRaw, "ingestion">, [string]>(
        "SELECT ingestion FROM dmarc_raw WHERE ingestion > ? ORDER BY ingestion LIMIT 1",
      ),
    removeRaw: () =>
      sqlite.prepare<unknown, [string]>(
        "DELETE FROM dmarc_raw WHERE ingestion = ?1 AND EXISTS (SELECT 1 FROM dmarc_ingestions WHERE id = ?1 AND status = 'done')",
      ),
    noteRawGone: () => sqlite.prepare<unknown, [string]>("UPDATE dmarc_ingestions SET has_raw = 0 WHERE id = ?"),
  });

/** Finds and changes what may contain an address. Pages are in the order of `rowid`, and need no transaction. */
export class EraseStore {
  readonly raw: RawStore;
  readonly #sqlite: Sqlite;
  readonly #sql;

  constructor(db: Db) {
    this.#sqlite = db.sqlite;
    this.raw = new RawStore(db);
    this.#sql = prepareErasure(db.sqlite);
  }

  verifications(needle: string, after: number, limit: number): (FoundVerification & { readonly rowid: number })[] {
    return this.#sql.verifications.all(needle, after, limit);
  }

  /** Whether a verification has not ended. */
  isPending(_tx: Tx, id: string): boolean {
    return this.#sql.isPending.get(id) !== null;
  }

  /** Removes a verification with its evidence and the Idempotency-Keys that stand for it. */
  removeVerification(_tx: Tx, id: string): void {
    this.#sql.removeEvidenceOf.run(id);
    this.#sql.removeIdempotencyKeys.run(id);
    this.#sql.removeVerification.run(id);
  }

  listAddresses(needle: string, after: FoundListAddress | undefined, limit: number): FoundListAddress[] {
    return this.#sql.listAddresses.all(needle, after?.job ?? 0, after?.position ?? -1, limit);
  }

  /** Whether an address of a list is still to be verified. */
  isOpen(_tx: Tx, job: number, position: number): boolean {
    return this.#sql.isOpen.get(job, position)?.isOpen === 1;
  }

  /** Replaces an address of a list, its rows by `cells` (JSON; null without cells), and removes its evidence. */
  eraseListAddress(
    _tx: Tx,
    { job, position }: Pick<FoundListAddress, "job" | "position">,
    cells: string | null,
  ): number {
    this.#sql.removeListEvidence.run(job, position);
    this.#sql.eraseListAddress.run(job, position);
    return this.#sql.eraseRows.run(cells, job, position).changes;
  }

  evidence(table: EvidenceTable, after: number, limit: number): FoundEvidence[] {
    return this.#sql.evidence[table].all(after, limit).map((row) => ({ ...row, table }));
  }

  removeEvidence(_tx: Tx, { table, rowid }: FoundEvidence): void {
    this.#sql.removeEvidence[table].run(rowid);
  }

  /** Report mails and files in the order of their ids. */
  async *raws(): AsyncGenerator<FoundRaw, void> {
    for (let next = this.#sql.raw.get(""); next !== null; next = this.#sql.raw.get(next.ingestion)) {
      const bytes = await this.raw.find(next.ingestion);
      if (bytes !== undefined) yield { ...next, bytes };
    }
  }

  /** Removes the first bytes of an ingestion, and with them all others (`RawStore`); false while they wait to be read. */
  removeRaw(_tx: Tx, ingestion: string): boolean {
    if (this.#sql.removeRaw.run(ingestion).changes === 0) return false;
    this.#sql.noteRawGone.run(ingestion);
    return true;
  }

  /** Every table with text that is not handled by the other methods. */
  textTables(): TextTable[] {
    const tables = this.#sqlite.query<{ name: string; type: string; wr: 0 | 1 }, []>("PRAGMA main.table_list").all();
    return tables
      .filter(({ name, type }) => type === "table" && !name.startsWith("sqlite") && !OTHER_TABLES.has(name))
      .map(({ name, wr }) => ({ name, ...this.#columnsOf(name, wr === 1) }))
      .filter(({ columns }) => columns.length > 0);
  }

  /** Rows of a table after one of which a text may contain the address, in the order of their keys. */
  textRows({ name, columns, key }: TextTable, needle: string, after: TextRow | undefined, limit: number): TextRow[] {
    const [keys, marks] = [key.join(", "), key.map((_, at) => `?${at + 3}`).join(", ")];
    const isAfter = after === undefined ? "" : `(${keys}) > (${marks}) AND`;
    const names = key.map((column, at) => `${column} AS erase_key_${at}`);
    const rows = this.#sqlite
      .query<Record<string, string | number | null>, (string | number)[]>(
        `SELECT ${[...names, ...columns].join(", ")} FROM ${name}
          WHERE ${isAfter} (${columns.map(mayContain).join(" OR ")}) ORDER BY ${keys} LIMIT ?2`,
      )
      .all(needle, limit, ...(after?.key ?? []));
    return rows.map((row) => textRowOf(row, { columns, key }));
  }

  /** A row as it is now. */
  textRow({ name, columns, key }: TextTable, row: TextRow): TextRow | undefined {
    const names = key.map((column, at) => `${column} AS erase_key_${at}`);
    const found = this.#sqlite
      .query<Record<string, string | number | null>, number[]>(
        `SELECT ${[...names, ...columns].join(", ")} FROM ${name} WHERE ${isRow(key)}`,
      )
      .get(...row.key);
    return found === null ? undefined : textRowOf(found, { columns, key });
  }

  setText(_tx: Tx, { name, key }: TextTable, row: TextRow, change: { column: string; text: string }): void {
    this.#sqlite
      .query<unknown, (string | number)[]>(`UPDATE ${name} SET ${change.column} = ? WHERE ${isRow(key)}`)
      .run(change.text, ...row.key);
  }

  removeRow(_tx: Tx, { name, key }: TextTable, row: TextRow): void {
    this.#sqlite.query<unknown, number[]>(`DELETE FROM ${name} WHERE ${isRow(key)}`).run(...row.key);
  }

  #columnsOf(table: string, isWithoutRowid: boolean): Pick<TextTable, "columns" | "key"> {
    const columns = this.#sqlite
      .query<{ name: string; type: string; pk: number }, []>(`PRAGMA table_info(${table})`)
      .all();
    const primary = columns.filter(({ pk }) => pk > 0).toSorted((a, b) => a.pk - b.pk);
    return {
      columns: columns.filter(({ type }) => type.toUpperCase() === "TEXT").map(({ name }) => name),
      key: isWithoutRowid ? primary.map(({ name }) => name) : ["rowid"],
    };
  }
}

const isRow = (key: readonly string[]): string => key.map((column) => `${column} = ?`).join(" AND ");

const textRowOf = (
  row: Readonly<Record<string, string | number | null>>,
  { columns, key }: Pick<TextTable, "columns" | "key">,
): TextRow => ({
  key: key.map((_, at) => Number(row[`erase_key_${at}`])),
  // A column of text may contain a number where a user wrote one.
  texts: Object.fromEntries(columns.map((name) => [name, row[name] == null ? null : String(row[name])])),
});
