import { describe, expect, test } from "bun:test";
import { DAY_MS } from "../../foundation/base/days.ts";
import { backgroundTurn } from "../../foundation/base/fair-queue.ts";
import { createApps } from "../../testing/app.ts";
import { AccountUsage } from "./account-usage.ts";
import { UsageStore } from "./usage-store.ts";

const start = createApps();
const TODAY = 20_000;

describe("how long credits last", () => {
  const owner = { accountId: "a", mode: "live" } as const;
  const forecast = (used: ReadonlyArray<readonly [day: number, credits: number]>, available: number) => {
    const { db } = start();
    const store = new UsageStore(db);
    const one = { ...owner, keyId: "k", source: "single", verdict: "risky", subStatus: "catch_all" } as const;
    db.transact((tx) => {
      for (const [day, credits] of used) store.add(tx, { ...one, day, credits, verifications: Math.max(1, credits) });
    });
    return new AccountUsage(store).forecast(owner, available, TODAY * DAY_MS + 1);
  };

  test("is unknown when nothing was used in 30 days", async () => {
    expect(await forecast([], 100)).toEqual({ creditsPerDay: 0, days: 0, daysLeft: null });
    expect(await forecast([[TODAY - 30, 10]], 100)).toMatchObject({ daysLeft: null });
    expect(await forecast([[TODAY - 1, 0]], 100)).toEqual({ creditsPerDay: 0, days: 2, daysLeft: null });
  });

  test("is the mean since the first use, of 30 days at most", async () => {
    expect(await forecast([[TODAY, 25]], 100)).toEqual({ creditsPerDay: 25, days: 1, daysLeft: 4 });
    const uneven: ReadonlyArray<readonly [number, number]> = [
      [TODAY - 9, 90],
      [TODAY - 1, 10],
    ];
    expect(await forecast(uneven, 109)).toEqual({ creditsPerDay: 10, days: 10, daysLeft: 10 });
    const long: ReadonlyArray<readonly [number, number]> = [
      [TODAY - 30, 1_000],
      [TODAY - 29, 60],
    ];
    expect(await forecast(long, 1)).toEqual({ creditsPerDay: 2, days: 30, daysLeft: 0 });
  });
});

test("a report by key has those with a verification, a credit or a refused request in its range", async () => {
  const app = start();
  const store = new UsageStore(app.db);
  const owner = { accountId: app.newAccount("one", "free"), mode: "live" } as const;
  const result = { ...owner, day: TODAY, source: "list", verdict: "risky", subStatus: "catch_all" } as const;
  app.db.transact((tx) => {
    store.add(tx, { ...result, keyId: "used", verifications: 1, credits: 0 });
    store.add(tx, { ...result, keyId: "charged", verifications: 1, credits: 1 });
    // Verified again: the result is removed, what it cost stays.
    store.add(tx, { ...result, keyId: "charged", verifications: -1, credits: 0 });
    store.add(tx, { ...result, keyId: "nothing", verifications: 1, credits: 0 });
    store.add(tx, { ...result, keyId: "nothing", verifications: -1, credits: 0 });
    store.addRateLimited(tx, { ...owner, day: TODAY, keyId: "refused", requests: 1 });
  });
  const { groups } = await new AccountUsage(store).report(owner, { fromDay: TODAY, toDay: TODAY }, "key");
  expect(groups.map(({ group }) => group)).toEqual(["used", "charged", "refused"]);
});

test("a report of a long range lets the work of others run in between", async () => {
  const { db } = start();
  const ended: string[] = [];
  const range = { fromDay: TODAY - 365, toDay: TODAY };
  const report = new AccountUsage(new UsageStore(db)).report({ accountId: "a", mode: "live" }, range, "day");
  await Promise.all([
    report.then(() => ended.push("report")),
    backgroundTurn("b").then(() => ended.push("another account")),
  ]);
  expect(ended).toEqual(["another account", "report"]);
});

test("granted credits come in pages, the newest first, without what was held and settled", () => {
  const app = start();
  const accountId = app.newAccount("one", "free");
  const { ledger } = app.service.accounts;
  app.db.transact((tx) => {
    for (const credits of [5, 6, 7]) ledger.grant(tx, { accountId, credits, note: `n${credits}`, atMs: credits });
    const move = { accountId, reference: "r", atMs: 9 };
    ledger.hold(tx, move);
    ledger.settle(tx, move);
    ledger.grant(tx, { accountId: app.newAccount("two", "free"), credits: 8, note: "other", atMs: 9 });
  });
  const first = ledger.grants(accountId, { before: null, limit: 2 });
  expect(first.map(({ available, note }) => [available, note])).toEqual([
    [7, "n7"],
    [6, "n6"],
  ]);
  const rest = ledger.grants(accountId, { before: first[1]?.id ?? 0, limit: 9 });
  expect(rest.map(({ available, note }) => [available, note])).toEqual([
    [5, "n5"],
    [100, "sign-up"],
  ]);
});

test("callers are named by their key or their address, and not when they are gone", () => {
  const app = start();
  const key = app.newKey({ name: "shop" });
  const { users, callerName } = app.service.accounts;
  const invited = users.invite(
    { accountId: app.accountId(), email: "ada@example.com", role: "owner", isOperator: true },
    null,
  );
  const id = invited.ok ? invited.value.user.id : "";
  expect([key.id, `user:${id}`, "policy", "user:none", "none", ""].map(callerName)).toEqual([
    ...["shop", "ada@example.com", "Policy service", null, null, null],
  ]);
});
