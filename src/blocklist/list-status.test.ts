import { describe, expect, test } from "bun:test";
import { createTestClock } from "../testing/clock.ts";
import type { Blocklist, TargetKind } from "./lists/blocklist.ts";
import { readEmbeddedCatalogue } from "./lists/catalogue.ts";
import type { ListHealth } from "./lists/health.ts";
import { ListStatuses } from "./list-status.ts";
import type { ListedOnCount } from "./target-table.ts";
import { listsByMode } from "./target-lookup.ts";

const OWNER = { accountId: "a", mode: "live" } as const;
const TEST_OWNER = { accountId: "a", mode: "test" } as const;

const catalogueOf = (ids: readonly string[]): Blocklist[] =>
  ids.flatMap((id) => readEmbeddedCatalogue().lists.filter((list) => list.id === id));

const startLists = ({
  bad = {},
  counts = [],
  used = [],
}: {
  readonly bad?: Readonly<Record<string, ListHealth["state"]>>;
  readonly counts?: readonly ListedOnCount[];
  readonly used?: ReadonlyArray<readonly [string, number]>;
} = {}) => {
  const clock = createTestClock();
  const tested: string[] = [];
  const testedAtMs = new Map<string, number>();
  const of = ({ id }: Blocklist, kind: TargetKind): ListHealth => ({
    ...{ list: id, kind, state: bad[id] ?? "healthy", reason: null, remedy: null },
    testedAtMs: testedAtMs.get(`${id} ${kind}`) ?? null,
  });
  const statuses = new ListStatuses(
    { clock },
    {
      catalogue: listsByMode(catalogueOf(["spamhaus-zen", "spamcop", "spamhaus-dbl", "nordspam-bl", "uceprotect-2"])),
      health: {
        of,
        testAgain: (list, kind) => {
          tested.push(`${list.id} ${kind}`);
          testedAtMs.set(`${list.id} ${kind}`, clock.nowMs());
          return Promise.resolve({ health: of(list, kind), isTested: true });
        },
      },
      budgets: () => new Map(used),
      store: { countListedOn: () => [...counts] },
    },
  );
  return { clock, statuses, tested };
};

describe("the lists", () => {
  test("begin with those in use that have trouble, and end with those that are not in use", () => {
    const { statuses } = startLists({ bad: { "spamhaus-dbl": "refused", spamcop: "silent" } });
    expect(statuses.all(OWNER).map(({ list, isEnabled, state }) => [list.id, isEnabled, state])).toEqual([
      ["spamhaus-dbl", true, "refused"],
      ["spamcop", true, "silent"],
      ["spamhaus-zen", true, "healthy"],
      ["nordspam-bl", true, "healthy"],
      ["uceprotect-2", false, null],
    ]);
  });

  test("count the targets that are on any of their listings once", () => {
    const counts = [
      { listedOn: ["spamhaus-pbl", "spamhaus-sbl"], count: 3 },
      { listedOn: ["spamcop", "spamhaus-sbl"], count: 4 },
    ];
    const { statuses } = startLists({ counts, used: [["spamcop", 250]] });
    expect(statuses.find(OWNER, "spamhaus-zen")).toMatchObject({ targets: 7, queriesToday: 0, queriesPerDay: 300_000 });
    expect(statuses.find(OWNER, "spamcop")).toMatchObject({ targets: 4, queriesToday: 250, queriesPerDay: 100_000 });
    expect(() => statuses.find(OWNER, "spamkop")).toThrow("There is no such list.");
  });

  test("are tested on request, but not twice within a minute, and not when they are not in use", async () => {
    const { clock, statuses, tested } = startLists();
    await statuses.test(OWNER, "spamhaus-zen");
    expect(tested).toEqual(["spamhaus-zen ipv4", "spamhaus-zen ipv6"]);
    await clock.advance(59_000);
    await statuses.test(OWNER, "spamhaus-zen");
    expect(tested).toHaveLength(2);
    await clock.advance(1_000);
    await statuses.test(OWNER, "spamhaus-zen");
    expect(tested).toHaveLength(4);
    expect(statuses.test(OWNER, "uceprotect-2")).rejects.toMatchObject({ code: "conflict" });
    expect(statuses.test(OWNER, "nothing")).rejects.toMatchObject({ code: "not_found" });
    expect(statuses.test(TEST_OWNER, "test-list")).rejects.toMatchObject({ code: "conflict" });
    expect(tested).toHaveLength(4);
  });

  test("stand for their listings in filters, a listing for itself", () => {
    const { statuses } = startLists();
    expect(statuses.listingsOf(OWNER, "spamhaus-zen")).toContain("spamhaus-pbl");
    expect(statuses.listingsOf(OWNER, "spamhaus-pbl")).toEqual(["spamhaus-pbl"]);
    expect(statuses.listingsOf(OWNER, "nothing")).toEqual([]);
  });

  test("of test keys are the test list alone", () => {
    expect(startLists().statuses.all(TEST_OWNER)).toMatchObject([{ isEnabled: true, state: null, health: [] }]);
  });
});

describe("the cost of monitoring", () => {
  test("is counted for each list by what it has entries for, that with the least room first", () => {
    const { statuses } = startLists();
    const { targets, queriesPerDay, lists } = statuses.costOf(OWNER, { ipv4: 256 });
    expect([targets, queriesPerDay, lists.length]).toEqual([256, 256 * 3 * 4, 3]);
    expect(lists[0]).toMatchObject({ name: "NordSpam BL", queriesPerDay: 1_024, most: 10_000, share: 0.1024 });
    const mixed = statuses.costOf(OWNER, { ipv4: 100, domain: 50 });
    expect(mixed.targets).toBe(150);
    expect(mixed.queriesPerDay).toBe(mixed.lists.reduce((sum, list) => sum + list.queriesPerDay, 0));
    expect(new Set(mixed.lists.map((list) => list.queriesPerDay)).size).toBeGreaterThan(1);
    expect(statuses.costOf(TEST_OWNER, { ipv4: 2 })).toMatchObject({ queriesPerDay: 8, lists: [{ queriesToday: 0 }] });
    expect(statuses.costOf(OWNER, {})).toEqual({ targets: 0, queriesPerDay: 0, lists: [] });
  });
});
