import { expect, test } from "bun:test";
import { openDb } from "./open.ts";
import { correctPlannedTimes } from "./planned-times.ts";

const DAY_MS = 24 * 60 * 60 * 1000;
const NOW_MS = Date.UTC(2026, 0, 1);
const FUTURE_MS = NOW_MS + 3_650 * DAY_MS;

const openFilled = () => {
  const opened = openDb(":memory:");
  if (!opened.ok) throw new Error(opened.error.kind);
  const { value: db } = opened;
  const target = db.sqlite.prepare(
    "INSERT INTO blocklist_targets (id, account_id, mode, kind, value, status, listed_on, muted_lists, recipients, monitoring_enabled, next_check_at_ms, created_at_ms) VALUES (?, 'a', 'live', 'ipv4', ?, 'clean', '[]', '[]', '[]', ?, ?, 0)",
  );
  target.run("soon", "192.0.2.1", 1, NOW_MS + 6 * 60 * 60 * 1000);
  target.run("never", "192.0.2.2", 1, FUTURE_MS);
  target.run("paused", "192.0.2.3", 0, FUTURE_MS);
  const delivery = db.sqlite.prepare(
    "INSERT INTO webhook_deliveries (id, account_id, mode, url, type, body, status, due_at_ms, created_at_ms) VALUES (?, 'a', 'live', 'https://example.com', 't', '{}', 'pending', ?, 0)",
  );
  delivery.run("retry", NOW_MS + DAY_MS);
  delivery.run("never", FUTURE_MS);
  delivery.run("behind", null);
  const pause = db.sqlite.prepare(
    "INSERT INTO webhook_pauses (account_id, mode, url, until_ms) VALUES ('a', 'live', ?, ?)",
  );
  pause.run("https://a.example", NOW_MS + DAY_MS);
  pause.run("https://b.example", FUTURE_MS);
  db.sqlite.run("INSERT INTO dmarc_health (domain, due_at_ms) VALUES (1, ?), (2, ?)", [NOW_MS + DAY_MS, FUTURE_MS]);
  for (const [domain, dueAtMs] of [
    [1, NOW_MS + DAY_MS],
    [2, FUTURE_MS],
  ])
    db.sqlite.run("INSERT INTO dmarc_mta_sts VALUES (?, 'testing', 0, '[]', 0, '[]', 0, NULL, NULL, 0, ?, NULL)", [
      domain ?? 0,
      dueAtMs ?? 0,
    ]);
  const overview = db.sqlite.prepare(
    "INSERT INTO dmarc_overviews (domain, computed_at_ms, messages_7, aligned_7, messages_30, aligned_30, actionable_30, body) VALUES (?, ?, 0, 0, 0, 0, 0, '{}')",
  );
  overview.run(1, NOW_MS);
  overview.run(2, FUTURE_MS);
  const digest = db.sqlite.prepare(
    "INSERT INTO dmarc_tag_digests (account_id, mode, tag, digest, recipients, due_at_ms) VALUES ('a', 'live', ?, 'monthly', '[]', ?)",
  );
  digest.run("a month", NOW_MS + 31 * DAY_MS);
  digest.run("never", FUTURE_MS);
  digest.run("off", null);
  const listings = db.sqlite.prepare(
    "INSERT INTO account_notifications (account_id, mode, recipients, updated_at_ms, blacklist_digest_due_at_ms) VALUES (?, 'live', '[]', 0, ?)",
  );
  listings.run("a", NOW_MS + DAY_MS);
  listings.run("b", FUTURE_MS);
  return db;
};

test("work that a wrong clock planned for years ahead is due now; everything else keeps its time", () => {
  const db = openFilled();
  expect(db.transact((tx) => correctPlannedTimes(db, tx, NOW_MS))).toBe(8);
  const times = (sql: string) => db.sqlite.query(sql).values().flat();
  expect(times("SELECT next_check_at_ms FROM blocklist_targets ORDER BY rowid")).toEqual([
    NOW_MS + 6 * 60 * 60 * 1000,
    NOW_MS,
    FUTURE_MS,
  ]);
  expect(times("SELECT due_at_ms FROM webhook_deliveries ORDER BY rowid")).toEqual([NOW_MS + DAY_MS, NOW_MS, null]);
  expect(times("SELECT until_ms FROM webhook_pauses ORDER BY url")).toEqual([NOW_MS + DAY_MS, NOW_MS]);
  expect(times("SELECT due_at_ms FROM dmarc_health ORDER BY domain")).toEqual([NOW_MS + DAY_MS, NOW_MS]);
  expect(times("SELECT due_at_ms FROM dmarc_mta_sts ORDER BY domain")).toEqual([NOW_MS + DAY_MS, NOW_MS]);
  expect(times("SELECT computed_at_ms FROM dmarc_overviews ORDER BY domain")).toEqual([NOW_MS, NOW_MS]);
  expect(times("SELECT due_at_ms FROM dmarc_tag_digests ORDER BY tag")).toEqual([NOW_MS + 31 * DAY_MS, NOW_MS, null]);
  expect(times("SELECT blacklist_digest_due_at_ms FROM account_notifications ORDER BY account_id")).toEqual([
    NOW_MS + DAY_MS,
    NOW_MS,
  ]);
  expect(db.transact((tx) => correctPlannedTimes(db, tx, NOW_MS))).toBe(0);
  db.close();
});

test("a domain of a test key stays planned for never", () => {
  const db = openFilled();
  const insert = db.sqlite.query(
    "SELECT name FROM pragma_table_info('dmarc_domains') WHERE \"notnull\" AND dflt_value IS NULL",
  );
  const names = (insert.all() as Array<{ name: string }>).map(({ name }) => name).filter((name) => name !== "number");
  const values: Record<string, unknown> = { monitoring_enabled: 1, next_check_at_ms: FUTURE_MS };
  for (const mode of ["live", "test"]) {
    const row = names.map((name) =>
      name === "mode" || name === "id" || name === "token" ? mode : (values[name] ?? 1),
    );
    db.sqlite
      .query(`INSERT INTO dmarc_domains (${names.join()}) VALUES (${names.map(() => "?").join()})`)
      .run(...(row as never[]));
  }
  db.transact((tx) => correctPlannedTimes(db, tx, NOW_MS));
  const found = db.sqlite.query("SELECT mode, next_check_at_ms AS atMs FROM dmarc_domains ORDER BY mode").all();
  expect(found).toEqual([
    { mode: "live", atMs: NOW_MS },
    { mode: "test", atMs: FUTURE_MS },
  ]);
  db.close();
});
