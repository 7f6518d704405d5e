import { isoDay } from "../../base/days.ts";
import { describe, expect, test } from "bun:test";
import { createDmarcAlertWorlds, type DmarcAlertWorld } from "../../testing/dmarc-alert-world.ts";
import { DMARC_EVENTS } from "./event-docs.ts";

const newWorld = createDmarcAlertWorlds();
const HOUR_MS = 60 * 60_000;
const OWN = "dkim:example.com";
const MANY = 2_000;

/** A domain with two weeks of good mail behind it. */
const settled = async (more: Parameters<DmarcAlertWorld["add"]>[1] = {}, world = newWorld()) => {
  const { number } = world.add("example.com", more);
  for (let day = world.today - 14; day <= world.today; day++)
    world.report(number, day, OWN, { messages: MANY, aligned: MANY });
  await world.passes.run();
  expect(world.raised()).toEqual([]);
  return { world, number };
};

const fits = ({ events }: DmarcAlertWorld) => {
  for (const { type, data } of events()) {
    const doc = DMARC_EVENTS.find((candidate) => candidate.type === type);
    expect([type, doc?.data.safeParse(data).error?.issues ?? []]).toEqual([type, []]);
  }
};

describe("a new source", () => {
  test("is told of once, with what it sent, and as documented", async () => {
    const { world, number } = await settled();
    world.report(number, world.today, "spf:mailer.example.net", { messages: 40 });
    await world.passes.run();
    await world.passes.run();
    world.report(number, world.today, "spf:mailer.example.net", { messages: 4_000 });
    await world.passes.run();
    expect(world.raised().filter((what) => what.startsWith("new_source"))).toEqual([
      "new_source spf:mailer.example.net",
    ]);
    expect(world.events()[0]).toMatchObject({
      type: "dmarc.new_source",
      data: { domain: "example.com", count: 1, sources: [{ key: "spf:mailer.example.net", messages: 40, aligned: 0 }] },
    });
    fits(world);
    expect(world.find(number).isUnreviewed).toBe(false);
  });

  test("of little weight is told of when it grows", async () => {
    const { world, number } = await settled();
    world.report(number, world.today, "spf:mailer.example.net", { messages: 9 });
    await world.passes.run();
    expect(world.raised()).toEqual([]);
    world.report(number, world.today, "spf:mailer.example.net", { messages: 1 });
    await world.passes.run();
    expect(world.raised()).toEqual(["new_source spf:mailer.example.net"]);
  });

  test("is none in the first week, in imported history, or where the user spoke already", async () => {
    const world = newWorld();
    const { number } = world.add("young.example");
    world.report(number, world.today - 6, OWN, { messages: MANY, aligned: MANY });
    world.report(number, world.today, "spf:mailer.example.net", { messages: 40 });
    await world.passes.run();
    expect(world.raised()).toEqual([]);

    const old = await settled({}, newWorld());
    old.world.report(old.number, old.world.today - 8, "spf:old.example.net", { messages: 400 });
    old.world.report(old.number, old.world.today, "spf:said.example.net", { messages: 40 });
    old.world.db.transact((tx) =>
      old.world.reading.setWord(tx, old.number, { key: "spf:said.example.net", classification: "authorized", atMs: 1 }),
    );
    await old.world.passes.run();
    expect(old.world.raised()).toEqual([]);
  });

  test("is none when it passes on mail", async () => {
    const { world, number } = await settled();
    world.report(number, world.today, "spf:lists.example.net", { messages: 40, forwarded: 40 });
    await world.passes.run();
    expect(world.raised()).toEqual([]);
  });

  test("without a reverse name is waited for, an hour at most, without a new report", async () => {
    const { world, number } = await settled();
    world.report(number, world.today, "ip:198.51.100.7", { messages: 40 });
    world.report(number, world.today, "ip:198.51.100.8", { messages: 40 });
    await world.passes.run();
    expect(world.raised()).toEqual([]);
    world.reverse("198.51.100.7", "mta1.example.net");
    world.reverse("198.51.100.8", "mta2.example.net");
    await world.passes.run();
    expect(world.raised()).toEqual(["new_source ptr:example.net"]);
    world.report(number, world.today, "ip:203.0.113.9", { messages: 40 });
    await world.passes.run();
    expect(world.raised()).toHaveLength(1);
    await world.clock.advance(HOUR_MS);
    await world.passes.run();
    expect(world.raised().slice(1)).toEqual(["new_source net:203.0.113.0/24"]);
  });

  test("is none where another address of it was seen before", async () => {
    const { world, number } = await settled();
    world.report(number, world.today, "ip:203.0.113.9", { messages: 40 });
    world.reverse("203.0.113.9", null);
    await world.passes.run();
    await world.clock.advance(25 * HOUR_MS);
    world.report(number, world.today, "ip:203.0.113.10", { messages: 40 });
    world.reverse("203.0.113.10", null);
    await world.passes.run();
    expect(world.raised()).toEqual(["new_source net:203.0.113.0/24"]);
  });

  test.each([
    [10, 10],
    [11, 1],
    [23, 1],
  ])("among %p makes %p alerts", async (count, alerts) => {
    const { world, number } = await settled();
    for (let n = 0; n < count; n++) world.report(number, world.today, `spf:m${n}.example.net`, { messages: 40 });
    await world.passes.run();
    const told = world.events().filter(({ type }) => type === "dmarc.new_source");
    expect(told).toHaveLength(alerts);
    expect(told[0]?.data.count).toBe(count > 10 ? count : 1);
    fits(world);
  });

  test("is remembered although its rule is off", async () => {
    const { world, number } = await settled({ alerts: { new_source: false } });
    world.report(number, world.today, "spf:mailer.example.net", { messages: 40 });
    await world.passes.run();
    world.db.transact((tx) => world.domains.update(tx, number, { alerts: {}, isUnreviewed: true }));
    await world.passes.run();
    expect(world.raised()).toEqual([]);
  });
});

