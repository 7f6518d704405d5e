import { describe, expect, test } from "bun:test";
import { dayOfTime } from "../../foundation/base/days.ts";
import { migrate } from "../../foundation/db/migrate.ts";
import { MIGRATIONS } from "../../foundation/db/migrations.ts";
import { createApps, type TestApp } from "../../testing/app.ts";
import { BULK_PATH, postList, untilJobEnded } from "../../testing/bulk-requests.ts";
import { UsageStore } from "./usage-store.ts";

const start = createApps();

/** `source sub_status verdict verifications credits` of every row, sorted. */
const counted = ({ db }: TestApp): string[] =>
  db.sqlite
    .query<{ text: string }, []>(
      `SELECT concat_ws(' ', mode, day, source, sub_status, verdict, verifications, credits) AS text FROM usage_daily
        WHERE verifications <> 0 OR credits <> 0 ORDER BY text`,
    )
    .all()
    .map(({ text }) => text);

const DAY_MS = 86_400_000;

describe("the daily sums", () => {
  test("count single verifications that end at once and after an attempt, with what was charged", async () => {
    const app = start({ zone: { "gone.example": "nxdomain", "broken.example": "servfail" } });
    const key = app.newKey({ mode: "live" });
    const day = dayOfTime(app.clock.nowMs());
    await app.verify(key, "no address");
    await app.verify(key, "a@gone.example");
    await app.verify(key, "a@gone.example");
    const failing = app.verify(key, "a@broken.example", "?timeout=1");
    expect(counted(app)).toEqual([
      `live ${day} single domain_not_found undeliverable 2 2`,
      `live ${day} single invalid_syntax undeliverable 1 1`,
    ]);
    for (let hours = 0; hours < 3; hours += 1) await app.advance(DAY_MS / 24);
    await failing;
    expect(counted(app)[0]).toBe(`live ${dayOfTime(app.clock.nowMs())} single dns_error risky 1 0`);
    expect(app.credits()).toEqual({ available: 97, held: 0 });
  });

  test("count distinct addresses of a list, and those of test keys without credits", async () => {
    const app = start({ zone: { "gone.example": "nxdomain" } });
    const day = dayOfTime(app.clock.nowMs());
    for (const mode of ["live", "test"] as const) {
      const key = app.newKey({ mode });
      const emails = ["a@gone.example", "A@gone.example", "b@gone.example", "no address"];
      const { id } = await postList(app, { key, body: { emails } });
      await untilJobEnded(app, key, id);
    }
    expect(counted(app)).toEqual([
      `live ${day} list domain_not_found undeliverable 2 2`,
      `live ${day} list invalid_syntax undeliverable 1 1`,
      `test ${day} list invalid_syntax undeliverable 1 0`,
      `test ${day} list mailbox_exists deliverable 2 0`,
    ]);
  });

  test("count an address that a list verifies again once, on the day of its latest result", async () => {
    const zone: Record<string, "servfail" | "nxdomain"> = { "broken.example": "servfail", "gone.example": "nxdomain" };
    const app = start({ zone, settings: { GREYLIST_RETRIES_S: "1" } });
    const key = app.newKey({ mode: "live" });
    const first = dayOfTime(app.clock.nowMs());
    const { id } = await postList(app, {
      key,
      body: { emails: ["a@broken.example", "b@broken.example", "c@gone.example"] },
    });
    await untilJobEnded(app, key, id);
    expect(counted(app)).toEqual([
      `live ${first} list dns_error risky 2 0`,
      `live ${first} list domain_not_found undeliverable 1 1`,
    ]);
    await app.advance(DAY_MS);
    zone["broken.example"] = "nxdomain";
    await app.request("POST", `${BULK_PATH}/${id}/retry`, { key });
    await untilJobEnded(app, key, id);
    expect(counted(app)).toEqual([
      `live ${first} list domain_not_found undeliverable 1 1`,
      `live ${first + 1} list domain_not_found undeliverable 2 2`,
    ]);
  });

  test("count a list of a test key on its own day, and its retry not again", async () => {
    const app = start();
    await app.advance(3 * DAY_MS);
    const day = dayOfTime(app.clock.nowMs());
    const key = app.newKey();
    const { id } = await postList(app, {
      key,
      body: { emails: ["greylisted@any.example", "mailbox_exists@any.example"] },
    });
    await untilJobEnded(app, key, id);
    const once = [`test ${day} list greylisted risky 1 0`, `test ${day} list mailbox_exists deliverable 1 0`];
    expect(counted(app)).toEqual(once);
    await app.advance(DAY_MS);
    await app.request("POST", `${BULK_PATH}/${id}/retry`, { key });
    expect(await untilJobEnded(app, key, id)).toMatchObject({ sub_statuses: { greylisted: 1 } });
    expect(counted(app)).toEqual(once);
  });

  test("of a history from before they existed are computed by the migration", async () => {
    const app = start({
      zone: { "gone.example": "nxdomain", "broken.example": "servfail" },
      settings: { GREYLIST_RETRIES_S: "1" },
    });
    for (const mode of ["live", "test"] as const) {
      const key = app.newKey({ mode });
      await app.verify(key, "a@gone.example");
      const failing = app.verify(key, "a@broken.example", "?timeout=1");
      await app.advance(DAY_MS / 2);
      await failing;
      const { id } = await postList(app, {
        key,
        body: { emails: ["a@gone.example", "B@broken.example", "b@broken.example", ""] },
      });
      await untilJobEnded(app, key, id);
    }
    const before = counted(app);
    expect(before.length).toBe(6);
    const { sqlite } = app.db;
    for (const table of ["usage_daily", "rate_limited_daily", "webhook_attempts"]) sqlite.run(`DROP TABLE ${table}`);
    for (const index of ["ledger_grants", "verifications_by_account"]) sqlite.run(`DROP INDEX ${index}`);
    const at = MIGRATIONS.findIndex(({ name }) => name.endsWith("_usage"));
    sqlite.run(`PRAGMA user_version = ${at}`);
    expect(migrate(sqlite, MIGRATIONS.slice(0, at + 1))).toMatchObject({ ok: true });
    expect(counted(app)).toEqual(before);
  });
});

