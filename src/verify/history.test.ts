import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { Db } from "../foundation/db/open.ts";
import { createApps } from "../testing/app.ts";
import { UsageStore } from "../accounts/usage/usage-store.ts";
import { History, HISTORY_WALKED_MAX } from "./history.ts";
import { type HistoryFilters, HistoryStore } from "./history-store.ts";

const start = createApps();
const owner = { accountId: "a", mode: "live" } as const;
const DAY_MS = 86_400_000;
const DELIVERABLE = { verdict: "deliverable", sub_status: "mailbox_exists" } as const;

/** Writes a row; the id is made of the time. */
const insert = (db: Db, at: number, row: Record<string, string | null> = {}): string => {
  const digits = at.toString(16).padStart(12, "0");
  const id = `${digits.slice(0, 8)}-${digits.slice(8)}-7000-8000-${String(Math.trunc(at % 1e12)).padStart(12, "0")}`;
  const all = { account_id: "a", mode: "live", key_id: "k", email: "A@x.example", status: "completed", ...row };
  const { account_id, mode, key_id, email, status } = all;
  const [verdict, subStatus, source] = [row.verdict ?? "risky", row.sub_status ?? "catch_all", row.source ?? null];
  db.sqlite.run(
    `INSERT INTO verifications (id, account_id, key_id, mode, email, normalized_email, source, status, verdict, sub_status, created_at_ms)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    [id, account_id, key_id, mode, email, email.toLowerCase(), source, status, verdict, subStatus, at],
  );
  if (status === "completed") countUsage(db, verdict, { keyId: key_id, subStatus });
  return id;
};

const historyOf = (db: Db): History => new History(new HistoryStore(db), new UsageStore(db));

/** Counts results as they are counted when a verification ends. */
const countUsage = (db: Db, verdict: string, { keyId, subStatus }: { keyId: string; subStatus: string }): void =>
  db.transact((tx) =>
    new UsageStore(db).add(tx, {
      ...owner,
      day: 1,
      keyId,
      source: "single",
      verdict,
      subStatus,
      verifications: 1,
      credits: 0,
    }),
  );

const allOf = async (history: History, filters: HistoryFilters, limit: number): Promise<string[]> => {
  const ids: string[] = [];
  for (let before: string | null = null; ;) {
    const { rows, next }: Awaited<ReturnType<History["page"]>> = await history.page(owner, filters, { before, limit });
    ids.push(...rows.map(({ id }) => id));
    if (next === null) return ids;
    before = next;
  }
};

describe("the history of an account", () => {
  test("has the verifications of all its keys and users of one mode, the newest first, in pages", async () => {
    const { db } = start();
    const ids = [1, 2, 3, 4, 5].map((at) => insert(db, at * 1000, { key_id: at % 2 === 0 ? "k" : "user:u" }));
    insert(db, 6_000, { account_id: "b" });
    insert(db, 7_000, { mode: "test" });
    const history = historyOf(db);
    for (const limit of [1, 2, 5, 100]) expect(await allOf(history, {}, limit)).toEqual(ids.toReversed());
  });

  const at = 100 * DAY_MS;
  test.each<[string, Record<string, string>, HistoryFilters]>([
    ["verdict", { verdict: "deliverable", sub_status: "mailbox_exists" }, { verdict: "deliverable" }],
    ["sub_status", { sub_status: "mailbox_full" }, { subStatus: "mailbox_full" }],
    ["key", { key_id: "user:u" }, { keyId: "user:u" }],
    ["status", { status: "pending" }, { status: "pending" }],
    ["label", { source: "form" }, { source: "form" }],
    ["address", { email: "Bob@world.example" }, { email: "bob@world.example" }],
    ["status and address", { status: "pending", email: "b@x.example" }, { status: "pending", email: "b@x.example" }],
    ["status and key", { status: "pending", key_id: "user:u" }, { status: "pending", keyId: "user:u" }],
    ["text in the normalized address", { email: "Bob@WORLD.example" }, { text: "b@WORLD" }],
    ["text as it was submitted", { email: "100%_@x.example" }, { text: "0%_@" }],
  ])("is filtered by %s", async (_, row, filters) => {
    const { db } = start();
    const history = historyOf(db);
    insert(db, at);
    const id = insert(db, at + 10, row);
    insert(db, at + 20);
    expect(await allOf(history, filters, 1)).toEqual([id]);
  });

  test("is filtered by days, to the millisecond, even where ids and times differ by a moment", async () => {
    const { db } = start();
    const history = historyOf(db);
    const times = [0, 1, DAY_MS - 1, DAY_MS, DAY_MS + 1, 2 * DAY_MS - 1, 2 * DAY_MS, 9 * DAY_MS].map((ms) => at + ms);
    const ids = times.map((time) => insert(db, time));
    const late = ids[2] ?? "";
    // The id of this verification was made on the next day.
    db.sqlite.run("UPDATE verifications SET created_at_ms = ? WHERE id = ?", [at + DAY_MS - 1_000, ids[4] ?? ""]);
    const between = (fromMs: number | undefined, beforeMs: number | undefined) =>
      allOf(history, { fromMs, beforeMs }, 2);
    expect(await between(at + DAY_MS, at + 2 * DAY_MS)).toEqual([ids[5] ?? "", ids[3] ?? ""]);
    expect(await between(undefined, at + DAY_MS)).toEqual([ids[4] ?? "", late, ids[1] ?? "", ids[0] ?? ""]);
    expect(await between(at + 2 * DAY_MS, undefined)).toEqual([ids[7] ?? "", ids[6] ?? ""]);
    expect(await between(at + 10 * DAY_MS, undefined)).toEqual([]);
    expect(await between(undefined, at)).toEqual([]);
  });

  test("is filtered by days, wherever the ids of another account are ahead of their times", async () => {
    const { db } = start();
    const own = insert(db, at + DAY_MS);
    const ahead = insert(db, at + 2 ** 47, { account_id: "b" });
    db.sqlite.run("UPDATE verifications SET created_at_ms = ? WHERE id = ?", [at, ahead]);
    expect(await allOf(historyOf(db), { fromMs: at + DAY_MS }, 2)).toEqual([own]);
  });

  test("a range of days looks at its own rows only", async () => {
    const { db } = start();
    for (let day = 0; day < 200; day += 1) insert(db, at + (day + 0.5) * DAY_MS);
    const looked: number[] = [];
    const store = new HistoryStore(db);
    const watched = new Proxy(store, {
      get(target, name) {
        if (name !== "list") return Reflect.get(target, name).bind(target);
        return (...parameters: Parameters<HistoryStore["list"]>) => {
          const [mine, { fromMs: _f, beforeMs: _b, ...filters }, window] = parameters;
          looked.push(target.list(mine, filters, { ...window, limit: 1000 }).length);
          return target.list(...parameters);
        };
      },
    });
    const filters = { fromMs: at + 50 * DAY_MS, beforeMs: at + 53 * DAY_MS };
    expect(
      (await new History(watched, new UsageStore(db)).page(owner, filters, { before: null, limit: 100 })).rows.length,
    ).toBe(3);
    expect(looked).toEqual([3]);
  });

  test("of a key has none of another mode or account", async () => {
    const { db } = start();
    insert(db, at, { mode: "test", key_id: "user:u" });
    insert(db, at + 1, { account_id: "b", key_id: "user:u" });
    const id = insert(db, at + 2, { key_id: "user:u" });
    expect(await allOf(historyOf(db), { keyId: "user:u" }, 10)).toEqual([id]);
    expect(await allOf(historyOf(db), { keyId: "user:u", status: "completed" }, 1)).toEqual([id]);
  });

  test("pending ones are read by themselves, in pages, the newest first", async () => {
    const { db } = start();
    const emails = ["c", "a", "d", "b"].map((name) => `${name}@x.example`);
    const ids = emails.map((email, n) => insert(db, at + n, { status: "pending", email }));
    insert(db, at + 2 * DAY_MS, { status: "pending", mode: "test" });
    insert(db, at + 3 * DAY_MS);
    const history = historyOf(db);
    for (const limit of [1, 2, 10])
      expect(await allOf(history, { status: "pending" }, limit)).toEqual(ids.toReversed());
    expect(await allOf(history, { status: "pending", beforeMs: at + 2 }, 1)).toEqual(ids.slice(0, 2).toReversed());
    expect(history.source(owner, { status: "pending" })(null, 1, 10).next).toBeNull();
  });

  describe("what a filter keeps out is not looked at", () => {
    const RISKY = { verdict: "risky", sub_status: "greylisted" };
    test.each<[string, Record<string, string>, HistoryFilters]>([
      ["address", { email: "b@x.example" }, { email: "b@x.example" }],
      ["label", { source: "form" }, { source: "form" }],
      ["sub_status", RISKY, { subStatus: "greylisted" }],
      ["verdict", DELIVERABLE, { verdict: "deliverable" }],
      ["key", { key_id: "k2" }, { keyId: "k2" }],
      ["key and sub_status", { ...RISKY, key_id: "k2" }, { keyId: "k2", subStatus: "greylisted" }],
      ["key and label", { source: "form", key_id: "k2" }, { keyId: "k2", source: "form" }],
    ])("by %s", (_, row, filters) => {
      const { db } = start();
      insert(db, at);
      const older = insert(db, at + 1, row);
      for (let n = 2; n < 6; n++) insert(db, at + n);
      const newer = insert(db, at + 6, row);
      insert(db, at + 7);
      const read = historyOf(db).source(owner, filters);
      expect([1, 2, 3].map((looks) => read(null, looks, 10).next)).toEqual([newer, older, null]);
      expect(read(older, 1, 10).next).toBeNull();
      expect(read(null, 10, 10).rows.map(({ id }) => id)).toEqual([newer, older]);
    });

    test("by result, where the key has more results than there are of the kind", () => {
      const { db } = start();
      for (let n = 0; n < 5; n++) insert(db, at + n, { key_id: "k" });
      const other = insert(db, at + 10, { ...RISKY, key_id: "other" });
      const own = insert(db, at + 5, { ...RISKY, key_id: "k" });
      const read = historyOf(db).source(owner, { keyId: "k", subStatus: "greylisted" });
      expect([1, 2, 3].map((looks) => read(null, looks, 10).next)).toEqual([other, own, null]);
      expect(read(null, 10, 10).rows.map(({ id }) => id)).toEqual([own]);
    });
  });

  test("any filters let through what each of them lets through, in pages of any size", async () => {
    const { db } = start();
    const history = historyOf(db);
    const kinds = [DELIVERABLE, { verdict: "risky", sub_status: "greylisted" }, { verdict: "risky" }];
    const emails = ["a@x.example", "b@x.example"];
    const rows = Array.from({ length: 60 }, (_, n) => {
      const kind = kinds[n % 3] ?? {};
      const source: Record<string, string> = n % 4 === 0 ? { source: "form" } : {};
      const row = { ...kind, ...source, key_id: n % 5 < 3 ? "k" : "k2", email: emails[n % 2] ?? "" };
      return { id: insert(db, at + n, row), n };
    }).toReversed();
    const maybe = <T>(value: T) => fc.option(fc.constant(value), { nil: undefined });
    const filtersOf = fc.record({
      ...{ verdict: maybe("risky" as const), subStatus: maybe("greylisted" as const), source: maybe("form") },
      ...{ keyId: fc.option(fc.constantFrom("k", "k2"), { nil: undefined }), email: maybe("b@x.example") },
    });
    await fc.assert(
      fc.asyncProperty(filtersOf, fc.integer({ min: 1, max: 70 }), async (filters, limit) => {
        const passes = (n: number) =>
          (filters.verdict === undefined || n % 3 > 0) &&
          (filters.subStatus === undefined || n % 3 === 1) &&
          (filters.source === undefined || n % 4 === 0) &&
          (filters.keyId === undefined || n % 5 < 3 === (filters.keyId === "k")) &&
          (filters.email === undefined || n % 2 === 1);
        const wanted = rows.filter(({ n }) => passes(n)).map(({ id }) => id);
        expect(await allOf(history, filters, limit)).toEqual(wanted);
      }),
    );
  });

  test("a page ends early when almost nothing passes, and the next one goes on", async () => {
    const { db } = start();
    const wanted = insert(db, 1);
    db.sqlite.run(
      `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
        INSERT INTO verifications (id, account_id, key_id, mode, email, normalized_email, status, verdict, created_at_ms)
        SELECT printf('%08x-0000-7000-8000-000000000000', i), 'a', 'k', 'live', 'e', 'e', 'completed', 'risky', i * 65536 FROM n`,
      [HISTORY_WALKED_MAX + 10_000],
    );
    const history = historyOf(db);
    const first = await history.page(owner, { text: "a@x" }, { before: null, limit: 50 });
    expect(first.rows).toEqual([]);
    const second = await history.page(owner, { text: "a@x" }, { before: first.next, limit: 50 });
    expect([second.rows.map(({ id }) => id), second.next]).toEqual([[wanted], null]);
  });
});

describe("the number of verifications", () => {
  test.each<[string, HistoryFilters, number | null]>([
    ["without a filter", {}, 4],
    ["by verdict", { verdict: "deliverable" }, 2],
    ["by reason", { subStatus: "mailbox_full" }, 1],
    ["by key", { keyId: "user:u" }, 1],
    ["pending", { status: "pending" }, 1],
    ["is not counted of all that ended", { status: "completed" }, null],
    ["is not counted with a text", { text: "x" }, null],
    ["is not counted with a day", { fromMs: 1_000 }, null],
    ["is not counted with two filters", { verdict: "deliverable", subStatus: "mailbox_full" }, null],
  ])("%s", (_, filters, expected) => {
    const { db } = start();
    insert(db, 1_000, DELIVERABLE);
    insert(db, 2_000, { ...DELIVERABLE, key_id: "user:u" });
    insert(db, 3_000, { sub_status: "mailbox_full" });
    insert(db, 4_000, { status: "pending" });
    insert(db, 5_000, { ...DELIVERABLE, account_id: "b" });
    insert(db, 6_000, { ...DELIVERABLE, mode: "test" });
    expect(historyOf(db).count(owner, filters, 100)).toBe(expected);
    if (expected !== null) expect(historyOf(db).count(owner, filters, 1)).toBe(1);
  });
});

test("the CSV has every row that passes, with the names of keys and without formulas", async () => {
  const app = start({ zone: { "gone.example": "nxdomain" } });
  const key = app.newKey({ mode: "live", name: "=shop" });
  await app.verify(key, "a@gone.example");
  await app.verify(key, "=HYPERLINK(1)");
  await app.verify(app.newKey({ mode: "test" }), "mailbox_exists@x.example");
  const { history } = app.service.verification;
  const { store } = app.service.accounts;
  const named = (id: string) => store.findKey(id)?.name ?? null;
  const caller = { accountId: app.accountId(), mode: "live" } as const;
  let text = "";
  for await (const piece of history.csv(caller, {}, named)) text += Buffer.from(piece).toString();
  const [head, newest, oldest, ...rest] = text.split("\r\n").map((line) => line.split(","));
  expect(rest).toEqual([[""]]);
  expect(head?.slice(3)).toEqual(
    "email normalized_email status verdict sub_status quality_score confidence source key_id key_name".split(" "),
  );
  expect(newest?.[3]).toBe("'=HYPERLINK(1)");
  expect(newest?.at(-1)).toBe("'=shop");
  expect(oldest?.slice(3, 10)).toEqual(
    "a@gone.example a@gone.example completed undeliverable domain_not_found 0 99".split(" "),
  );
  let none = "";
  for await (const piece of history.csv(caller, { text: "nobody" }, named)) none += Buffer.from(piece).toString();
  expect(none.split("\r\n").length).toBe(2);
});
