import { describe, expect, test } from "bun:test";
import { createDmarcAlertWorlds } from "../../testing/dmarc-alert-world.ts";
import { expectDocumented, settle } from "../../testing/dmarc-alert-settled.ts";

const newWorld = createDmarcAlertWorlds();
const HOUR_MS = 60 * 60_000;
const OWN = "192.0.2.1 example.com/mail example.com -";
/** The clock of a world at its start. */
const START_MS = Date.UTC(2026, 10, 20, 12);
const MANY = 2_000;
const MAILER = "198.51.100.1 -/- mailer.example.net -";

describe("the first week of a domain", () => {
  test("is not ended by a report with a wrong date or an old file", async () => {
    const world = newWorld();
    const { number } = world.add("example.com");
    for (const day of [3_500, world.today - 200, world.today - 1])
      world.report(number, day, OWN, { messages: MANY, aligned: MANY });
    world.report(number, world.today, MAILER, { messages: 400, authenticated: 400 });
    await world.passes.run();
    expect(world.raised()).toEqual([]);
  });
});

describe("a new subdomain", () => {
  test("is alerted when its mail passes DMARC, once", async () => {
    const { world, number } = await settle(newWorld());
    world.name(number, world.today, "example.com", { messages: 500, aligned: 500 });
    world.name(number, world.today, "", { messages: 500, aligned: 500 });
    world.name(number, world.today, "few.example.com", { messages: 900, aligned: 2 });
    world.name(number, world.today, "forged.example.com", { messages: 900 });
    world.name(number, world.today, "news.example.com", { messages: 3, aligned: 3 });
    await world.passes.run();
    world.arrive(number);
    await world.passes.run();
    expect(world.raised()).toEqual(["new_subdomain news.example.com"]);
    expectDocumented(world);
  });
});

describe("mail that fails", () => {
  test("is alerted when it starts, when it doubles and when it ends, and says who failed", async () => {
    const { world, number } = await settle(newWorld());
    for (const aligned of [1_400, 1_400, 600, 600, 1_990, 1_990]) {
      await world.clock.advance(24 * HOUR_MS);
      world.report(number, world.today + Math.round((world.clock.nowMs() - START_MS) / (24 * HOUR_MS)), OWN, {
        messages: MANY,
        aligned,
      });
      for (let n = 0; n < 2; n++) await world.passes.run();
    }
    const told = world
      .events()
      .map(({ type, data }) => [type, data.state, data.failing_share, data.usual_failing_share]);
    expect(told).toEqual([
      ["dmarc.failure_spike", "started", 0.3, 0],
      ["dmarc.failure_spike", "grew", 0.7, 0],
      ["dmarc.failure_spike", "ended", 0.005, 0],
    ]);
    expect(world.events()[0]?.data).toMatchObject({ sources: [{ key: "own", failing: 600, causes: [] }] });
    expectDocumented(world);
  });

  test("is alerted once although more sources fail at once than a mail lists", async () => {
    const world = newWorld();
    const { number } = world.add("example.com");
    const keys = Array.from({ length: 12 }, (_, n) => `198.51.100.${n} -/- m${n}.example -`);
    for (let n = 0; n < 12; n++) world.reverse(`198.51.100.${n}`, null);
    for (let day = world.today - 14; day <= world.today; day++)
      for (const key of keys) world.report(number, day, key, { messages: 100, aligned: day === world.today ? 0 : 100 });
    for (let n = 0; n < 3; n++) {
      await world.passes.run();
      world.arrive(number);
    }
    expect(world.events().map(({ data }) => (data.sources as unknown[]).length)).toEqual([12]);
    expectDocumented(world);
  });

  test("is judged as the domain's thresholds say", async () => {
    for (const [thresholds, isNews] of [
      [{}, true],
      [{ failure_spike_percent: 31 }, false],
      [{ failure_spike_messages: 601 }, false],
    ] as const) {
      const { world, number } = await settle(newWorld(), { alertThresholds: thresholds });
      await world.clock.advance(24 * HOUR_MS);
      world.report(number, world.today + 1, OWN, { messages: MANY, aligned: 1_400 });
      await world.passes.run();
      expect([thresholds, world.raised().length > 0]).toEqual([thresholds, isNews]);
    }
  });

  test("is judged when half of the usual mail of its day is in, or two days later", async () => {
    for (const [messages, daysAgo, isNews] of [
      [MANY / 2, 1, true],
      [MANY / 2 - 1, 1, false],
      [MANY / 2 - 1, 2, true],
    ] as const) {
      const { world, number } = await settle(newWorld());
      await world.clock.advance((daysAgo + 1) * 24 * HOUR_MS);
      world.report(number, world.today + 1, OWN, { messages });
      await world.passes.run();
      expect([messages, daysAgo, world.raised().length > 0]).toEqual([messages, daysAgo, isNews]);
    }
  });

  test("is not judged on the next day when it is not known how much mail is usual on that weekday", async () => {
    const { world, number } = await settle(newWorld());
    world.db.sqlite.run("DELETE FROM dmarc_daily WHERE day = ?", [world.today - 6]);
    await world.clock.advance(2 * 24 * HOUR_MS);
    world.report(number, world.today + 1, OWN, { messages: MANY });
    await world.passes.run();
    expect(world.raised()).toEqual([]);
  });

  test("is none of the domain's when it is forwarded or forged", async () => {
    const { world, number } = await settle(newWorld());
    for (const ip of ["198.51.100.1", "198.51.100.2"]) world.reverse(ip, null);
    for (let day = world.today - 14; day < world.today; day++) {
      world.report(number, day, "198.51.100.1 -/- lists.example.net -", { messages: 100, aligned: 60, forwarded: 40 });
      world.report(number, day, "198.51.100.2 -/- - -", { messages: 90 });
    }
    await world.passes.run();
    world.report(number, world.today, "198.51.100.1 -/- lists.example.net -", { messages: 900, forwarded: 400 });
    world.report(number, world.today, "198.51.100.2 -/- - -", { messages: 95 });
    await world.passes.run();
    expect(world.raised().filter((what) => what.startsWith("failure"))).toEqual([]);
  });
});

describe("a run", () => {
  test("goes on when a domain fails, which stays to be looked at", async () => {
    const { world, number } = await settle(newWorld());
    const other = world.add("example.org").number;
    world.report(number, world.today, MAILER, { messages: 400, authenticated: 400 });
    world.reverse("198.51.100.1", null);
    world.report(other, world.today, OWN, { messages: 40, aligned: 40 });
    world.db.sqlite.run("CREATE TRIGGER bug BEFORE INSERT ON dmarc_alerts BEGIN SELECT RAISE(ABORT, 'bug'); END");
    await world.passes.run();
    expect([world.find(number).isUnreviewed, world.find(other).isUnreviewed]).toEqual([true, false]);
    expect(world.logged.join()).toContain("the alert rules failed");
    world.db.sqlite.run("DROP TRIGGER bug");
    await world.passes.run();
    expect(world.raised()).toEqual(["new_source org:example.net"]);
  });
});
