import { describe, expect, test } from "bun:test";
import type { Db } from "../db/open.ts";
import { createApps } from "../testing/app.ts";
import { History, HISTORY_WALKED_MAX } from "./history.ts";
import { type HistoryFilters, HistoryStore } from "./history-store.ts";

const start = createApps();
const owner = { accountId: "a", mode: "live" } as const;
const DAY_MS = 86_400_000;

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
  return id;
};

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
    const history = new History(new HistoryStore(db));
    for (const limit of [1, 2, 5, 100]) expect(await allOf(history, {}, limit)).toEqual(ids.toReversed());
  });

  const at = 100 * DAY_MS;
  test.each<[string, Record<string, string>, HistoryFilters]>([
    ["verdict", { verdict: "deliverable" }, { verdict: "deliverable" }],
    ["sub_status", { sub_status: "mailbox_full" }, { subStatus: "mailbox_full" }],
    ["key", { key_id: "user:u" }, { keyId: "user:u" }],
    ["status", { status: "pending" }, { status: "pending" }],
    ["label", { source: "form" }, { source: "form" }],
    ["text in the normalized address", { email: "Bob@WORLD.example" }, { text: "b@WORLD" }],
    ["text as it was submitted", { email: "100%_@x.example" }, { text: "0%_@" }],
  ])("is filtered by %s", async (_, row, filters) => {
    const { db } = start();
    const history = new History(new HistoryStore(db));
    insert(db, at);
    const id = insert(db, at + 10, row);
    insert(db, at + 20);
    expect(await allOf(history, filters, 1)).toEqual([id]);
  });

  test("is filtered by days, to the millisecond, even where ids and times differ by a moment", async () => {
    const { db } = start();
    const history = new History(new HistoryStore(db));
    const times = [0, 1, DAY_MS - 1, DAY_MS, DAY_MS + 1, 2 * DAY_MS - 1, 2 * DAY_MS, 9 * DAY_MS].map((ms) => at + ms);
    const ids = times.map((time) => insert(db, time));
    const late = ids[2] ?? "";
    // Its id was made in the next day.
    db.sqlite.run("UPDATE verifications SET created_at_ms = ? WHERE id = ?", [at + DAY_MS - 1_000, ids[4] ?? ""]);
    const between = (fromMs: number | undefined, beforeMs: number | undefined) =>
      allOf(history, { fromMs, beforeMs }, 2);
    expect(await between(at + DAY_MS, at + 2 * DAY_MS)).toEqual([ids[5] ?? "", ids[3] ?? ""]);
    expect(await between(undefined, at + DAY_MS)).toEqual([ids[4] ?? "", late, ids[1] ?? "", ids[0] ?? ""]);
    expect(await between(at + 2 * DAY_MS, undefined)).toEqual([ids[7] ?? "", ids[6] ?? ""]);
    expect(await between(at + 10 * DAY_MS, undefined)).toEqual([]);
    expect(await between(undefined, at)).toEqual([]);
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
    expect((await new History(watched).page(owner, filters, { before: null, limit: 100 })).rows.length).toBe(3);
    expect(looked).toEqual([3]);
  });

  test("a page ends early when almost nothing passes, and the next one goes on", async () => {
    const { db } = start();
    const wanted = insert(db, 1, { verdict: "deliverable" });
    db.sqlite.run(
      `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
        INSERT INTO verifications (id, account_id, key_id, mode, email, normalized_email, status, verdict, created_at_ms)
        SELECT printf('%08x-0000-7000-8000-000000000000', i), 'a', 'k', 'live', 'e', 'e', 'completed', 'risky', i * 65536 FROM n`,
      [HISTORY_WALKED_MAX + 10_000],
    );
    const history = new History(new HistoryStore(db));
    const first = await history.page(owner, { verdict: "deliverable" }, { before: null, limit: 50 });
    expect(first.rows).toEqual([]);
    const second = await history.page(owner, { verdict: "deliverable" }, { before: first.next, limit: 50 });
    expect([second.rows.map(({ id }) => id), second.next]).toEqual([[wanted], null]);
  });
});

test("the CSV has every row that passes, with the names of keys and without formulas", async () => {
  const app = start({ zone: { "gone.example": "nxdomain" } });
  const key = app.newKey({ mode: "live", name: "=shop" });
  await app.verify(key, "a@gone.example");
  await app.verify(key, "=HYPERLINK(1)");
  await app.verify(app.newKey({ mode: "test" }), "mailbox_exists@x.example");
  const { history, store } = app.service;
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
