import { describe, expect, test } from "bun:test";
import type { AttentionItem } from "../foundation/base/attention.ts";
import { createApps } from "../testing/app.ts";
import { createBlocklistAttention, wayOut } from "./attention.ts";
import type { Overview } from "./overview.ts";

const start = createApps();
const PATH = "/v1/blacklist/targets";
const MINUTE_MS = 60_000;

const startWithTargets = async (targets: readonly string[]) => {
  const app = start();
  const key = app.newKey({ name: "ops" });
  const ids: string[] = [];
  for (const target of targets) ids.push((await app.request("POST", PATH, { key, body: { target } })).id);
  await app.advance(2 * MINUTE_MS);
  await app.service.blocklist.scheduler.checkDue();
  const owner = { accountId: app.accountId(), mode: "test" } as const;
  const read = () => app.service.blocklist.attention(owner);
  const annotate = (id: string, body: object) =>
    app.request("PATCH", `${PATH}/${id}/listings/test-list`, { key, body });
  return { app, key, ids, read, annotate };
};

const titles = ({ items }: { readonly items: readonly AttentionItem[] }) => items.map(({ title }) => title);

describe("what needs attention", () => {
  test("begins with listed targets, says what the listing means and since when, and ends with unknown ones", async () => {
    const { ids, read } = await startWithTargets(["clean.example", "refused.example", "listed.example"]);
    const { items, figures } = read();
    expect(items).toEqual([
      {
        ...{ severity: "bad", label: "Listed", title: "listed.example is on The test list" },
        detail:
          "Test keys report this target as listed. Find and fix the cause. This list has no page for removal requests.",
        action: { text: "See why", path: `/blocklists/${ids[2]}` },
        sinceMs: Date.parse("2026-01-01T00:02:00Z"),
      },
      {
        ...{ severity: "unknown", label: "Unknown", title: "refused.example could not be checked" },
        detail: "No list gave a usable response. It is checked again within the hour.",
        action: { text: "See which", path: `/blocklists/${ids[1]}` },
        sinceMs: null,
      },
    ]);
    expect(figures).toMatchObject({ total: 3, clean: 1, listed: 1, unknown: 1 });
  });

  test("leaves out what somebody acknowledged, and waits for requested removals", async () => {
    const { ids, read, annotate } = await startWithTargets(["listed.example", "1.2.3.4"]);
    await annotate(ids[0] ?? "", { acknowledged: true });
    await annotate(ids[1] ?? "", { delisting_requested: true });
    expect(read().items).toMatchObject([
      {
        severity: "warn",
        label: "Requested",
        title: "1.2.3.4 is on The test list",
        detail: expect.stringContaining("Removal was requested"),
      },
    ]);
    await annotate(ids[1] ?? "", { acknowledged: true });
    expect(read()).toMatchObject({ items: [], figures: { listed: 2 } });
  });

  test("sums up what is more than a person reads", async () => {
    const { app, read } = await startWithTargets(["listed.example", "refused.example"]);
    const columns =
      "account_id, mode, kind, status, listed_on, muted_lists, monitoring_enabled, recipients, next_check_at_ms, created_at_ms, severity_rank";
    for (let n = 0; n < 24; n++)
      for (const like of ["listed.example", "refused.example"])
        app.db.sqlite.run(
          `INSERT INTO blocklist_targets (id, value, ${columns})
            SELECT id || '${n}', value || '${n}', ${columns} FROM blocklist_targets WHERE value = '${like}'`,
        );
    app.db.sqlite.run(
      `INSERT INTO blocklist_listings (target_id, listing, since_ms, seen_at_ms)
        SELECT id, 'test-list', 1, 1 FROM blocklist_targets WHERE severity_rank > 0 ON CONFLICT DO NOTHING`,
    );
    const { items, figures } = read();
    expect(figures).toMatchObject({ total: 50, listed: 25, unknown: 25 });
    expect(items).toHaveLength(22);
    expect(titles({ items: items.slice(-2) })).toEqual([
      "5 more targets are listed",
      "25 targets could not be checked",
    ]);
    expect(items.at(-1)?.detail).toContain("and 22 more: no list gave a usable response");
  });

  test("is empty for an account without targets, and for another mode and account", async () => {
    const { app } = await startWithTargets(["listed.example"]);
    const other = app.newAccount("other", "scale");
    for (const owner of [
      { accountId: app.accountId(), mode: "live" },
      { accountId: other, mode: "test" },
    ] as const)
      expect(app.service.blocklist.attention(owner)).toMatchObject({ items: [], figures: { total: 0 } });
  });
});

describe("the way out of a listing", () => {
  const requested = { at: "2026-01-01T00:00:00.000Z", by: "ops" };
  const page = "https://www.example.org/remove?ip=1";
  test.each([
    [{ delist_url: page }, "Find and fix the cause first; removal requests go to example.org."],
    [{ delist_url: null }, "Find and fix the cause. This list has no page for removal requests."],
    [{ delist_url: "no url" }, "Find and fix the cause. This list has no page for removal requests."],
  ])("%j", (listing, text) => {
    expect(wayOut({ ...listing, delisting_requested: null })).toBe(text);
    expect(wayOut({ ...listing, delisting_requested: requested })).toContain("Removal was requested");
  });
});

describe("lists that cannot be used", () => {
  type Trouble = ReturnType<Overview["listsInTrouble"]>[number];
  const trouble = (list: string, more: Partial<Trouble> = {}): Trouble => ({
    ...{ list, name: list.toUpperCase(), kind: "ipv4", state: "refused", tested_at: "2026-01-01T00:00:00.000Z" },
    ...{ reason: "It refuses public resolvers.", remedy: "Use your own.", ...more },
  });
  const itemsFor = (...troubled: Trouble[]) => {
    const figures = { total: 1, listed: 0, unknown: 0, pending: 0, clean: 1, paused: 0, worst: null };
    const attention = createBlocklistAttention({
      store: { worstFirst: () => [] },
      blocklists: { targetsById: () => [] },
      table: { figures: () => figures },
      targets: { listingsOf: () => new Map() },
      overview: { listsInTrouble: () => troubled },
    });
    return attention({ accountId: "a", mode: "live" }).items;
  };

  test("are one item each with reason and remedy, whatever kinds of target they concern", () => {
    const items = itemsFor(
      trouble("zen"),
      trouble("zen", { kind: "ipv6" }),
      trouble("dbl", { state: "silent", remedy: null }),
    );
    expect(items).toMatchObject([
      {
        ...{ severity: "warn", label: "Lists", title: "ZEN refuses our queries" },
        detail: "It refuses public resolvers. Use your own.",
        action: { path: "/blocklists/lists/zen" },
      },
      { title: "DBL cannot be used", detail: "It refuses public resolvers." },
    ]);
  });

  test("are one item when there are many", () => {
    const many = ["a", "b", "c", "d"].map((list) => trouble(list));
    expect(itemsFor(...many)).toMatchObject([
      {
        title: "4 blocklists refuse our queries",
        detail: expect.stringContaining("A, B, C and 1 more. Most lists refuse public resolvers"),
        action: { path: "/blocklists/lists" },
      },
    ]);
    const mixed = [...many, trouble("e", { state: "silent" })];
    expect(titles({ items: itemsFor(...mixed) })).toEqual(["5 blocklists cannot be used"]);
  });
});
