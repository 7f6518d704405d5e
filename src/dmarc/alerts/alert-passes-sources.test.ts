import { describe, expect, test } from "bun:test";
import { createDmarcAlertWorlds, type DmarcAlertWorld } from "../../testing/dmarc-alert-world.ts";
import { expectDocumented, settle } from "../../testing/dmarc-alert-settled.ts";

const newWorld = createDmarcAlertWorlds();
const HOUR_MS = 60 * 60_000;
const OWN = "dkim:example.com";
const MANY = 2_000;

describe("a new source", () => {
  test("is told of once, with what it sent, and as documented", async () => {
    const { world, number } = await settle(newWorld());
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
    expectDocumented(world);
    expect(world.find(number).isUnreviewed).toBe(false);
  });

  test("is not what had no place of its own: nobody can be named", async () => {
    const { world, number } = await settle(newWorld());
    world.report(number, world.today, "other", { messages: 4_000 });
    await world.passes.run();
    expect(world.raised().filter((what) => what.startsWith("new_source"))).toEqual([]);
  });

  test("of little weight is told of when it grows", async () => {
    const { world, number } = await settle(newWorld());
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

    const old = await settle(newWorld());
    old.world.report(old.number, old.world.today - 8, "spf:old.example.net", { messages: 400 });
    old.world.report(old.number, old.world.today, "spf:said.example.net", { messages: 40 });
    old.world.db.transact((tx) =>
      old.world.reading.setWord(tx, old.number, { key: "spf:said.example.net", classification: "authorized", atMs: 1 }),
    );
    await old.world.passes.run();
    expect(old.world.raised()).toEqual([]);
  });

  test("is none when it passes on mail", async () => {
    const { world, number } = await settle(newWorld());
    world.report(number, world.today, "spf:lists.example.net", { messages: 40, forwarded: 40 });
    await world.passes.run();
    expect(world.raised()).toEqual([]);
  });

  test("without a reverse name is waited for, an hour at most, without a new report", async () => {
    const { world, number } = await settle(newWorld());
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
    const { world, number } = await settle(newWorld());
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
    const { world, number } = await settle(newWorld());
    for (let n = 0; n < count; n++) world.report(number, world.today, `spf:m${n}.example.net`, { messages: 40 });
    await world.passes.run();
    const told = world.events().filter(({ type }) => type === "dmarc.new_source");
    expect(told).toHaveLength(alerts);
    expect(told[0]?.data.count).toBe(count > 10 ? count : 1);
    expectDocumented(world);
  });

  test("is remembered although its rule is off", async () => {
    const { world, number } = await settle(newWorld(), { alerts: { new_source: false } });
    world.report(number, world.today, "spf:mailer.example.net", { messages: 40 });
    await world.passes.run();
    world.db.transact((tx) => world.domains.update(tx, number, { alerts: {}, isUnreviewed: true }));
    await world.passes.run();
    expect(world.raised()).toEqual([]);
  });
});

describe("new sources beyond those that one review looks at", () => {
  const LIMIT = 20_000;
  /** So many addresses, each with a message, which were stored before any other. */
  const flood = (world: DmarcAlertWorld, number: number, count: number): void => {
    world.db.sqlite.run(
      `WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < ?2 - 1)
        INSERT INTO dmarc_sources (domain, key, first_day, last_day, first_seen_at_ms)
        SELECT ?1, printf('spf:f%d.example', i), ?3, ?3, ?4 FROM n`,
      [number, count, world.today, world.clock.nowMs()],
    );
    world.db.sqlite.run(
      `INSERT INTO dmarc_daily SELECT domain, ?2, number, 1, 0, 0, 0, 0, 0, 0, 0, 1 FROM dmarc_sources
        WHERE domain = ?1 AND key LIKE 'spf:f%'`,
      [number, world.today],
    );
    world.arrive(number);
  };

  test("are looked at in the order of their weight", async () => {
    const { world, number } = await settle(newWorld());
    flood(world, number, LIMIT);
    world.report(number, world.today, "spf:mailer.example.net", { messages: 400 });
    await world.passes.run();
    expect(world.raised()).toContain("new_source spf:mailer.example.net");
  });

  test("are not taken for known, and not for looked at", async () => {
    const { world, number } = await settle(newWorld());
    for (let n = 0; n < 2; n++) world.report(number, world.today, `ip:203.0.113.${n}`, { messages: n === 0 ? 400 : 0 });
    flood(world, number, LIMIT);
    world.reverse("203.0.113.0", null);
    world.reverse("203.0.113.1", null);
    await world.passes.run();
    expect(world.raised()).toContain("new_source net:203.0.113.0/24");
    const left = world.db.sqlite
      .query<{ key: string }, []>("SELECT key FROM dmarc_sources WHERE is_reviewed = 0 AND key LIKE 'ip:%'")
      .all();
    expect(left).toEqual([{ key: "ip:203.0.113.1" }]);
  });
});
