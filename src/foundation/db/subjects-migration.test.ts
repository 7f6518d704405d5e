import { Database as Sqlite } from "bun:sqlite";
import { expect, test } from "bun:test";
import { migrate } from "./migrate.ts";
import { MIGRATIONS } from "./migrations.ts";

test("deliveries and events get their subject, and each subject of a URL its own queue", () => {
  const sqlite = new Sqlite(":memory:");
  const at = MIGRATIONS.findIndex(({ name }) => name.endsWith("notifications_and_subjects"));
  migrate(sqlite, MIGRATIONS.slice(0, at));
  const facts = {
    "blacklist.listed": { target_id: "x" },
    "dmarc.new_source": { domain_id: "x" },
    "bulk.completed": { id: "x" },
    "test.event": {},
  };
  const types: ReadonlyArray<keyof typeof facts> = [
    "blacklist.listed",
    "blacklist.listed",
    "dmarc.new_source",
    "bulk.completed",
    "test.event",
  ];
  for (const [index, type] of types.entries()) {
    const data = facts[type];
    sqlite.run(
      `INSERT INTO webhook_deliveries (id, account_id, mode, url, type, body, status, due_at_ms, created_at_ms)
       VALUES (?, 'a', 'live', 'https://u.example/', ?, ?, 'pending', ?, 0)`,
      [String(index), type, JSON.stringify({ type, data }), index === 0 ? 5 : null],
    );
    sqlite.run(
      "INSERT INTO outbox (id, account_id, mode, type, data, url, created_at_ms) VALUES (?, 'a', 'live', ?, ?, ?, 9)",
      [String(index), type, JSON.stringify(data), index === 0 ? "https://u.example/" : null],
    );
  }
  migrate(sqlite, MIGRATIONS);
  const subjects = ["target:x", "target:x", "domain:x", "job:x", ""];
  expect(sqlite.query("SELECT event_id, subject, due_at_ms FROM webhook_deliveries ORDER BY id").all()).toEqual(
    [5, null, 0, 0, 0].map((due_at_ms, index) => ({ event_id: String(index), subject: subjects[index], due_at_ms })),
  );
  // Events without a receiver are not sent to anybody afterwards.
  expect(sqlite.query("SELECT subject, delivered_at_ms FROM outbox ORDER BY id").all()).toEqual(
    [null, 9, 9, 9, 9].map((delivered_at_ms, index) => ({ subject: subjects[index], delivered_at_ms })),
  );
});
