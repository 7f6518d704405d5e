import { describe, expect, test } from "bun:test";
import { createDmarcAlertWorlds, type DmarcAlertWorld } from "../../testing/dmarc-alert-world.ts";
import { expectDocumented, settle } from "../../testing/dmarc-alert-settled.ts";

const newWorld = createDmarcAlertWorlds();
const HOUR_MS = 60 * 60_000;
const OWN = "192.0.2.1 example.com/mail example.com -";
const MANY = 2_000;

/** The stored key of an address that passes SPF for a domain of its own. */
const ofEnvelope = (ip: string, envelope: string) => `${ip} -/- ${envelope} -`;
const MAILER = ofEnvelope("198.51.100.1", "mailer.example.net");

/** A settled domain, with the reverse names of some addresses looked up: none has one. */
const settled = async (more: Parameters<typeof settle>[1] = {}) => {
  const { world, number } = await settle(newWorld(), more);
  for (let n = 0; n < 30; n++) world.reverse(`198.51.100.${n}`, null);
  return { world, number };
};

describe("a new source", () => {
  test("is alerted once, with what it sent, and as documented", async () => {
    const { world, number } = await settled();
    world.report(number, world.today, MAILER, { messages: 400, authenticated: 400 });
    await world.passes.run();
    await world.passes.run();
    world.report(number, world.today, MAILER, { messages: 4_000, authenticated: 4_000 });
    await world.passes.run();
    expect(world.raised().filter((what) => what.startsWith("new_source"))).toEqual(["new_source org:example.net"]);
    expect(world.events()[0]).toMatchObject({
      type: "dmarc.new_source",
      data: { domain: "example.com", count: 1, sources: [{ key: "org:example.net", messages: 400, aligned: 0 }] },
    });
    expectDocumented(world);
    expect(world.find(number).isUnreviewed).toBe(false);
  });

  test("whose mail is aligned is alerted with few messages, although it signs as others do", async () => {
    const { world, number } = await settled();
    world.report(number, world.today, "198.51.100.2 example.com/hs1 example.com -", { messages: 4, aligned: 4 });
    world.reverse("198.51.100.2", "a1.hubspotemail.net");
    await world.passes.run();
    expect(world.raised()).toEqual([]);
    world.report(number, world.today, "198.51.100.2 example.com/hs1 example.com -", { messages: 1, aligned: 1 });
    await world.passes.run();
    expect(world.raised()).toEqual(["new_source service:hubspot"]);
    expect(JSON.stringify(world.events()[0]?.data)).toContain("hs1");
  });

  test.each<[string, string, string | null, number]>([
    ["without any proof and without a name", "198.51.100.3 -/- - -", null, 0],
    ["without any proof on a line to the home", "198.51.100.3 -/- - -", "dyn-198-51-100-3.isp.example", 0],
    ["without any proof from a server with a name", "198.51.100.3 -/- - -", "mail.stranger.example", 0],
    ["that forwards", "198.51.100.3 -/- lists.example.net -", null, 4_000],
    ["that no address is known of", "* -/- - -", null, 0],
  ])("%s is no news, however much it sends", async (_, key, name, forwarded) => {
    const { world, number } = await settled();
    world.report(number, world.today, key, { messages: 4_000, forwarded });
    world.reverse("198.51.100.3", name);
    await world.passes.run();
    expect(world.raised().filter((what) => what.startsWith("new_source"))).toEqual([]);
  });

  test("of a known service, and one beside the domain's own servers, is news without any proof", async () => {
    const { world, number } = await settled();
    world.report(number, world.today, "198.51.100.3 -/- - -", { messages: 400 });
    world.reverse("198.51.100.3", "o1.sendgrid.net");
    world.report(number, world.today, "192.0.2.9 -/- - -", { messages: 400 });
    world.reverse("192.0.2.9", null);
    await world.passes.run();
    const raised = world.raised().filter((what) => what.startsWith("new_source"));
    expect(raised.toSorted()).toEqual(["new_source net:192.0.2.0/24", "new_source service:sendgrid"]);
    world.report(number, world.today, "198.51.100.3 -/- - -", { messages: 400 });
    await world.passes.run();
    expect(world.raised().filter((what) => what.startsWith("new_source"))).toHaveLength(2);
  });

  test("that forwards is no news, whatever it proves", async () => {
    const { world, number } = await settled();
    const key = ofEnvelope("198.51.100.3", "lists.example.net");
    world.report(number, world.today, key, { messages: 4_000, authenticated: 3_000, forwarded: 3_000 });
    await world.passes.run();
    expect(world.raised()).toEqual([]);
  });

  test("has its share of the domain's mail without what is forged", async () => {
    const { world, number } = await settled();
    for (let n = 10; n < 20; n++) world.report(number, world.today, `198.51.100.${n} -/- - -`, { messages: 9_000 });
    world.report(number, world.today, MAILER, { messages: 400, authenticated: 400 });
    await world.passes.run();
    expect(world.raised()).toContain("new_source org:example.net");
  });

  test("with little mail waits until it has a number of messages and a share, as the domain's thresholds say", async () => {
    for (const [thresholds, messages, isNews] of [
      [{}, 20, false],
      [{ new_source_percent: 0.01 }, 20, true],
      [{ new_source_percent: 0.01 }, 9, false],
      [{ new_source_percent: 0.01, new_source_messages: 5 }, 9, true],
    ] as const) {
      const { world, number } = await settled({ alertThresholds: thresholds });
      world.report(number, world.today, MAILER, { messages, authenticated: messages });
      await world.passes.run();
      expect([thresholds, messages, world.raised().length > 0]).toEqual([thresholds, messages, isNews]);
    }
  });

  test("is none in the first week, in imported history, or where the user spoke already", async () => {
    const world = newWorld();
    const { number } = world.add("young.example");
    world.report(number, world.today - 6, OWN, { messages: MANY, aligned: MANY });
    world.report(number, world.today, MAILER, { messages: 4_000, authenticated: 4_000 });
    world.reverse("198.51.100.1", null);
    await world.passes.run();
    expect(world.raised()).toEqual([]);

    const old = await settled();
    old.world.report(old.number, old.world.today - 8, MAILER, { messages: 400, authenticated: 400 });
    old.world.report(old.number, old.world.today, ofEnvelope("198.51.100.2", "said.example"), {
      messages: 400,
      authenticated: 400,
    });
    old.world.db.transact((tx) =>
      old.world.reading.setUserClassification(tx, old.number, {
        key: "org:said.example",
        classification: "authorized",
        atMs: 1,
      }),
    );
    await old.world.passes.run();
    expect(old.world.raised()).toEqual([]);
  });

  test("waits for the reverse names of its addresses, an hour at most, without a new report", async () => {
    const { world, number } = await settled();
    const sends = { messages: 400, aligned: 400 };
    world.report(number, world.today, "203.0.113.7 example.com/hs1 example.com -", sends);
    await world.passes.run();
    expect([world.raised(), world.find(number).isUnreviewed]).toEqual([[], true]);
    world.reverse("203.0.113.7", "a1.hubspotemail.net");
    await world.passes.run();
    expect(world.raised()).toEqual(["new_source service:hubspot"]);
    world.report(number, world.today, ofEnvelope("203.0.113.9", "mailer.example.net"), {
      messages: 400,
      authenticated: 400,
    });
    await world.passes.run();
    expect(world.raised()).toHaveLength(1);
    await world.clock.advance(HOUR_MS);
    await world.passes.run();
    expect(world.raised().slice(1)).toEqual(["new_source org:example.net"]);
  });

  test("is none where another address of it was seen before", async () => {
    const { world, number } = await settled();
    world.report(number, world.today, MAILER, { messages: 400, authenticated: 400 });
    await world.passes.run();
    await world.clock.advance(25 * HOUR_MS);
    world.report(number, world.today, ofEnvelope("198.51.100.2", "mail2.example.net"), {
      messages: 400,
      authenticated: 400,
    });
    await world.passes.run();
    expect(world.raised()).toEqual(["new_source org:example.net"]);
  });

  test("is news when an address that only forged before authenticates", async () => {
    const { world, number } = await settled();
    world.report(number, world.today - 3, "198.51.100.4 -/- - -", { messages: 4_000 });
    await world.passes.run();
    world.report(number, world.today, ofEnvelope("198.51.100.4", "forger.example"), {
      messages: 400,
      authenticated: 400,
    });
    await world.passes.run();
    expect(world.raised()).toContain("new_source org:forger.example");
  });

  test("that only untrusted reports name is no news where trusted ones come", async () => {
    const { world, number } = await settled();
    world.report(number, world.today, MAILER, { messages: 400, authenticated: 400 });
    world.db.sqlite.run("UPDATE dmarc_daily SET is_trusted = 0 WHERE messages = 400");
    await world.passes.run();
    expect(world.raised()).toEqual([]);
    world.db.sqlite.run("UPDATE dmarc_daily_reporters SET is_trusted = 0");
    world.arrive(number);
    await world.passes.run();
    expect(world.raised()).toEqual(["new_source org:example.net"]);
  });

  test("is news although an untrusted report about an earlier day named it first", async () => {
    const { world, number } = await settled();
    const key = "198.51.100.2 example.com/hs1 example.com -";
    world.reverse("198.51.100.2", "a1.hubspotemail.net");
    world.report(number, world.today - 20, key, { messages: 40, aligned: 40 });
    world.db.sqlite.run("UPDATE dmarc_daily SET is_trusted = 0 WHERE messages = 40");
    world.db.sqlite.run("UPDATE dmarc_sources SET is_vouched = 0 WHERE key = ?", [key]);
    await world.passes.run();
    world.report(number, world.today, key.replace("100.2", "100.3"), { messages: 5, aligned: 5 });
    world.reverse("198.51.100.3", "a2.hubspotemail.net");
    await world.passes.run();
    expect(world.raised()).toEqual(["new_source service:hubspot"]);
  });

  test("whose mail becomes aligned is news, when what it sent before was too little to be alerted", async () => {
    for (const [before, alerts] of [
      [9, ["new_source service:hubspot"]],
      [400, []],
    ] as const) {
      const world = newWorld();
      const { number } = world.add("example.com");
      world.reverse("192.0.2.1", "mail.example.com");
      world.reverse("198.51.100.2", "a1.hubspotemail.net");
      for (let day = world.today - 14; day <= world.today; day++)
        world.report(number, day, OWN, { messages: MANY, aligned: MANY });
      world.report(number, world.today - 12, ofEnvelope("198.51.100.2", "hubspotemail.net"), {
        messages: before,
        authenticated: before,
      });
      await world.passes.run();
      expect(world.raised()).toEqual([]);
      world.report(number, world.today, "198.51.100.2 example.com/hs1 example.com -", { messages: 50, aligned: 50 });
      await world.passes.run();
      expect(world.raised()).toEqual([...alerts]);
    }
  });

  test("that only untrusted reports name is news where trusted ones came on two days alone", async () => {
    const { world, number } = await settled();
    world.db.sqlite.run("UPDATE dmarc_daily_reporters SET is_trusted = 0 WHERE day < ?", [world.today - 1]);
    world.report(number, world.today, MAILER, { messages: 400, authenticated: 400 });
    world.db.sqlite.run("UPDATE dmarc_daily SET is_trusted = 0 WHERE messages = 400");
    await world.passes.run();
    expect(world.raised()).toEqual(["new_source org:example.net"]);
  });

  test.each([
    [10, 10],
    [11, 1],
    [23, 1],
  ])("among %p makes %p alerts", async (count, alerts) => {
    const { world, number } = await settled();
    for (let n = 0; n < count; n++)
      world.report(number, world.today, ofEnvelope(`198.51.100.${n}`, `m${n}.example`), {
        messages: 400,
        authenticated: 400,
      });
    await world.passes.run();
    const told = world.events().filter(({ type }) => type === "dmarc.new_source");
    expect(told).toHaveLength(alerts);
    expect(told[0]?.data.count).toBe(count > 10 ? count : 1);
    expectDocumented(world);
  });

  test("is remembered although its rule is off", async () => {
    const { world, number } = await settled({ alerts: { new_source: false } });
    world.report(number, world.today, MAILER, { messages: 400, authenticated: 400 });
    await world.passes.run();
    world.db.transact((tx) => world.domains.update(tx, number, { alerts: {}, isUnreviewed: true }));
    await world.passes.run();
    expect(world.raised()).toEqual([]);
  });
});