describe("the store", () => {
  const entry = {
    source: "single",
    verdict: "risky",
    subStatus: "catch_all",
    keyId: "k",
    verifications: 1,
    credits: 1,
  } as const;

  test("sums up a range of days of one account and mode, by each column", () => {
    const { db } = start();
    const store = new UsageStore(db);
    const owner = { accountId: "a", mode: "live" } as const;
    db.transact((tx) => {
      for (const day of [9, 10, 10, 12, 13]) store.add(tx, { ...owner, ...entry, day });
      store.add(tx, { ...owner, ...entry, day: 10, keyId: "l", source: "list", verifications: 5, credits: 0 });
      store.add(tx, { ...owner, ...entry, day: 10, verdict: "deliverable", subStatus: "mailbox_exists" });
      store.add(tx, { ...owner, ...entry, day: 10, accountId: "b" });
      store.add(tx, { ...owner, ...entry, day: 10, mode: "test" });
    });
    const sums = (column: Parameters<UsageStore["sums"]>[1]) =>
      store
        .sums(owner, column, { fromDay: 10, toDay: 12 })
        .map(({ group, verdict, verifications, credits }) => [group, verdict, verifications, credits]);
    expect(sums("day")).toEqual([
      [10, "deliverable", 1, 1],
      [10, "risky", 7, 2],
      [12, "risky", 1, 1],
    ]);
    expect(sums("keyId")).toEqual([
      ["k", "deliverable", 1, 1],
      ["k", "risky", 3, 3],
      ["l", "risky", 5, 0],
    ]);
    expect(sums("verdict").map(([group]) => group)).toEqual(["deliverable", "risky"]);
    expect(sums("subStatus").map(([group]) => group)).toEqual(["catch_all", "mailbox_exists"]);
  });

  test("adds refused requests, and none of an account that is deleted", () => {
    const app = start();
    const store = new UsageStore(app.db);
    const owner = { accountId: app.newAccount("one", "free"), mode: "live" } as const;
    const add = (day: number, requests: number) =>
      app.db.transact((tx) => store.addRateLimited(tx, { ...owner, day, keyId: "k", requests }));
    for (const [day, requests] of [
      [9, 1],
      [10, 2],
      [10, 3],
      [13, 4],
    ] as const)
      add(day, requests);
    expect(store.rateLimited(owner, { fromDay: 10, toDay: 12 })).toEqual([{ day: 10, keyId: "k", requests: 5 }]);
    expect(store.rateLimited({ ...owner, mode: "test" }, { fromDay: 0, toDay: 99 })).toEqual([]);
    app.db.sqlite.run("UPDATE accounts SET deleted_at_ms = 1 WHERE id = ?", [owner.accountId]);
    add(11, 1);
    expect(store.rateLimited(owner, { fromDay: 11, toDay: 12 })).toEqual([]);
  });
});
