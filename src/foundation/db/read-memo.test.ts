import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Database } from "bun:sqlite";
import { ReadMemo } from "./read-memo.ts";

test("a result is kept until a write of this or another connection, and the oldest gives way", () => {
  const folder = mkdtempSync(join(tmpdir(), "postwarden-memo-"));
  const sqlite = new Database(join(folder, "a.db"));
  try {
    sqlite.run("PRAGMA journal_mode = WAL");
    sqlite.run("CREATE TABLE t (n INTEGER)");
    const memo = new ReadMemo<number>({ sqlite }, 2);
    let reads = 0;
    const count = (key: string): readonly [rows: number, reads: number] => {
      const rows = memo.get(key, () => {
        reads += 1;
        return sqlite.query<{ n: number }, []>("SELECT count(*) n FROM t").get()?.n ?? -1;
      });
      return [rows, reads];
    };
    expect([count("a"), count("a"), count("b")]).toEqual([
      [0, 1],
      [0, 1],
      [0, 2],
    ]);
    sqlite.run("INSERT INTO t VALUES (1)");
    expect([count("a"), count("a")]).toEqual([
      [1, 3],
      [1, 3],
    ]);
    const other = new Database(join(folder, "a.db"));
    other.run("INSERT INTO t VALUES (2)");
    other.close();
    expect(count("a")).toEqual([2, 4]);
    expect([count("b"), count("c"), count("a")]).toEqual([
      [2, 5],
      [2, 6],
      [2, 7],
    ]);
  } finally {
    sqlite.close();
    rmSync(folder, { recursive: true });
  }
});

test("a read that fails is not kept; those who ask meanwhile share it", async () => {
  const sqlite = new Database(":memory:");
  const memo = new ReadMemo<Promise<string>>({ sqlite }, 2);
  const first = Promise.withResolvers<string>();
  const asked = ["a", "a"].map((key) => memo.get(key, () => first.promise));
  first.reject(new Error("disk"));
  expect(await Promise.allSettled(asked)).toMatchObject([
    { reason: { message: "disk" } },
    { reason: { message: "disk" } },
  ]);
  expect(await memo.get("a", async () => "read again")).toBe("read again");
  expect(await memo.get("a", async () => "not read")).toBe("read again");
});
