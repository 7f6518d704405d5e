import { describe, expect, test } from "bun:test";
import type { Database } from "bun:sqlite";
import { prepareTargetRemoval } from "../../blocklist/store.ts";
import { openDb } from "../../foundation/db/open.ts";
import { prepareDeletion } from "./account-deletion-store.ts";
import { prepareErasure } from "./erase-store.ts";

const openInMemory = () => {
  const opened = openDb(":memory:");
  if (!opened.ok) throw new Error(opened.error.kind);
  return opened.value;
};

/** Short tables: links that are not used yet, and messages that are still to be flagged in the mailbox. */
const SHORT = ["SCAN setup_links", "SCAN dmarc_mailbox_marks"];

/** The long tables that the statements of a store which change rows read as a whole. */
const scansOf = (prepareAll: (sqlite: Database) => object): { readonly changing: number; readonly scans: string[] } => {
  const { sqlite } = openInMemory();
  const changing: string[] = [];
  const prepare = (sql: string) => {
    if (!/^\s*SELECT/.test(sql)) changing.push(sql);
    return sqlite.prepare(sql);
  };
  // Reading a statement prepares it.
  Object.values(prepareAll(Object.assign(Object.create(sqlite), { prepare })));
  const scans = changing
    .flatMap((sql) => sqlite.query<{ detail: string }, []>(`EXPLAIN QUERY PLAN ${sql.replaceAll("?", "5")}`).all())
    .map(({ detail }) => detail)
    .filter((detail) => detail.startsWith("SCAN") && !SHORT.includes(detail));
  return { changing: changing.length, scans };
};

describe("statements that run for each row read no long table as a whole", () => {
  test.each([
    ["to erase an address", prepareErasure, 10],
    [
      "to delete an account",
      (sqlite: Database) => ({ ...prepareDeletion(sqlite), ...prepareTargetRemoval(sqlite) }),
      15,
    ],
  ])("%s", (_, prepareAll, least) => {
    const { changing, scans } = scansOf(prepareAll);
    expect(changing).toBeGreaterThanOrEqual(least);
    expect(scans).toEqual([]);
  });
});
