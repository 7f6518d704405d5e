import { SQLiteError } from "bun:sqlite";
import { expect, test } from "bun:test";
import { newId } from "../foundation/base/secrets.ts";
import { LateWebhooks } from "./late-webhooks.ts";
import { createApps } from "../testing/app.ts";
import { createTestClock } from "../testing/clock.ts";

const start = createApps();
const MINUTE_MS = 60_000;

test("a delivery that waits for an hour degrades the readiness until it is delivered", async () => {
  const app = start();
  const key = app.newKey({ mode: "live" });
  const readiness = async () => (await app.request("GET", "/readyz")).body;
  const body = { type: "bulk.completed", timestamp: "2026-01-01T00:00:00.000Z", data: {} };
  const eventId = "019b7652-ec00-7000-8000-000000000001";
  app.db.sqlite.run(
    `INSERT INTO webhook_deliveries (id, account_id, mode, url, type, body, status, attempts, due_at_ms, created_at_ms, event_id, subject, rejections)
      VALUES (?, ?, 'live', 'http://hooks.example/token', 'bulk.completed', ?, 'pending', 3, ?, 1, ?, 'job:1', 0)`,
    [newId(), app.accountId(), JSON.stringify(body), app.clock.nowMs() + 1e9, eventId],
  );
  const createdAtMs = Number.parseInt(eventId.replace("-", "").slice(0, 12), 16);
  app.clock.setWall(createdAtMs + 59 * MINUTE_MS - app.clock.nowMs());
  expect(await readiness()).toEqual({ status: "ok", findings: [] });
  await app.advance(MINUTE_MS);
  const findings = ["The oldest undelivered webhook is 1 hour late. The page Webhooks shows which endpoints fail."];
  expect(await readiness()).toEqual({ status: "degraded", findings });
  await app.advance(59 * MINUTE_MS);
  expect(await readiness()).toEqual({ status: "degraded", findings });
  await app.advance(47 * 60 * MINUTE_MS);
  expect((await readiness()).findings).toEqual([expect.stringContaining("is 2 days late")]);
  await app.request("POST", "/v1/webhooks/deliveries/cancel", { key, body: {} });
  await app.advance(MINUTE_MS);
  expect(await readiness()).toEqual({ status: "ok", findings: [] });
});

test("the database is read every ten seconds at most, and one that cannot be read changes nothing", async () => {
  const clock = createTestClock();
  let reads = 0;
  const answers = [
    () => 0,
    () => {
      throw Object.assign(Object.create(SQLiteError.prototype), {
        code: "SQLITE_IOERR_READ",
        message: "disk I/O error",
      });
    },
    () => null,
  ];
  const late = new LateWebhooks({ clock }, { oldestEventMs: () => answers[reads++]?.() ?? null });
  expect(late.findings()).toHaveLength(1);
  await clock.advance(9_999);
  expect([late.findings().length, reads]).toEqual([1, 1]);
  await clock.advance(1);
  expect([late.findings().length, reads]).toEqual([1, 2]);
  await clock.advance(10_000);
  expect([late.findings().length, reads]).toEqual([0, 3]);
});
