import { isoTime } from "../../foundation/base/clock.ts";
import { type ZipEntry, writeZip } from "../../foundation/base/zip-writer.ts";
import type { Db } from "../../foundation/db/open.ts";
import { openAddressSearch } from "./open.ts";
import { createAddressPattern } from "./address-pattern.ts";
import { exportView, type RowsOfTable, type StoredRow, StoredRows } from "./stored-rows.ts";
import { RawStore } from "../../dmarc/reports/ingest/raw-store.ts";

/** What is exported: an account, an address in an account, or (without an account) an address in all. */
export interface ExportSubject {
  readonly accountId: string | null;
  readonly address: string | null;
}

/** A file of an archive ends here, and the rows that follow are in another: far below the limit of ZIP and of editors. */
const FILE_BYTES_MAX = 128 * 1024 * 1024;

/** The archive in pieces: a JSON file for each table with rows, and a text about them. Throws for what is no address. */
export const writeExport = (db: Db, subject: ExportSubject, nowMs: number): AsyncGenerator<Uint8Array, void> =>
  writeZip(entriesOf(wholeMails(db, rowsOf(db, subject)), aboutText(subject, nowMs)), nowMs);

const rowsOf = (db: Db, { accountId, address }: ExportSubject): AsyncIterable<RowsOfTable> => {
  if (address !== null) {
    const pattern = createAddressPattern(address);
    if (!pattern.ok) throw new Error(pattern.error);
    return openAddressSearch(db, { pattern: pattern.value, accountId }).found();
  }
  if (accountId === null) throw new Error("An export is about an account or an address.");
  return asAsync(new StoredRows(db).ofAccount(accountId));
};

async function* asAsync<T>(items: Iterable<T>): AsyncGenerator<T, void> {
  yield* items;
}

/** The pages with all bytes of each report mail in its row. */
async function* wholeMails(db: Db, pages: AsyncIterable<RowsOfTable>): AsyncGenerator<RowsOfTable, void> {
  const raw = new RawStore(db);
  for await (const page of pages) {
    if (page.table.name !== "dmarc_raw") {
      yield page;
      continue;
    }
    const rows: StoredRow[] = [];
    for (const row of page.rows) {
      const bytes = await raw.find(String(row.values.ingestion));
      if (bytes !== undefined) rows.push({ ...row, values: { ...row.values, bytes } });
    }
    if (rows.length > 0) yield { ...page, rows };
  }
}

const aboutText = ({ accountId, address }: ExportSubject, nowMs: number): string =>
  [
    `Exported by Postwarden at ${isoTime(nowMs)}.`,
    address === null
      ? `Everything that is stored of the account ${accountId}.`
      : `Every stored row with the address, ${accountId === null ? "of all accounts" : `of the account ${accountId}`}. The rows can contain data of other people, too.`,
    "",
    "Each file has the rows of one table of the database, as an array of JSON objects. Times are UTC.",
    "Left out: passwords, secrets, tokens and their hashes. dmarc_raw.bytes is a report mail or file in base64.",
    "",
  ].join("\n");

async function* textPieces(text: string): AsyncGenerator<Uint8Array, void> {
  yield Buffer.from(text);
}

/** The rows as files, one after the other: each must be read to its end before the next. */
async function* entriesOf(pages: AsyncIterable<RowsOfTable>, about: string): AsyncGenerator<ZipEntry, void> {
  yield { name: "about.txt", pieces: textPieces(about) };
  const iterator = pages[Symbol.asyncIterator]();
  const at = { next: await iterator.next() };
  async function* pieces(name: string): AsyncGenerator<Uint8Array, void> {
    let bytes = 0;
    for (; at.next.done !== true && at.next.value.table.name === name && bytes < FILE_BYTES_MAX;) {
      const text = at.next.value.rows.map((row) => JSON.stringify(exportView(name, row), null, 1)).join(",\n");
      const piece = Buffer.from(`${bytes === 0 ? "[\n" : ",\n"}${text}`);
      bytes += piece.length;
      yield piece;
      at.next = await iterator.next();
    }
    yield Buffer.from("\n]\n");
  }
  const parts = new Map<string, number>();
  while (at.next.done !== true) {
    const { name } = at.next.value.table;
    const part = (parts.get(name) ?? 0) + 1;
    parts.set(name, part);
    yield { name: part === 1 ? `${name}.json` : `${name}-${part}.json`, pieces: pieces(name) };
  }
}
