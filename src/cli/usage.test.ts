import { expect, test } from "bun:test";
import { join } from "node:path";
import { dayOfTime, isoDay } from "../foundation/base/days.ts";
import { openDb } from "../foundation/db/open.ts";
import { createCommandLine } from "../testing/command-line.ts";
import { UsageStore } from "../accounts/usage/usage-store.ts";

const { dataDir, run } = createCommandLine();
const today = dayOfTime(Date.now());

const fill = async (account: string): Promise<string> => {
  await run(["accounts", "create", account]);
  const { json: key } = await run([
    "keys",
    "create",
    "--account",
    account,
    "--mode",
    "live",
    "--name",
    "=shop",
    "--json",
  ]);
  const opened = openDb(join(dataDir, "postwarden.db"));
  if (!opened.ok) throw new Error(opened.error.kind);
  const db = opened.value;
  const row = db.sqlite.query<{ id: string }, [string]>("SELECT id FROM accounts WHERE name = ?").get(account);
  const owner = { accountId: row?.id ?? "", mode: "live", keyId: String(key.id) } as const;
  const store = new UsageStore(db);
  db.transact((tx) => {
    const one = { ...owner, source: "list", verdict: "risky", subStatus: "catch_all" } as const;
    store.add(tx, { ...one, day: today, verifications: 7, credits: 5 });
    store.add(tx, { ...one, day: today - 40, verifications: 1, credits: 1 });
    store.addRateLimited(tx, { ...owner, day: today, requests: 3 });
  });
  db.close();
  return owner.keyId;
};

test("the usage of an account is a table, JSON or CSV, by day, key or result", async () => {
  const key = await fill("acme");
  const { out, status } = await run(["usage", "--account", "acme"]);
  expect(status).toBe(0);
  expect(out).toMatch(/^DAY +TOTAL +DELIVERABLE +RISKY +UNDELIVERABLE +RATE-LIMITED +CREDITS\n/);
  expect(out.split("\n").length).toBe(32);
  expect(out).toMatch(new RegExp(`${isoDay(today)} +7 +0 +7 +0 +3 +5\\ntotal +7 +0 +7 +0 +3 +5$`));
  const { json } = await run(["usage", "--account", "acme", "--by", "key", "--from", isoDay(today - 40), "--json"]);
  expect(json).toMatchObject({
    by: "key",
    to: isoDay(today),
    groups: [{ group: key, name: "=shop", total: 8, credits: 6 }],
  });
  const csv = await run(["usage", "--account", "acme", "--by", "key", "--csv"]);
  expect(csv.out.trim().split(/\r?\n/)).toEqual([
    "key_id,key_name,total,deliverable,risky,undeliverable,rate_limited,credits",
    `${key},'=shop,7,0,7,0,3,5`,
  ]);
  expect((await run(["usage", "--account", "acme", "--by", "sub_status", "--csv"])).out).toContain(
    "catch_all,7,0,7,0,,5",
  );
  expect((await run(["usage", "--account", "acme", "--mode", "test", "--json"])).json.total).toMatchObject({
    total: 0,
  });
});

test("the usage of a calendar month has its days alone", async () => {
  const key = await fill("monthly");
  const [now, before] = [today, today - 40].map((day) => isoDay(day).slice(0, 7));
  const monthly = async (month = "") =>
    (await run(["usage", "--account", "monthly", "--month", month, "--by", "key", "--json"])).json;
  expect(await monthly(now)).toMatchObject({
    from: `${now}-01`,
    to: isoDay(today),
    groups: [{ group: key, total: 7 }],
  });
  expect(await monthly(before)).toMatchObject({ from: `${before}-01`, total: { total: 1, credits: 1 } });
});

test.each([
  [["--from", "yesterday"], "is not a date"],
  [["--from", "2026-02-01", "--to", "2026-01-01"], "--from must not be after --to"],
  [["--from", "2020-01-01", "--to", "2026-01-01"], "at most 400 days"],
  [["--month", "november"], "is not a month such as"],
  [["--month", "2026-13"], "is not a month such as"],
  [["--month", "2999-01"], "--month: Must not be in the future."],
  [["--month", "2026-01", "--to", "2026-01-05"], "--month: Conflicts with from and to."],
  [["--by", "hour"], "Allowed choices are day, key, verdict, sub_status"],
  [["--csv", "--json"], "cannot be used with"],
])("usage %p is refused", async (args, message) => {
  await run(["accounts", "create", "bad"]);
  const { status, err, out } = await run(["usage", "--account", "bad", ...args]);
  expect([status, err + out]).toEqual([2, expect.stringContaining(message)]);
});
