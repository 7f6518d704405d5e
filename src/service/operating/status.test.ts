import { describe, expect, test } from "bun:test";
import { DAY_MS } from "../../foundation/base/days.ts";
import { createApps } from "../../testing/app.ts";
import { growthOf } from "./growth.ts";
import { InstanceStatus, kindsOf } from "./status.ts";

const start = createApps();
const CONFIG = { dataDir: "/", backupDir: null };

describe("the forecast", () => {
  const daily = (...bytes: readonly number[]) => bytes.map((size, day) => ({ atMs: day * DAY_MS, bytes: size }));
  test.each([
    ["no backups", daily(), null],
    ["two backups", daily(1, 2), null],
    ["three backups of one day", [0, 1, 2].map((atMs) => ({ atMs, bytes: 1 })), null],
    ["steady growth", daily(100, 110, 120), { bytesPerDay: 10, days: 2, daysLeft: 100 }],
    [
      "an outlier among days without growth",
      daily(100, 100, 130, 100, 100),
      { bytesPerDay: 0, days: 4, daysLeft: null },
    ],
    ["shrinking", daily(120, 110, 100), { bytesPerDay: -10, days: 2, daysLeft: null }],
  ])("of %s", (_, sizes, growth) => {
    expect(growthOf(sizes, 1_000)).toEqual(growth);
  });
});

test("space is summed by kind, and every table has one", () => {
  const { db } = start();
  const sizes = new InstanceStatus({ db, clock: start().clock }, CONFIG).space({ sizes: [] }, true).kinds ?? [];
  expect(sizes.map(({ kind }) => kind)).not.toContain("");
  expect(sizes.every(({ bytes }) => bytes > 0)).toBe(true);
  expect(
    kindsOf([
      { table: "bulk_rows", bytes: 5 },
      { table: "dmarc_raw", bytes: 3 },
      { table: "bulk_jobs", bytes: 1 },
      { table: "ledger", bytes: 2 },
    ]),
  ).toEqual([
    { kind: "lists", bytes: 6 },
    { kind: "report mails and files", bytes: 3 },
    { kind: "accounts, usage, audit log", bytes: 2 },
  ]);
});

test("open listings, alerts and low credits are those of enabled accounts; an acknowledged listing is not open", async () => {
  const app = start();
  app.newKey({ mode: "live" });
  const [account, { sqlite }] = [app.accountId(), app.db];
  const status = new InstanceStatus({ db: app.db, clock: app.clock }, CONFIG);
  const read = async () => ({
    ...{ listings: status.listings(), alerts: status.alerts(), credits: await status.lowCredits() },
  });
  expect(await read()).toEqual({ listings: [], alerts: [], credits: [] });
  sqlite.run(
    `INSERT INTO blocklist_targets (id, account_id, mode, kind, value, status, listed_on, muted_lists, monitoring_enabled, recipients, next_check_at_ms, created_at_ms)
      VALUES ('t', ?, 'live', 'domain', 'example.com', 'listed', '["a","b"]', '[]', 1, '[]', 1, 1)`,
    [account],
  );
  sqlite.run(`INSERT INTO blocklist_listings (target_id, listing, severity, since_ms, seen_at_ms, acknowledged_at_ms)
    VALUES ('t', 'a', 'critical', 1, 1, NULL), ('t', 'b', 'high', 1, 1, 5)`);
  const day = Math.floor(app.clock.nowMs() / DAY_MS);
  sqlite.run(
    `INSERT INTO usage_daily (account_id, key_id, mode, source, day, sub_status, verdict, verifications, credits)
      VALUES (?, 'k', 'live', 'single', ?, 'mailbox_exists', 'deliverable', 50, 50)`,
    [account, day],
  );
  expect(await read()).toMatchObject({
    listings: [{ severity: "critical", listings: 1 }],
    credits: [{ account: "main", available: 100, creditsPerDay: 50, daysLeft: 2 }],
  });
  app.service.accounts.accounts.setEnabled("main", false);
  expect(await read()).toEqual({ listings: [], alerts: [], credits: [] });
});
