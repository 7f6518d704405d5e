import { describe, expect, test } from "bun:test";
import { createBlocklistWorlds } from "../testing/blocklist-world.ts";

const newWorld = createBlocklistWorlds();
const IP = "8.8.4.4";
const LISTED = { A: ["127.0.0.2"], TXT: ["Blocked"] };
const PBL = { A: ["127.0.0.10"] };
const HOUR_MS = 60 * 60_000;

const shown = (world: ReturnType<typeof newWorld>, id: string) => world.listings.view(world.find(id), world.lists);

describe("the listings of a target", () => {
  test("say since when, when last seen, how bad, what it means and where to be delisted, the worst first", async () => {
    const world = newWorld();
    const id = world.add(IP);
    world.zen(IP, PBL);
    await world.check(id);
    await world.clock.advance(HOUR_MS);
    world.spamcop(IP, LISTED);
    await world.check(id);
    expect(shown(world, id)).toMatchObject({
      count: 2,
      listings: [
        {
          ...{
            id: "spamcop",
            list: "spamcop",
            name: "SpamCop SCBL",
            severity: "high",
            category: "spam",
            address: null,
          },
          meaning: expect.stringContaining("spam"),
          ...{ since: "2026-01-01T01:00:00.000Z", last_seen_at: "2026-01-01T01:00:00.000Z" },
          delist_url: expect.stringContaining("spamcop.net"),
          ...{ acknowledged: null, delisting_requested: null, note: null },
        },
        { id: "spamhaus-pbl", since: "2026-01-01T00:00:00.000Z", last_seen_at: "2026-01-01T01:00:00.000Z" },
      ],
    });
    expect(world.find(id).severityRank).toBe(4);
  });

  test("stay while the list does not answer, with the time they were last seen, and go with the delisting", async () => {
    const world = newWorld();
    const id = world.add(IP);
    world.spamcop(IP, LISTED);
    await world.check(id);
    await world.clock.advance(HOUR_MS);
    world.spamcop(IP, "servfail");
    await world.check(id);
    expect(shown(world, id).listings).toMatchObject([{ id: "spamcop", last_seen_at: "2026-01-01T00:00:00.000Z" }]);
    await world.clock.advance(HOUR_MS);
    world.spamcop(IP, null);
    await world.check(id);
    expect(shown(world, id)).toEqual({ listings: [], count: 0 });
    expect(world.find(id).severityRank).toBe(0);
  });

  test("from before there were severities get theirs at the start", async () => {
    const world = newWorld();
    const id = world.add(IP, { status: "listed", listedOn: ["spamcop"], lastCheckedAtMs: 0 });
    await world.passes.fillSeverities();
    expect(world.find(id).severityRank).toBe(4);
    expect(shown(world, id).listings).toMatchObject([{ id: "spamcop", severity: "high" }]);
  });
});

describe("the threshold for alerts", () => {
  const changes = async (min: { target?: "high" | "low" | "critical"; account?: "high" | "low" }) => {
    const world = newWorld({ pbl: "low" });
    world.account.blacklistSeverityMin = min.account ?? null;
    const id = world.add(IP, { recipients: ["a@example.com"], alertSeverityMin: min.target ?? null });
    world.zen(IP, PBL);
    await world.check(id);
    const [listed] = world.db.sqlite
      .query<{ sent: number }, []>("SELECT delivered_at_ms IS NULL sent FROM outbox")
      .all();
    return {
      severity: shown(world, id).listings[0]?.severity,
      isSent: listed?.sent === 1,
      mails: world.store.alertsFor("a@example.com").length,
    };
  };

  test("lets webhooks have all and mail from medium on, where nothing is set", async () => {
    expect(await changes({})).toEqual({ severity: "low", isSent: true, mails: 0 });
  });

  test.each([
    [{ account: "high" }, { isSent: false, mails: 0 }],
    [{ account: "low" }, { isSent: true, mails: 1 }],
    [
      { account: "low", target: "critical" },
      { isSent: false, mails: 0 },
    ],
    [
      { account: "high", target: "low" },
      { isSent: true, mails: 1 },
    ],
  ] as const)(
    "%o: the target's wins over the account's; below it the event is in the feed only",
    async (min, expected) => {
      expect(await changes(min)).toMatchObject(expected);
    },
  );
});
