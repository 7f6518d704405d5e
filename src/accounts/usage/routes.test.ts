import { describe, expect, test } from "bun:test";
import { createApps, type TestApp } from "../../testing/app.ts";
import { RATE_LIMITED_FLUSH_MS } from "./account-usage.ts";

const start = createApps();
const PATH = "/v1/usage";
const DAY_MS = 86_400_000;
type Key = ReturnType<TestApp["newKey"]>;

const dayOf = (app: TestApp): string => new Date(app.clock.nowMs()).toISOString().slice(0, 10);
const usage = async (app: TestApp, key: Key, query = "") => {
  const { status, body } = await app.request("GET", PATH + query, { key });
  expect(status).toBe(200);
  return body as { from: string; to: string; total: object; groups: Array<Record<string, unknown>> };
};

/** Two keys that verified on two days. */
const used = async () => {
  const app = start({ zone: { "gone.example": "nxdomain" } });
  const [shop, office] = [app.newKey({ mode: "live", name: "shop" }), app.newKey({ mode: "live", name: "office" })];
  await app.verify(shop, "a@gone.example");
  const first = dayOf(app);
  await app.advance(DAY_MS);
  await app.verify(shop, "no address");
  await app.verify(office, "no address");
  return { app, shop, office, first, second: dayOf(app) };
};

const figures = (total: number) => ({ total, deliverable: 0, risky: 0, undeliverable: total, credits: total });

describe("the usage", () => {
  test("is that of the last 30 days by day, every day, of all keys of the account", async () => {
    const { app, shop, first, second } = await used();
    const { groups, total, from, to } = await usage(app, shop);
    expect([groups.length, to, from]).toEqual([
      30,
      second,
      new Date(Date.parse(second) - 29 * DAY_MS).toISOString().slice(0, 10),
    ]);
    expect(total).toEqual({ ...figures(3), rate_limited: 0 });
    expect(groups.slice(-2)).toEqual([
      { group: first, name: null, ...figures(1), rate_limited: 0 },
      { group: second, name: null, ...figures(2), rate_limited: 0 },
    ]);
    expect(groups[0]).toMatchObject({ ...figures(0), rate_limited: 0 });
  });

  test("is that of a calendar month, until today", async () => {
    const { app, shop, second } = await used();
    const month = second.slice(0, 7);
    const { from, to, total } = await usage(app, shop, `?month=${month}&by=key`);
    expect({ from, to }).toEqual({ from: `${month}-01`, to: second });
    expect(total).toMatchObject({ total: 3 });
    expect((await usage(app, shop, "?month=2001-02")).to).toBe("2001-02-28");
    for (const query of ["month=2001-2", "month=2001-00", "month=2999-01", "month=2001-02&from=2001-02-01"]) {
      const refused = await app.request("GET", `${PATH}?${query}`, { key: shop });
      expect([query, refused.status, refused.body]).toMatchObject([query, 400, { issues: [{ path: "month" }] }]);
    }
  });

  test("is grouped by key, verdict and sub_status, the largest first", async () => {
    const { app, shop, office } = await used();
    expect((await usage(app, office, "?by=key")).groups).toEqual([
      { group: shop.id, name: "shop", ...figures(2), rate_limited: 0 },
      { group: office.id, name: "office", ...figures(1), rate_limited: 0 },
    ]);
    expect((await usage(app, shop, "?by=verdict")).groups).toEqual([
      { group: "undeliverable", name: null, ...figures(3), rate_limited: null },
    ]);
    const reasons = (await usage(app, shop, "?by=sub_status")).groups.map(({ group, total }) => [group, total]);
    expect(reasons).toEqual([
      ["invalid_syntax", 2],
      ["domain_not_found", 1],
    ]);
  });

  test("covers the days that are asked for, both included, up to 400", async () => {
    const { app, shop, first, second } = await used();
    expect(
      (await usage(app, shop, `?from=${first}&to=${first}`)).groups.map(({ group, total }) => [group, total]),
    ).toEqual([[first, 1]]);
    expect((await usage(app, shop, `?from=${second}&by=key`)).total).toMatchObject({ total: 2 });
    const longest = new Date(Date.parse(second) - 399 * DAY_MS).toISOString().slice(0, 10);
    const year = await usage(app, shop, `?from=${longest}`);
    expect([year.groups.length, year.groups[0]?.group, year.groups.at(-1)?.total]).toEqual([400, longest, 2]);
    expect(year.total).toMatchObject({ total: 3 });
  });

  test.each([
    ["from=yesterday", "from"],
    ["to=2026-02-30", "to"],
    ["from=2026-01-02&to=2026-01-01", "from"],
    ["from=2024-01-01&to=2026-01-01", "from"],
    ["by=hour", "by"],
    ["by=", "by"],
    ["days=7", "days"],
    ["by=day&by=key", "by"],
  ])("is a 400 for %s", async (query, path) => {
    const app = start();
    const { status, body } = await app.request("GET", `${PATH}?${query}`, { key: app.newKey() });
    expect([status, body]).toMatchObject([400, { error: "Invalid query", issues: [{ path }] }]);
  });

  test("is not that of another account or mode, and needs a key with the scope", async () => {
    const { app } = await used();
    for (const key of [app.newKey({ account: "other", mode: "live" }), app.newKey({ mode: "test" })])
      expect((await usage(app, key)).total).toMatchObject({ total: 0, credits: 0 });
    const test = app.newKey({ mode: "test" });
    await app.verify(test, "mailbox_exists@x.example");
    expect((await usage(app, test)).total).toMatchObject({ total: 1, deliverable: 1, credits: 0 });
    const { status, body } = await app.request("GET", PATH, {
      key: app.newKey({ mode: "live", scopes: ["bulk:read"] }),
    });
    expect([status, body]).toMatchObject([403, { required: "verifications:read" }]);
    expect((await app.request("GET", PATH)).status).toBe(401);
    expect((await app.request("POST", PATH, { key: test, body: {} })).status).toBe(405);
  });
});

