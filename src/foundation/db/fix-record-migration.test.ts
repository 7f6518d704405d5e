import { Database as Sqlite } from "bun:sqlite";
import { expect, test } from "bun:test";
import { migrate } from "./migrate.ts";
import { MIGRATIONS } from "./migrations.ts";

test("a stored next step has the present name of its action; others and domains without one stay as they are", () => {
  const sqlite = new Sqlite(":memory:");
  const at = MIGRATIONS.findIndex(({ name }) => name.endsWith("fix_record"));
  migrate(sqlite, MIGRATIONS.slice(0, at));
  const bodies = [
    { fromDay: 1, messages: [1, null], next: { action: "mend_record", why: "mend_record is in this text" } },
    { fromDay: 1, messages: [1, null], next: { action: "publish_record", why: "x" } },
    { fromDay: 1, messages: [], next: null },
  ];
  for (const [domain, body] of bodies.entries())
    sqlite.run("INSERT INTO dmarc_overviews VALUES (?, 0, 0, 0, 0, 0, 0, ?)", [domain, JSON.stringify(body)]);
  migrate(sqlite, MIGRATIONS);
  const stored = sqlite.query<{ body: string }, []>("SELECT body FROM dmarc_overviews ORDER BY domain").all();
  const [first, ...others] = bodies;
  expect(stored.map(({ body }) => JSON.parse(body))).toEqual([
    { ...first, next: { action: "fix_record", why: "mend_record is in this text" } },
    ...others,
  ]);
});
