import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { createApps, type TestApp } from "../../testing/app.ts";

const start = createApps();

const AT_MS = 1_000;

/** Grants without the route of the accounts, so that any sequence can be tried. */
const grant = (app: TestApp, accountId: string, credits: number): void =>
  app.db.transact((tx) => app.service.accounts.ledger.grant(tx, { accountId, credits, note: "test", atMs: AT_MS }));

const hold = (app: TestApp, accountId: string, reference: string, credits?: number) =>
  app.db.transact((tx) => app.service.accounts.ledger.hold(tx, { accountId, reference, atMs: AT_MS }, credits));

const end = (app: TestApp, kind: "settle" | "release", accountId: string, reference: string): void =>
  app.db.transact((tx) => {
    const move = { accountId, reference, atMs: AT_MS };
    if (kind === "settle") app.service.accounts.ledger.settle(tx, move);
    else app.service.accounts.ledger.release(tx, move, "free");
  });

const spend = (app: TestApp, accountId: string, reference: string) =>
  app.db.transact((tx) => app.service.accounts.ledger.spend(tx, { accountId, reference, atMs: AT_MS }));

describe("the ledger", () => {
  test("spends a credit that was not held with one entry, once, and only while there is one", () => {
    const app = start();
    const id = app.newAccount("anna", "free");
    app.leaveCredits(1, "anna");
    const entries = () =>
      app.db.sqlite.query("SELECT kind, available, held FROM ledger WHERE reference = 'one'").values();
    const spentBefore = app.service.accounts.ledger.totals(id).spent;
    expect(spend(app, id, "one")).toEqual({ ok: true, value: 1 });
    expect(entries()).toEqual([["settle", -1, 0]]);
    expect(spend(app, id, "two")).toEqual({ ok: false, error: { required: 1, available: 0 } });
    grant(app, id, 5);
    expect(() => spend(app, id, "one")).toThrow("append-only");
    expect(() => end(app, "settle", id, "one")).toThrow("append-only");
    expect(() => end(app, "release", id, "one")).toThrow("append-only");
    expect(app.credits("anna")).toEqual({ available: 5, held: 0 });
    expect(app.service.accounts.ledger.sum(id)).toEqual({ available: 5, held: 0 });
    expect(app.service.accounts.ledger.totals(id).spent - spentBefore).toBe(1);
  });

  test("moves a credit from available to held, and from there away or back", () => {
    const app = start();
    const id = app.newAccount("anna", "free");
    expect(hold(app, id, "one").ok).toBe(true);
    expect(hold(app, id, "two").ok).toBe(true);
    expect(app.credits("anna")).toEqual({ available: 98, held: 2 });
    end(app, "settle", id, "one");
    end(app, "release", id, "two");
    expect(app.credits("anna")).toEqual({ available: 99, held: 0 });
    expect(app.service.accounts.ledger.totals(id)).toEqual({ granted: 100, spent: 1 });
  });

  test("shows the newest entries of an account first, all or its grants", () => {
    const app = start();
    const [anna, other] = [app.newAccount("anna", "free"), app.newAccount("other", "free")];
    hold(app, anna, "one");
    grant(app, other, 5);
    grant(app, anna, 7);
    const kinds = (grantsOnly: boolean, limit: number) =>
      app.service.accounts.ledger.history(anna, { grantsOnly, limit }).map(({ kind, available }) => [kind, available]);
    expect(kinds(false, 9)).toEqual([
      ["grant", 7],
      ["hold", -1],
      ["grant", 100],
    ]);
    expect(kinds(true, 9)).toEqual([
      ["grant", 7],
      ["grant", 100],
    ]);
    expect(kinds(false, 1)).toEqual([["grant", 7]]);
  });

  test("says what is needed and what there is when credits run out", () => {
    const app = start();
    const id = app.newAccount("anna", "free");
    app.leaveCredits(0, "anna");
    expect(hold(app, id, "one")).toEqual({ ok: false, error: { required: 1, available: 0 } });
    expect(app.credits("anna")).toEqual({ available: 0, held: 0 });
  });

  test.each(["settle", "release"] as const)(
    "never ends a hold twice: a second %s throws and changes nothing",
    (kind) => {
      const app = start();
      const id = app.newAccount("anna", "free");
      hold(app, id, "one");
      end(app, kind, id, "one");
      const before = app.credits("anna");
      for (const again of ["settle", "release"] as const) expect(() => end(app, again, id, "one")).toThrow();
      expect(() => hold(app, id, "one")).toThrow();
      expect(app.credits("anna")).toEqual(before);
      expect(app.service.accounts.ledger.sum(id)).toEqual(before);
    },
  );

  test("is append-only: no entry can be changed or removed", () => {
    const app = start();
    app.newAccount("anna", "free");
    expect(() => app.db.sqlite.run("UPDATE ledger SET available = 1000")).toThrow();
    expect(() => app.db.sqlite.run("DELETE FROM ledger")).toThrow();
  });

  const step = fc.record({
    kind: fc.constantFrom("grant", "hold", "settle", "release", "spend"),
    account: fc.constantFrom("anna", "bert"),
    which: fc.nat(20),
    credits: fc.integer({ min: 1, max: 50 }),
  });

  test("whatever is done in whatever order, the sum of the entries is the balance, and nothing is below zero", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const app = start();
        const model = new Map(["anna", "bert"].map((name) => [name, { available: 100, held: 0 }]));
        const state = new Map<string, "held" | "ended">();
        for (const name of model.keys()) app.newAccount(name, "free");
        app.leaveCredits(5, "anna");
        model.set("anna", { available: 5, held: 0 });
        for (const { kind, account, which, credits } of steps) {
          const id = app.accountId(account);
          const reference = `${account}-${which}`;
          const expected = model.get(account) ?? { available: 0, held: 0 };
          if (kind === "grant") {
            grant(app, id, credits);
            expected.available += credits;
          } else if (kind === "hold") {
            if (state.has(reference)) continue;
            const held = hold(app, id, reference);
            expect(held.ok).toBe(expected.available > 0);
            if (!held.ok) continue;
            state.set(reference, "held");
            expected.available -= 1;
            expected.held += 1;
          } else if (kind === "spend") {
            if (state.get(reference) === "held") continue;
            if (state.get(reference) === "ended" && expected.available > 0) {
              expect(() => spend(app, id, reference)).toThrow();
              continue;
            }
            const spent = spend(app, id, reference);
            expect(spent.ok).toBe(expected.available > 0);
            if (!spent.ok) continue;
            state.set(reference, "ended");
            expected.available -= 1;
          } else if (state.get(reference) === "held") {
            end(app, kind as "settle" | "release", id, reference);
            state.set(reference, "ended");
            expected.held -= 1;
            if (kind === "release") expected.available += 1;
          } else if (state.get(reference) === "ended") {
            expect(() => end(app, kind as "settle" | "release", id, reference)).toThrow();
          }
          expect(app.credits(account)).toEqual(expected);
          expect(app.service.accounts.ledger.sum(id)).toEqual(expected);
          const { granted, spent } = app.service.accounts.ledger.totals(id);
          expect(granted).toBe(spent + expected.available + expected.held);
        }
      }),
      { numRuns: 40 },
    );
  });
});
