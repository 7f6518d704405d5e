import { describe, expect, test } from "bun:test";
import { copyAccount } from "./account-copy.ts";
import { createApps } from "./app.ts";
import { evidenceWith } from "./evidence.ts";
import { changesNothingOfOthers, watchOthers } from "./other-account.ts";
import { ownerOf, unattributedTables } from "./row-owners.ts";
import { fillTables, tablesOf } from "./upgrade-rows.ts";

const newApp = createApps();
const ACCOUNT = "account-1";

const filled = () => {
  const app = newApp();
  fillTables(app.db.sqlite, JSON.stringify(evidenceWith()));
  return app.db.sqlite;
};

describe("owners of rows", () => {
  test("every table belongs to accounts, or has a reason why not", () => {
    expect(unattributedTables(newApp().db.sqlite)).toEqual([]);
  });

  test("a new table that refers to nothing must get one", () => {
    const { sqlite } = newApp().db;
    sqlite.run("CREATE TABLE novelty (id text PRIMARY KEY)");
    sqlite.run("DROP TABLE blocklist_budgets");
    expect(unattributedTables(sqlite)).toEqual(["novelty: whose rows are these?", "blocklist_budgets: is not shared"]);
    sqlite.run(
      "CREATE TABLE by_key (id text PRIMARY KEY, owner text REFERENCES novelty (id), user text REFERENCES users (id))",
    );
    expect(ownerOf(sqlite, "by_key")?.account).toContain("users");
  });
});

describe("the copy of an account", () => {
  test("has a row in every table that belongs to accounts", () => {
    const sqlite = filled();
    const other = copyAccount(sqlite, ACCOUNT, { toNewAccount: true });
    const countOf = (table: string, account: string): number => {
      const owner = ownerOf(sqlite, table);
      const sql = `SELECT count(*) AS n FROM "${table}" WHERE ${owner?.account} = ?`;
      return sqlite.query<{ n: number }, [string]>(sql).get(account)?.n ?? 0;
    };
    const owned = tablesOf(sqlite).filter((table) => ownerOf(sqlite, table) !== null);
    for (const table of owned) expect([table, countOf(table, other)]).toEqual([table, countOf(table, ACCOUNT)]);
    expect(owned.filter((table) => countOf(table, other) === 0)).toEqual([]);
    expect(sqlite.query("PRAGMA foreign_key_check").all()).toEqual([]);
  });
});

describe("rows of others", () => {
  const actor = { accountId: ACCOUNT, mode: "live" } as const;

  test("an operation may change what is its account's", async () => {
    const sqlite = filled();
    const revoke = () => void sqlite.run("UPDATE api_keys SET revoked_at_ms = 1 WHERE id = 'key-live'");
    expect((await changesNothingOfOthers(sqlite, actor, revoke)).changed).toEqual(["api_keys"]);
  });

  test.each([
    [
      "another account's",
      "UPDATE api_keys SET revoked_at_ms = 1 WHERE mode = 'live'",
      /api_keys \["other\d+-key-live"\] was changed/,
    ],
    [
      "the other mode's",
      "DELETE FROM webhook_secrets WHERE account_id = 'account-1'",
      /webhook_secrets .* was deleted/,
    ],
    [
      "of a child table",
      "UPDATE key_secrets SET valid_until_ms = 1",
      /key_secrets .* was changed: .*"valid_until_ms":null/,
    ],
    ["nobody's", "DELETE FROM suppressions", /suppressions \["spam@example.com"\] was deleted/],
    [
      "a new one",
      "INSERT INTO suppressions VALUES ('a@example.com', NULL, 1)",
      /suppressions \["a@example.com"\] was added/,
    ],
  ])("a changed row fails with table and row: %s", async (_, statement, message) => {
    const sqlite = filled();
    await expect(changesNothingOfOthers(sqlite, actor, () => void sqlite.run(statement))).rejects.toThrow(message);
  });

  test("as many rows of shared tables as allowed may differ", async () => {
    const sqlite = filled();
    sqlite.run("INSERT INTO suppressions VALUES ('a@example.com', NULL, 1)");
    const remove = () => void sqlite.run("DELETE FROM suppressions");
    await expect(watchOthers(sqlite, actor, remove, { suppressions: 1 })).rejects.toThrow("suppressions");
  });
});
