import { Database } from "bun:sqlite";
import { expect, spyOn, test } from "bun:test";
import { prepareRowInsert, rows, sqlStatements, statements } from "./statements.ts";

const newTable = (ending = "") => {
  const sqlite = new Database(":memory:");
  sqlite.run("CREATE TABLE counts (key INTEGER PRIMARY KEY, word TEXT, count INTEGER)");
  const insert = prepareRowInsert({ sqlite }, { into: "counts (key, count, word)", columns: 3, ending });
  return { insert, all: () => sqlite.query("SELECT key, count, word FROM counts ORDER BY key").values() };
};

const rowsOf = (count: number) => Array.from({ length: count }, (_, key) => [key, key * 2, `word ${key}`]);

test.each([0, 1, 7, 8, 9, 63, 64, 65, 200])("%i rows are inserted, each once and whole", (count) => {
  const { insert, all } = newTable();
  insert(rowsOf(count));
  expect(all()).toEqual(rowsOf(count));
});

test("rows with the same key in one call meet the ending in their order", () => {
  const { insert, all } = newTable("ON CONFLICT DO UPDATE SET count = count + excluded.count, word = excluded.word");
  insert([...Array.from({ length: 100 }, (_, at) => [1, 1, `word ${at}`]), [2, null, null]]);
  expect(all()).toEqual([
    [1, 100, "word 99"],
    [2, null, null],
  ]);
});

test("a row that violates a constraint throws", () => {
  const { insert } = newTable();
  expect(() => insert([...rowsOf(10), [3, 0, ""]])).toThrow("UNIQUE");
});

test("a statement is prepared when it is first used, once; a wrong one throws then, each time", () => {
  const sqlite = new Database(":memory:");
  const prepare = spyOn(sqlite, "prepare");
  const prepared = statements({
    right: () => sqlite.prepare<{ n: number }, [number]>("SELECT ? + 1 AS n"),
    wrong: () => sqlite.prepare("SELECT * FROM no_such_table"),
  });
  expect(prepare).not.toHaveBeenCalled();
  expect([prepared.right.get(1), prepared.right.get(2)]).toEqual([{ n: 2 }, { n: 3 }]);
  expect(prepare).toHaveBeenCalledTimes(1);
  expect(() => prepared.wrong.all()).toThrow("no such table");
  sqlite.run("CREATE TABLE no_such_table (a)");
  expect(prepared.wrong.all()).toEqual([]);
});

test("statements by their text are prepared when they are first used", () => {
  const sqlite = new Database(":memory:");
  const prepare = spyOn(sqlite, "prepare");
  const prepared = sqlStatements(
    { sqlite },
    {
      create: "CREATE TABLE counts (count INTEGER)",
      sum: rows<{ sum: number }, [number]>("SELECT sum(count) + ? AS sum FROM counts"),
      inserts: () => [1, 2].map((count) => sqlite.prepare(`INSERT INTO counts VALUES (${count})`)),
    },
  );
  expect(prepare).not.toHaveBeenCalled();
  prepared.create.run();
  for (const insert of prepared.inserts) insert.run();
  expect([prepared.sum.get(1), prepared.sum.get(2)]).toEqual([{ sum: 4 }, { sum: 5 }]);
  expect(prepare).toHaveBeenCalledTimes(4);
});
