import { Database as Sqlite } from "bun:sqlite";
import { expect, test } from "bun:test";
import { migrate } from "./migrate.ts";
import { MIGRATIONS } from "./migrations.ts";

test("listings get their time from the history, or else from the last check", () => {
  const sqlite = new Sqlite(":memory:");
  const at = MIGRATIONS.findIndex(({ name }) => name.endsWith("blocklist_listings_and_ranges"));
  migrate(sqlite, MIGRATIONS.slice(0, at));
  sqlite.run(
    `INSERT INTO blocklist_targets (id, account_id, mode, kind, value, status, listed_on, muted_lists, monitoring_enabled, recipients,
      last_checked_at_ms, next_check_at_ms, created_at_ms) VALUES ('t', 'a', 'live', 'ipv4', '8.8.8.8', 'listed', '["one","two"]', '[]', 1, '[]', 50, 90, 1)`,
  );
  for (const [id, finishedAtMs] of [
    ["1", 10],
    ["2", 30],
  ])
    sqlite.run(
      `INSERT INTO blocklist_checks (id, target_id, trigger, started_at_ms, finished_at_ms, status, is_change, body)
        VALUES (?, 't', 'scheduled', 0, ?, 'listed', 1, '{"added":["one"]}')`,
      [id ?? "", finishedAtMs ?? 0],
    );
  migrate(sqlite, MIGRATIONS);
  expect(sqlite.query("SELECT listing, since_ms, seen_at_ms FROM blocklist_listings ORDER BY listing").all()).toEqual([
    { listing: "one", since_ms: 30, seen_at_ms: 50 },
    { listing: "two", since_ms: 50, seen_at_ms: 50 },
  ]);
});