describe("requests that the rate limit refuses", () => {
  const refuse = async (app: TestApp, key: Key, times: number): Promise<void> => {
    let refused = 0;
    for (let sent = 0; refused < times && sent < 200; sent += 1)
      if ((await app.verify(key, "no address")).status === 429) refused += 1;
  };

  test("are counted by key and day after a moment, without a result or a credit", async () => {
    const app = start();
    app.newAccount("main", "free");
    const key = app.newKey({ mode: "live" });
    await refuse(app, key, 3);
    expect((await usage(app, key)).total).toMatchObject({ total: 2, rate_limited: 0 });
    await app.advance(RATE_LIMITED_FLUSH_MS);
    expect((await usage(app, key)).total).toMatchObject({ total: 2, credits: 2, rate_limited: 3 });
    await app.advance(DAY_MS);
    await refuse(app, key, 2);
    await app.service.usage.rateLimited.stop();
    expect((await usage(app, key)).groups.slice(-2).map((one) => one.rate_limited)).toEqual([3, 2]);
    expect((await usage(app, key, "?by=key")).groups).toMatchObject([{ group: key.id, total: 4, rate_limited: 5 }]);
    expect((await usage(app, key, "?by=verdict")).total).toMatchObject({ rate_limited: 5 });
  });

  test("are kept while the database cannot be written", async () => {
    const app = start();
    app.newAccount("main", "free");
    const key = app.newKey({ mode: "live" });
    await refuse(app, key, 1);
    app.db.sqlite.run("CREATE TRIGGER full BEFORE INSERT ON rate_limited_daily BEGIN SELECT RAISE(ABORT, 'full'); END");
    await app.advance(RATE_LIMITED_FLUSH_MS);
    expect(app.logged.join("\n")).toContain("counting of rate-limited requests failed");
    await refuse(app, key, 1);
    app.db.sqlite.run("DROP TRIGGER full");
    await app.advance(RATE_LIMITED_FLUSH_MS);
    expect((await usage(app, key)).total).toMatchObject({ rate_limited: 2 });
    expect(app.logged).toHaveLength(1);
  });
});
