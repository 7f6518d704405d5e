import { describe, expect, test } from "bun:test";
import { createBlocklistFixtures } from "../testing/blocklist-fixture.ts";

const newFixture = createBlocklistFixtures();
const IP = "8.8.4.4";
const LISTED = { A: ["127.0.0.2"], TXT: ["Blocked"] };
const PBL = { A: ["127.0.0.10"] };
const HOUR_MS = 60 * 60_000;

const shown = (fixture: ReturnType<typeof newFixture>, id: string) =>
  fixture.listings.view(fixture.find(id), fixture.lists);

describe("the listings of a target", () => {
  test("have times, severity, meaning and delisting page, most severe first", async () => {
    const fixture = newFixture();
    const id = fixture.add(IP);
    fixture.zen(IP, PBL);
    await fixture.check(id);
    await fixture.clock.advance(HOUR_MS);
    fixture.spamcop(IP, LISTED);
    await fixture.check(id);
    expect(shown(fixture, id)).toMatchObject({
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
    expect(fixture.find(id).severityRank).toBe(4);
  });

  test("stay while the list does not respond, with the time they were last seen, and are removed by the delisting", async () => {
    const fixture = newFixture();
    const id = fixture.add(IP);
    fixture.spamcop(IP, LISTED);
    await fixture.check(id);
    await fixture.clock.advance(HOUR_MS);
    fixture.spamcop(IP, "servfail");
    await fixture.check(id);
    expect(shown(fixture, id).listings).toMatchObject([{ id: "spamcop", last_seen_at: "2026-01-01T00:00:00.000Z" }]);
    await fixture.clock.advance(HOUR_MS);
    fixture.spamcop(IP, null);
    await fixture.check(id);
    expect(shown(fixture, id)).toEqual({ listings: [], count: 0 });
    expect(fixture.find(id).severityRank).toBe(0);
  });

  test("of older versions get their severity at startup", async () => {
    const fixture = newFixture();
    const id = fixture.add(IP, { status: "listed", listedOn: ["spamcop"], lastCheckedAtMs: 0 });
    await fixture.scheduler.fillSeverities();
    expect(fixture.find(id).severityRank).toBe(4);
    expect(shown(fixture, id).listings).toMatchObject([{ id: "spamcop", severity: "high" }]);
  });
});

describe("the threshold for alerts", () => {
  const changes = async (min: { target?: "high" | "low" | "critical"; account?: "high" | "low" }) => {
    const fixture = newFixture({ pbl: "low" });
    fixture.account.blacklistSeverityMin = min.account ?? null;
    const id = fixture.add(IP, { recipients: ["a@example.com"], alertSeverityMin: min.target ?? null });
    fixture.zen(IP, PBL);
    await fixture.check(id);
    const [listed] = fixture.db.sqlite
      .query<{ sent: number }, []>("SELECT delivered_at_ms IS NULL sent FROM outbox")
      .all();
    return {
      severity: shown(fixture, id).listings[0]?.severity,
      isSent: listed?.sent === 1,
      mails: fixture.mailQueue.rowsFor("a@example.com").length,
    };
  };

  test("is info for webhooks and medium for mail by default", async () => {
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