describe("a new subdomain", () => {
  test("is told of from ten messages on, once", async () => {
    const { world, number } = await settled();
    world.name(number, world.today, "example.com", { messages: 500 });
    world.name(number, world.today, "", { messages: 500 });
    world.name(number, world.today, "few.example.com", { messages: 9 });
    world.name(number, world.today, "news.example.com", { messages: 10, aligned: 10 });
    await world.passes.run();
    world.arrive(number);
    await world.passes.run();
    expect(world.raised()).toEqual(["new_subdomain news.example.com"]);
    fits(world);
  });
});

describe("a failure spike", () => {
  test("is told of once for its day, however the day grows, and says who failed", async () => {
    const { world, number } = await settled();
    world.report(number, world.today, OWN, { messages: 1_000 });
    await world.passes.run();
    world.report(number, world.today, OWN, { messages: 2_000 });
    await world.passes.run();
    expect(world.raised()).toEqual([`failure_spike ${isoDay(world.today)}`]);
    expect(world.events()[0]?.data).toMatchObject({
      failing_share: 0.3333,
      previous_failing_share: 0,
      sources: [{ key: OWN }],
    });
    fits(world);
  });

  test("is none when forwarders are behind it", async () => {
    const { world, number } = await settled();
    world.report(number, world.today, "spf:lists.example.net", { messages: 2_000, forwarded: 1_900 });
    await world.passes.run();
    expect(world.raised()).toEqual([]);
  });
});

describe("reports that stop", () => {
  test("are told of after 72 hours, once until they come again", async () => {
    const { world, number } = await settled();
    await world.clock.advance(72 * HOUR_MS - 1);
    await world.passes.run();
    expect(world.raised()).toEqual([]);
    await world.clock.advance(1);
    await world.passes.run();
    await world.clock.advance(72 * HOUR_MS);
    await world.passes.run();
    expect(world.raised()).toEqual(["reports_stopped 2026-11-20"]);
    fits(world);
    world.arrive(number);
    await world.passes.run();
    await world.clock.advance(72 * HOUR_MS);
    await world.passes.run();
    expect(world.raised()).toEqual(["reports_stopped 2026-11-20", "reports_stopped 2026-11-26"]);
  });

  test("are not told of before reporters had time to come again after a stop of our own", async () => {
    const { world } = await settled();
    await world.clock.advance(100 * HOUR_MS);
    const passes = world.startPasses();
    await world.clock.advance(6 * HOUR_MS - 1);
    await passes.run();
    expect(world.raised()).toEqual([]);
    await world.clock.advance(1);
    await passes.run();
    expect(world.raised()).toEqual(["reports_stopped 2026-11-20"]);
  });

  test.each([
    ["paused", { monitoringEnabled: false }],
    ["not active", { status: "action_required" }],
    ["of a test key", { mode: "test" }],
    ["deleted", { deletedAtMs: 1 }],
  ] as const)("are no news for a domain that is %s", async (_, change) => {
    const { world, number } = await settled();
    world.db.transact((tx) => world.domains.update(tx, number, change as never));
    await world.clock.advance(200 * HOUR_MS);
    await world.passes.run();
    expect(world.raised()).toEqual([]);
  });

  test("after two days of reports are no news", async () => {
    const world = newWorld();
    const { number } = world.add("example.com");
    for (const day of [1, 2]) world.report(number, world.today - day, OWN, { messages: 10, aligned: 10 });
    await world.passes.run();
    await world.clock.advance(200 * HOUR_MS);
    await world.passes.run();
    expect(world.raised()).toEqual([]);
  });
});

describe("a run", () => {
  test("goes on when a domain fails, which stays to be looked at", async () => {
    const { world, number } = await settled();
    const other = world.add("example.org").number;
    world.report(number, world.today, "spf:mailer.example.net", { messages: 40 });
    world.report(other, world.today, OWN, { messages: 40, aligned: 40 });
    world.db.sqlite.run("CREATE TRIGGER bug BEFORE INSERT ON dmarc_alerts BEGIN SELECT RAISE(ABORT, 'bug'); END");
    await world.passes.run();
    expect([world.find(number).isUnreviewed, world.find(other).isUnreviewed]).toEqual([true, false]);
    expect(world.logged.join()).toContain("the alert rules failed");
    world.db.sqlite.run("DROP TRIGGER bug");
    await world.passes.run();
    expect(world.raised()).toEqual(["new_source spf:mailer.example.net"]);
  });
});