describe("a spoofing campaign", () => {
  const forge = (world: DmarcAlertWorld, number: number, day: number, messages: number): void => {
    for (let n = 1; n <= 4; n++)
      world.report(number, day, `198.51.10${n}.${day % 200} -/- - -`, { messages: messages / 4 });
    for (let n = 1; n <= 4; n++) world.reverse(`198.51.10${n}.${day % 200}`, null);
  };

  test("is alerted once, however long it goes on, and again when another one comes", async () => {
    const { world, number } = await settled();
    const alerted: string[] = [];
    for (let n = 0; n < 80; n++) {
      const day = world.today + n;
      world.report(number, day, OWN, { messages: MANY, aligned: MANY });
      if (n < 45 || n >= 70) forge(world, number, day, 400);
      await world.passes.run();
      alerted.push(
        ...world
          .raised()
          .slice(alerted.length)
          .map((what) => `${n}: ${what}`),
      );
      await world.clock.advance(24 * HOUR_MS);
    }
    expect(alerted.map((text) => text.split(" ").slice(0, 2).join(" "))).toEqual([
      "0: spoofing_campaign",
      "70: spoofing_campaign",
    ]);
    expect(world.events()[0]?.data).toMatchObject({ messages: 400, networks: 4 });
    expectDocumented(world);
  });

  test("is none when it was over a week ago, or while the domain is learnt", async () => {
    const old = await settled();
    for (let n = 15; n < 22; n++) old.world.report(old.number, old.world.today - n, OWN, { messages: 1, aligned: 1 });
    forge(old.world, old.number, old.world.today - 8, 400);
    forge(old.world, old.number, old.world.today, 96);
    forge(old.world, old.number, old.world.today - 1, 96);
    await old.world.passes.run();
    expect(old.world.raised()).toEqual([]);

    const world = newWorld();
    const { number } = world.add("young.example");
    world.reverse("192.0.2.1", "mail.young.example");
    for (let day = world.today - 3; day <= world.today; day++) world.report(number, day, OWN, { messages: MANY });
    forge(world, number, world.today, 400);
    await world.passes.run();
    expect(world.raised()).toEqual([]);
  });

  test("is alerted although a clock that was ahead raised one in the future", async () => {
    const { world, number } = await settled();
    forge(world, number, world.today, 400);
    await world.passes.run();
    world.db.sqlite.run("UPDATE dmarc_alerts SET at_ms = at_ms + 86400000000");
    world.arrive(number);
    await world.passes.run();
    expect(world.raised().map((what) => what.split(" ")[0])).toEqual(["spoofing_campaign", "spoofing_campaign"]);
  });

  test("is none with few messages a day", async () => {
    const { world, number } = await settled();
    for (let n = 0; n < 7; n++) forge(world, number, world.today - n, 96);
    await world.passes.run();
    expect(world.raised()).toEqual([]);
  });
});
