import { isoDay } from "../../base/days.ts";
import { describe, expect, test } from "bun:test";
import { createDmarcAlertWorlds, type DmarcAlertWorld } from "../../testing/dmarc-alert-world.ts";
import { expectDocumented, settle } from "../../testing/dmarc-alert-settled.ts";

const newWorld = createDmarcAlertWorlds();
const HOUR_MS = 60 * 60_000;
const OWN = "dkim:example.com";
const MANY = 2_000;

describe("the first week of a domain", () => {
  test("is not ended by a report with a wrong date or an old file", async () => {
    const world = newWorld();
    const { number } = world.add("example.com");
    for (const day of [3_500, world.today - 200, world.today - 1])
      world.report(number, day, OWN, { messages: MANY, aligned: MANY });
    world.report(number, world.today, "spf:mailer.example.net", { messages: 40 });
    await world.passes.run();
    expect(world.raised()).toEqual([]);
  });
});

describe("a new subdomain", () => {
  test("is told of from ten messages on, once", async () => {
    const { world, number } = await settle(newWorld());
    world.name(number, world.today, "example.com", { messages: 500 });
    world.name(number, world.today, "", { messages: 500 });
    world.name(number, world.today, "few.example.com", { messages: 9 });
    world.name(number, world.today, "news.example.com", { messages: 10, aligned: 10 });
    await world.passes.run();
    world.arrive(number);
    await world.passes.run();
    expect(world.raised()).toEqual(["new_subdomain news.example.com"]);
    expectDocumented(world);
  });
});

describe("a failure spike", () => {
  test("is told of once for its day, however the day grows, and says who failed", async () => {
    const { world, number } = await settle(newWorld());
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
    expectDocumented(world);
  });

  test("is none when forwarders are behind it", async () => {
    const { world, number } = await settle(newWorld());
    world.report(number, world.today, "spf:lists.example.net", { messages: 2_000, forwarded: 1_900 });
    await world.passes.run();
    expect(world.raised()).toEqual([]);
  });
});

describe("a report of failures that comes before the others", () => {
  /** Each day 150 messages that fail at one reporter and 10,000 at another, of which few do. */
  const tell = (world: DmarcAlertWorld, number: number, day: number, reporters: Record<string, [number, number]>) => {
    for (const [reporter, [messages, aligned]] of Object.entries(reporters)) {
      world.report(number, day, OWN, { messages, aligned });
      world.db.sqlite.run(
        "UPDATE OR REPLACE dmarc_daily_reporters SET reporter = ? WHERE domain = ? AND day = ? AND reporter = 'google.com'",
        [reporter, number, day],
      );
    }
  };
  const large = (aligned: number): Record<string, [number, number]> => ({ large: [10_000, aligned] });
  const SMALL: Record<string, [number, number]> = { small: [150, 0] };

  test("is no spike, not then, not with the others and not without them", async () => {
    const world = newWorld();
    const { number } = world.add("example.com");
    for (let day = world.today - 14; day < world.today; day++) tell(world, number, day, { ...SMALL, ...large(9_900) });
    tell(world, number, world.today, SMALL);
    await world.passes.run();
    expect([world.raised(), world.find(number).isUnreviewed]).toEqual([[], true]);
    await world.clock.advance(48 * HOUR_MS);
    await world.passes.run();
    expect([world.raised(), world.find(number).isUnreviewed]).toEqual([[], false]);
    tell(world, number, world.today, large(9_900));
    await world.passes.run();
    expect(world.raised()).toEqual([]);
  });

  test("does not hide a spike", async () => {
    const world = newWorld();
    const { number } = world.add("example.com");
    for (let day = world.today - 14; day < world.today; day++) tell(world, number, day, { ...SMALL, ...large(9_900) });
    tell(world, number, world.today, SMALL);
    await world.passes.run();
    tell(world, number, world.today, large(7_000));
    await world.passes.run();
    expect(world.raised()).toEqual([`failure_spike ${isoDay(world.today)}`]);
  });
});

describe("a run", () => {
  test("goes on when a domain fails, which stays to be looked at", async () => {
    const { world, number } = await settle(newWorld());
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
