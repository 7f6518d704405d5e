import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { Database as Sqlite } from "bun:sqlite";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { writeBackup } from "./backup.ts";
import { openDb } from "./open.ts";
import { withdrawAccess } from "./restore.ts";

let folder = "";
const at = (name: string) => join(folder, name);

const write = (name: string, ...statements: readonly string[]) => {
  const sqlite = new Sqlite(at(name));
  for (const statement of statements) sqlite.run(statement);
  sqlite.close();
};
const read = (sql: string): unknown => {
  const sqlite = new Sqlite(at("restored.db"), { readonly: true });
  const rows = sqlite.query(sql).values();
  sqlite.close();
  return rows;
};

const key = (id: string, revokedAtMs: number | "NULL" = "NULL") =>
  `INSERT INTO api_keys (id, account_id, name, mode, scopes, revoked_at_ms, created_at_ms) VALUES ('${id}', 'a', 'name ${id}', 'live', '[]', ${revokedAtMs}, 1)`;
const secret = (hash: string, keyId: string, validUntilMs: number | "NULL" = "NULL") =>
  `INSERT INTO key_secrets (hash, key_id, ending, valid_until_ms, created_at_ms) VALUES ('${hash}', '${keyId}', 'abcd', ${validUntilMs}, 1)`;
const user = (id: string, hash: string) =>
  `INSERT INTO users (id, account_id, email, role, is_operator, password_hash, recovery_codes, created_at_ms) VALUES ('${id}', 'a', '${id}@example.com', 'owner', 0, '${hash}', '[]', 1)`;
const session = (id: string) =>
  `INSERT INTO sessions (hash, id, user_id, csrf_token, address, user_agent, created_at_ms, last_seen_at_ms) VALUES ('${id}', '${id}', 'ada', 't', '::1', 'x', 1, 1)`;
const link = `INSERT INTO setup_links (hash, account_id, created_at_ms, expires_at_ms) VALUES ('l', 'a', 1, 9)`;

/** A backup, and the database it replaces. */
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "postwarden-access-"));
  const opened = openDb(at("empty.db"));
  if (!opened.ok) throw new Error(opened.error.kind);
  opened.value.close();
  for (const name of ["restored.db", "former.db"]) {
    expect(writeBackup(at("empty.db"), at(name)).ok).toBe(true);
    write(
      name,
      "INSERT INTO accounts (id, name, plan, created_at_ms) VALUES ('a', 'main', 'free', 1)",
      ...[key("same"), secret("same1", "same"), user("ada", "hash")],
    );
  }
});
afterEach(() => rmSync(folder, { recursive: true }));

const withdraw = (keepSessions = false) =>
  withdrawAccess(at("restored.db"), {
    former: at("former.db"),
    keepSessions,
    by: { atMs: 1, user: "root", host: "h", pid: 1 },
  });

describe("a restored database", () => {
  test("has no session and no set-up link of the backup", () => {
    write("restored.db", session("one"), session("two"), link);
    expect(withdraw()).toMatchObject({ sessionsEnded: 2, linksEnded: 1 });
    expect(read("SELECT 1 FROM sessions UNION ALL SELECT 1 FROM setup_links")).toEqual([]);
  });

  test("keeps them where that is asked for", () => {
    write("restored.db", session("one"), link);
    expect(withdraw(true)).toMatchObject({ sessionsEnded: 0, linksEnded: 0 });
    expect(read("SELECT id FROM sessions")).toEqual([["one"]]);
    expect(read("SELECT hash FROM setup_links")).toEqual([["l"]]);
  });

  test("has the keys that were revoked since the backup revoked, and no other", () => {
    write("restored.db", key("leaked"), key("old", 5));
    write("former.db", key("leaked", 77), key("old", 5));
    const { keysRevoked, ...rest } = withdraw();
    expect(keysRevoked).toEqual([{ id: "leaked", account: "main", name: "name leaked" }]);
    expect(rest).toMatchObject({ isCompared: true, keysRotated: [], keysGone: [], usersBack: [], usersReset: [] });
    expect(read("SELECT id, revoked_at_ms FROM api_keys ORDER BY id")).toEqual([
      ["leaked", 77],
      ["old", 5],
      ["same", null],
    ]);
  });

  test("has the present secrets of a key that was rotated, and those of no other key change", () => {
    write("restored.db", key("moved"), secret("before", "moved"), key("gone back"), secret("x", "gone back"));
    write("former.db", key("moved"), secret("before", "moved", 50), secret("after", "moved"), key("new"));
    expect(withdraw()).toMatchObject({
      keysRotated: [{ id: "moved", account: "main", name: "name moved" }],
      keysGone: [{ id: "new", account: "main", name: "name new" }],
    });
    expect(read("SELECT hash, key_id, valid_until_ms FROM key_secrets ORDER BY hash")).toEqual([
      ["after", "moved", null],
      ["before", "moved", 50],
      ["same1", "same", null],
      ["x", "gone back", null],
    ]);
  });

  test("names the users who were removed or changed their password since the backup", () => {
    write("restored.db", user("eve", "e"), user("bob", "former"));
    write("former.db", user("bob", "new"));
    expect(withdraw()).toMatchObject({
      usersBack: [{ id: "eve", account: "main", name: "eve@example.com" }],
      usersReset: [{ id: "bob", account: "main", name: "bob@example.com" }],
    });
  });

  test.each<[string, () => string | null]>([
    ["there is no former database", () => null],
    [
      "the former database is damaged",
      () => {
        writeFileSync(at("former.db"), "damaged".repeat(2_000));
        return at("former.db");
      },
    ],
  ])("has its sessions ended when %s", (_, former) => {
    write("restored.db", session("one"));
    expect(
      withdrawAccess(at("restored.db"), {
        former: former(),
        keepSessions: false,
        by: { atMs: 1, user: "root", host: "h", pid: 1 },
      }),
    ).toMatchObject({
      ...{ sessionsEnded: 1, isCompared: false, keysRevoked: [] },
    });
  });

  test("of a version without users is compared as far as it goes", () => {
    write("restored.db", "DROP TABLE sessions", "DROP TABLE setup_links", "DROP TABLE users", key("leaked"));
    write("former.db", key("leaked", 77));
    expect(withdraw()).toMatchObject({ sessionsEnded: 0, linksEnded: 0, keysRevoked: [{ id: "leaked" }] });
  });
});
