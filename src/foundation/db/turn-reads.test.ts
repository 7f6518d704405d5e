import { Database } from "bun:sqlite";
import { afterEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { nextTurn } from "../base/clock.ts";
import { TurnReads } from "./turn-reads.ts";

const directory = mkdtempSync(join(tmpdir(), "postwarden-turn-reads-"));
const opened: Database[] = [];
afterEach(() => {
  for (const sqlite of opened.splice(0)) sqlite.close();
  rmSync(directory, { recursive: true, force: true });
});

const connect = () => {
  const sqlite = new Database(join(directory, "reads.db"));
  opened.push(sqlite);
  sqlite.run("PRAGMA journal_mode = WAL");
  sqlite.run("CREATE TABLE IF NOT EXISTS names (id TEXT PRIMARY KEY, name TEXT)");
  return sqlite;
};

test("a value is read once in a turn, again after a write of this process, and those of others in the next turn", async () => {
  const [sqlite, other] = [connect(), connect()];
  const reads = new TurnReads<string>({ sqlite });
  let count = 0;
  const nameOf = (id: string) =>
    reads.get(id, () => {
      count++;
      return sqlite.query<{ name: string }, [string]>("SELECT name FROM names WHERE id = ?").get(id)?.name;
    });
  const write = (connection: Database, name: string) =>
    connection.run("INSERT OR REPLACE INTO names VALUES ('a', ?)", [name]);
  write(sqlite, "one");
  expect([nameOf("a"), nameOf("a"), count]).toEqual(["one", "one", 1]);
  write(sqlite, "two");
  expect([nameOf("a"), nameOf("a"), count]).toEqual(["two", "two", 2]);
  write(other, "three");
  await nextTurn();
  expect([nameOf("a"), nameOf("b"), nameOf("b"), count]).toEqual(["three", undefined, undefined, 5]);

  // Not what is rolled back later.
  sqlite.run("BEGIN");
  write(sqlite, "four");
  expect(nameOf("a")).toBe("four");
  sqlite.run("ROLLBACK");
  expect(nameOf("a")).toBe("three");
});
