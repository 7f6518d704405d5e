import type { Database as Sqlite } from "bun:sqlite";
import { findRowOwner, findRowReferences, type RowOwner, type RowReference } from "../service/erase/row-owners.ts";
import { schemaFact, tablesOf } from "./upgrade-rows.ts";

/** Tables whose rows belong to no account, and why. */
export const SHARED_TABLES: Readonly<Record<string, string>> = {
  suppressions: "the operator's list, for all accounts",
  blocklist_usability: "about a blocklist of the catalogue",
  blocklist_budgets: "queries to a blocklist of the catalogue",
  dmarc_as_names: "names of networks on the internet",
  dmarc_reverse_names: "names of addresses on the internet",
  machine_acknowledgements: "what operators know about the machine",
  dmarc_mailboxes: "the operator's mailbox for the reports of all accounts",
  bounce_mailboxes: "the operator's mailbox for the bounces of one account",
  bounce_mailbox_marks: "messages of that mailbox, by their numbers",
};

/** What the columns of a table refer to; found once for each schema. */
export const referencesOf = (sqlite: Sqlite, table: string): ReadonlyMap<string, readonly RowReference[]> =>
  schemaFact(sqlite, `references of ${table}`, () => findRowReferences(sqlite, table));

/** How the owner of a row of `table` is found; null where there is none, which must have a reason in `SHARED_TABLES`. */
export const ownerOf = (sqlite: Sqlite, table: string, row = `"${table}"`): RowOwner | null =>
  schemaFact(sqlite, `owner of ${table} ${row}`, () => findRowOwner(sqlite, table, row));

/** Tables that belong to no account and have no reason for it, and reasons for tables that have one or are gone. */
export const unattributedTables = (sqlite: Sqlite): readonly string[] => {
  const shared = tablesOf(sqlite).filter((table) => ownerOf(sqlite, table) === null);
  const wanted = Object.keys(SHARED_TABLES);
  return [
    ...shared.filter((table) => !wanted.includes(table)).map((table) => `${table}: whose rows are these?`),
    ...wanted.filter((table) => !shared.includes(table)).map((table) => `${table}: is not shared`),
  ];
};
