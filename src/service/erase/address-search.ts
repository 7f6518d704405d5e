import { pagesOf } from "../../foundation/base/in-steps.ts";
import type { AddressPattern } from "./address-pattern.ts";
import { isInReport, readEvidence } from "./erasure.ts";
import type { EraseStore, EvidenceTable, TextRow, TextTable } from "./erase-store.ts";
import type { RowsOfTable, StoredRow, StoredRows, StoredTable } from "./stored-rows.ts";

const ROWS_AT_ONCE = 200;
const EVIDENCE_TABLES: readonly EvidenceTable[] = ["verification_evidence", "bulk_evidence"];

/** Where an address is: how many rows of each table have it, and in how many lists. */
export interface AddressTraces {
  readonly tables: Readonly<Record<string, number>>;
  readonly lists: number;
}

/** Finds every row in which an address stands, of one account or (null) of all and of none, and changes nothing. */
export class AddressSearch {
  constructor(
    private readonly store: EraseStore,
    private readonly rows: StoredRows,
    private readonly of: { readonly pattern: AddressPattern; readonly accountId: string | null },
  ) {}

  /** The rows, table after table. */
  async *found(): AsyncGenerator<RowsOfTable, void> {
    const tables = new Map(this.rows.tables().map((table) => [table.name, table]));
    for (const text of this.store.textTables()) {
      const table = tables.get(text.name);
      if (table !== undefined) yield* this.#inTexts(text, table);
    }
    for (const name of EVIDENCE_TABLES) {
      const table = tables.get(name);
      if (table !== undefined) yield* this.#inEvidence(name, table);
    }
    const raw = tables.get("dmarc_raw");
    if (raw !== undefined) yield* this.#inReports(raw);
  }

  async count(): Promise<AddressTraces> {
    const counts: Record<string, number> = {};
    const lists = new Set<unknown>();
    for await (const { table, rows } of this.found()) {
      counts[table.name] = (counts[table.name] ?? 0) + rows.length;
      if (table.name === "bulk_addresses") for (const { values } of rows) lists.add(values.job);
    }
    return { tables: counts, lists: lists.size };
  }

  async *#inTexts(text: TextTable, table: StoredTable): AsyncGenerator<RowsOfTable, void> {
    const read = (after: TextRow | undefined) => this.store.textRows(text, this.of.pattern.needle, after, ROWS_AT_ONCE);
    for await (const page of pagesOf({ start: undefined, read, positionOf: (row) => row })) {
      const keys = page
        .filter(({ texts }) => Object.values(texts).some((one) => one !== null && this.of.pattern.matches(one)))
        .map(({ key }) => Object.fromEntries(text.key.map((column, at) => [column, key[at] ?? null])));
      yield* this.#rowsOf(table, keys);
    }
  }

  async *#inEvidence(name: EvidenceTable, table: StoredTable): AsyncGenerator<RowsOfTable, void> {
    const read = (after: number) => this.store.evidence(name, after, ROWS_AT_ONCE);
    for await (const page of pagesOf({ start: 0, read, positionOf: ({ rowid }) => rowid })) {
      const keys = page
        .filter(({ body }) => this.of.pattern.matches(readEvidence(body)))
        .map(({ rowid }) => ({ rowid }));
      yield* this.#rowsOf(table, keys);
    }
  }

  async *#inReports(table: StoredTable): AsyncGenerator<RowsOfTable, void> {
    for await (const { ingestion, bytes } of this.store.raws())
      if (await isInReport(bytes, this.of.pattern)) yield* this.#rowsOf(table, [{ ingestion }]);
  }

  *#rowsOf(table: StoredTable, keys: ReadonlyArray<StoredKey>): Generator<RowsOfTable, void> {
    const rows = keys
      .map((key) => this.rows.find(table, key, this.of.accountId))
      .filter((row): row is StoredRow => row !== undefined);
    if (rows.length > 0) yield { table, rows };
  }
}

type StoredKey = Parameters<StoredRows["find"]>[1];
