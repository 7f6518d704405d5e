import { Database as Sqlite } from "bun:sqlite";
import { expect, test } from "bun:test";
import { migrate } from "./migrate.ts";
import { MIGRATIONS } from "./migrations.ts";

test("the weeks of a source are summed up from the days that are already stored, and follow them from then on", () => {
  const sqlite = new Sqlite(":memory:");
  const at = MIGRATIONS.findIndex(({ name }) => name.endsWith("dmarc_weekly"));
  migrate(sqlite, MIGRATIONS.slice(0, at));
  const insert = (day: number, messages: number, isTrusted: 0 | 1) =>
    sqlite.run("INSERT INTO dmarc_daily VALUES (1, ?, 5, ?, 1, 2, 3, 4, 5, 6, 7, ?)", [day, messages, isTrusted]);
  insert(13, 10, 1);
  insert(14, 20, 1);
  insert(15, 30, 1);
  insert(15, 40, 0);
  migrate(sqlite, MIGRATIONS);
  const weeks = () => sqlite.query("SELECT * FROM dmarc_weekly ORDER BY week, is_trusted").values();
  expect(weeks()).toEqual([
    [1, 5, 1, 1, 10, 1, 2, 3, 4, 5, 6, 7],
    [1, 5, 0, 2, 40, 1, 2, 3, 4, 5, 6, 7],
    [1, 5, 1, 2, 50, 2, 4, 6, 8, 10, 12, 14],
  ]);
  insert(20, 1, 1);
  sqlite.run("UPDATE dmarc_daily SET messages = 60, rejected = 0 WHERE day = 15 AND is_trusted = 1");
  sqlite.run("UPDATE dmarc_daily SET day = 12 WHERE day = 20");
  sqlite.run("UPDATE dmarc_daily SET day = 20 WHERE day = 12");
  sqlite.run("DELETE FROM dmarc_daily WHERE day = 13 OR is_trusted = 0");
  expect(weeks()).toEqual([[1, 5, 1, 2, 81, 3, 6, 9, 12, 15, 18, 14]]);
});
