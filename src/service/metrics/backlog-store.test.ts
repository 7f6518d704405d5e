import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { type Db, openDb } from "../../foundation/db/open.ts";
import { BacklogStore, COUNTED_MAX, prepareBacklog } from "./backlog-store.ts";

let db: Db;
beforeEach(() => {
  const opened = openDb(":memory:");
  if (!opened.ok) throw new Error(opened.error.kind);
  db = opened.value;
});
afterEach(() => db.close());

const run = (sql: string) => db.sqlite.run(sql);
const NUMBERS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20005)";

describe("the backlog", () => {
  test("of an empty database is nothing, without an age", () => {
    expect(new BacklogStore(db).read()).toEqual({
      ...{ pendingVerifications: 0, jobs: [], pendingReports: 0, oldestReportMs: null, oldestEventMs: null },
      ...{ webhookDueMs: null, checkDueMs: null, credits: { available: 0, held: 0 } },
    });
  });

  test("counts what is pending, by status, and no further than its limit", () => {
    run(`${NUMBERS} INSERT INTO verifications (id, account_id, key_id, mode, email, normalized_email, status, created_at_ms)
      SELECT i, 'a', 'k', 'live', i, i, 'pending', 1 FROM n`);
    run(`INSERT INTO verifications (id, account_id, key_id, mode, email, normalized_email, status, created_at_ms)
      VALUES ('done', 'a', 'k', 'live', 'x', 'x', 'completed', 1)`);
    const job = (id: string, status: string, total: number, finished: number) =>
      run(`INSERT INTO bulk_jobs (id, account_id, key_id, mode, status, format, rows_total, rows_finished, created_at_ms)
        VALUES ('${id}', 'a', 'k', 'live', '${status}', 'null', ${total}, ${finished}, 1)`);
    job("1", "running", 100, 40);
    job("2", "running", 10, 0);
    job("3", "queued", 5, 0);
    job("4", "completed", 7, 7);
    const { pendingVerifications, jobs } = new BacklogStore(db).read();
    expect(pendingVerifications).toBe(COUNTED_MAX);
    expect(jobs.toSorted((a, b) => a.status.localeCompare(b.status))).toEqual([
      { status: "queued", jobs: 1, rowsLeft: 5 },
      { status: "running", jobs: 2, rowsLeft: 70 },
    ]);
  });

  test("finds the oldest report, event and due times, and sums the credits", () => {
    const report = (id: string, status: string, atMs: number) =>
      run(`INSERT INTO dmarc_ingestions (id, account_id, mode, via, received_at_ms, bytes, status)
        VALUES ('${id}', 'a', 'live', 'smtp', ${atMs}, 1, '${status}')`);
    report("1", "done", 100);
    report("2", "pending", 200);
    report("3", "pending", 300);
    const delivery = (id: string, eventId: string, status: string, dueAtMs: number | null) =>
      run(`INSERT INTO webhook_deliveries (id, event_id, account_id, mode, url, type, body, status, due_at_ms, created_at_ms)
        VALUES ('${id}', '${eventId}', 'a', 'live', 'https://example.com/${id}', 't', '{}', '${status}', ${dueAtMs}, 1)`);
    delivery("1", "019b7000-0000-7000-8000-000000000001", "delivered", null);
    delivery("2", "019b7600-0000-7000-8000-000000000001", "pending", 5_000);
    delivery("3", "019b7700-0000-7000-8000-000000000001", "pending", 4_000);
    run(
      "INSERT INTO accounts (id, name, plan, credits_available, credits_held, created_at_ms) VALUES ('a', 'a', 'free', 5, 2, 1), ('b', 'b', 'free', 6, 0, 1)",
    );
    const read = new BacklogStore(db).read();
    expect(read).toMatchObject({ pendingReports: 2, oldestReportMs: 200, webhookDueMs: 4_000 });
    expect(read.oldestEventMs).toBe(0x019b76000000);
    expect(read.credits).toEqual({ available: 11, held: 2 });
    run(
      "INSERT INTO outbox (id, account_id, mode, type, data, created_at_ms) VALUES ('e', 'a', 'live', 't', '{}', 77)",
    );
    expect(new BacklogStore(db).read().oldestEventMs).toBe(77);
  });

  test("reads no table as a whole, except the accounts", () => {
    const statements: string[] = [];
    const prepare = (sql: string) => {
      statements.push(sql);
      return db.sqlite.prepare(sql);
    };
    // Reading a statement prepares it.
    Object.values(prepareBacklog({ sqlite: Object.assign(Object.create(db.sqlite), { prepare }) }));
    const planOf = (sql: string) => db.sqlite.query<{ detail: string }, []>(`EXPLAIN QUERY PLAN ${sql}`).all();
    const scans = statements
      .flatMap((sql) => planOf(sql.replaceAll("?", "5")))
      .map(({ detail }) => detail)
      .filter((detail) => detail.startsWith("SCAN") && !detail.includes("INDEX") && !detail.includes("subquery"));
    expect(statements.length).toBeGreaterThan(5);
    expect(scans).toEqual(["SCAN accounts"]);
  });
});
