import { afterEach, expect, test } from "bun:test";
import { createTestClock } from "../../testing/clock.ts";
import { IdempotencyStore } from "./idempotency.ts";
import { type Db, openDb } from "./open.ts";
import { insertEvent } from "./outbox.ts";

const DAY_MS = 24 * 60 * 60 * 1000;
const opened: Db[] = [];
afterEach(() => {
  for (const db of opened.splice(0)) db.close();
});

const start = () => {
  const result = openDb(":memory:");
  if (!result.ok) throw new Error(result.error.kind);
  opened.push(result.value);
  const clock = createTestClock();
  return { db: result.value, clock, store: new IdempotencyStore({ db: result.value, clock }) };
};
const request = { keyId: "key-1", idempotencyKey: "k", requestHash: "h1" };

test("a repeated request finds its resource for a day; another request with the key is refused; API keys are independent", async () => {
  const { db, clock, store } = start();
  expect(store.findResource(request)).toBeNull();
  db.transact((tx) => store.save(tx, request, "a"));
  await clock.advance(DAY_MS - 1);
  expect(store.findResource(request)).toBe("a");
  expect(() => store.findResource({ ...request, requestHash: "h2" })).toThrow("Idempotency-Key");
  expect(store.findResource({ ...request, keyId: "key-2" })).toBeNull();
  await clock.advance(1);
  expect(store.findResource({ ...request, requestHash: "h2" })).toBeNull();
});

test("an expired key can be used again, and purging deletes expired keys only", async () => {
  const { db, clock, store } = start();
  db.transact((tx) => store.save(tx, request, "a"));
  await clock.advance(DAY_MS);
  db.transact((tx) => store.save(tx, { ...request, requestHash: "h2" }, "b"));
  expect(store.findResource({ ...request, requestHash: "h2" })).toBe("b");
  expect(await store.purge()).toBe(0);
  await clock.advance(DAY_MS + 1);
  expect(await store.purge()).toBe(1);
});

test("expired keys are purged in transactions of 100, the oldest first, while other writes have their turn", async () => {
  const { db, clock, store } = start();
  const fill = db.sqlite.query(
    "INSERT INTO idempotency_keys WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 241) SELECT 'k', i, '', '', i FROM n",
  );
  fill.run();
  await clock.advance(2 * DAY_MS);
  const left = () => db.sqlite.query<{ at: number }, []>("SELECT created_at_ms AS at FROM idempotency_keys").all();
  const seen: Array<{ readonly count: number; readonly oldest: number | undefined }> = [];
  const note = () =>
    seen.push({
      count: left().length,
      oldest: left()
        .map(({ at }) => at)
        .toSorted((a, b) => a - b)[0],
    });
  expect(await store.purge(() => note() === 3)).toBe(200);
  expect(seen).toEqual([
    { count: 241, oldest: 1 },
    { count: 141, oldest: 101 },
    { count: 41, oldest: 201 },
  ]);
  expect(await store.purge()).toBe(41);
});

test("an event is written as JSON and waits for delivery, unless it is for the feed only", () => {
  const { db } = start();
  const event = { accountId: "a", mode: "live", type: "t", subject: "job:1", url: null, createdAtMs: 5 } as const;
  db.transact((tx) => {
    insertEvent(db, tx, { ...event, data: { n: 1 } });
    insertEvent(db, tx, { ...event, data: { n: 2 }, isFeedOnly: true });
  });
  const rows = db.sqlite.query("SELECT data, delivered_at_ms FROM outbox ORDER BY data").all();
  expect(rows).toEqual([
    { data: '{"n":1}', delivered_at_ms: null },
    { data: '{"n":2}', delivered_at_ms: 5 },
  ]);
});
