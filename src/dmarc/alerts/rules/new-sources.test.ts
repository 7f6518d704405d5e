import { describe, expect, test } from "bun:test";
import {
  createDmarcAlertHarness,
  type DmarcAlertHarness,
  expectDocumented,
  enrolSettled,
} from "../../../testing/dmarc-alert-harness.ts";

const newHarness = createDmarcAlertHarness();
const HOUR_MS = 60 * 60_000;
const OWN = "192.0.2.1 example.com/mail example.com -";
const MANY = 2_000;

/** The stored key of an address that passes SPF for a domain of its own. */
const ofEnvelope = (ip: string, envelope: string) => `${ip} -/- ${envelope} -`;
const MAILER = ofEnvelope("198.51.100.1", "mailer.example.net");

/** A settled domain, with the reverse names of some addresses looked up: none has one. */
const settled = async (more: Parameters<typeof enrolSettled>[1] = {}) => {
  const { harness, number } = await enrolSettled(newHarness(), more);
  for (let n = 0; n < 30; n++) harness.reverse(`198.51.100.${n}`, null);
  return { harness, number };
};

describe("a new source", () => {
  test("is alerted once, with what it sent, and as documented", async () => {
    const { harness, number } = await settled();
    harness.report(number, harness.today, MAILER, { messages: 400, authenticated: 400 });
    await harness.job.run();
    await harness.job.run();
    harness.report(number, harness.today, MAILER, { messages: 4_000, authenticated: 4_000 });
    await harness.job.run();
    expect(harness.raised().filter((what) => what.startsWith("new_source"))).toEqual(["new_source org:example.net"]);
    expect(harness.events()[0]).toMatchObject({
      type: "dmarc.new_source",
      data: { domain: "example.com", count: 1, sources: [{ key: "org:example.net", messages: 400, aligned: 0 }] },
    });
    expectDocumented(harness);
    expect(harness.find(number).isUnreviewed).toBe(false);
  });

  test("whose mail is aligned is alerted with few messages, although it signs as others do", async () => {
    const { harness, number } = await settled();
    harness.report(number, harness.today, "198.51.100.2 example.com/hs1 example.com -", { messages: 4, aligned: 4 });
    harness.reverse("198.51.100.2", "a1.hubspotemail.net");
    await harness.job.run();
    expect(harness.raised()).toEqual([]);
    harness.report(number, harness.today, "198.51.100.2 example.com/hs1 example.com -", { messages: 1, aligned: 1 });
    await harness.job.run();
    expect(harness.raised()).toEqual(["new_source service:hubspot"]);
    expect(JSON.stringify(harness.events()[0]?.data)).toContain("hs1");
  });

  test.each<[string, string, string | null, number]>([
    ["without any proof and without a name", "198.51.100.3 -/- - -", null, 0],
    ["without any proof on a line to the home", "198.51.100.3 -/- - -", "dyn-198-51-100-3.isp.example", 0],
    ["without any proof from a server with a name", "198.51.100.3 -/- - -", "mail.stranger.example", 0],
    ["that forwards", "198.51.100.3 -/- lists.example.net -", null, 4_000],
    ["that no address is known of", "* -/- - -", null, 0],
  ])("%s is not alerted, however much it sends", async (_, key, name, forwarded) => {
    const { harness, number } = await settled();
    harness.report(number, harness.today, key, { messages: 4_000, forwarded });
    harness.reverse("198.51.100.3", name);
    await harness.job.run();
    expect(harness.raised().filter((what) => what.startsWith("new_source"))).toEqual([]);
  });

  test("of a known service, and one in a network of the domain's own servers, is alerted without any authentication", async () => {
    const { harness, number } = await settled();
    harness.report(number, harness.today, "198.51.100.3 -/- - -", { messages: 400 });
    harness.reverse("198.51.100.3", "o1.sendgrid.net");
    harness.report(number, harness.today, "192.0.2.9 -/- - -", { messages: 400 });
    harness.reverse("192.0.2.9", null);
    await harness.job.run();
    const raised = harness.raised().filter((what) => what.startsWith("new_source"));
    expect(raised.toSorted()).toEqual(["new_source net:192.0.2.0/24", "new_source service:sendgrid"]);
    harness.report(number, harness.today, "198.51.100.3 -/- - -", { messages: 400 });
    await harness.job.run();
    expect(harness.raised().filter((what) => what.startsWith("new_source"))).toHaveLength(2);
  });

  test("that forwards is not alerted, whatever it authenticates", async () => {
    const { harness, number } = await settled();
    const key = ofEnvelope("198.51.100.3", "lists.example.net");
    harness.report(number, harness.today, key, { messages: 4_000, authenticated: 3_000, forwarded: 3_000 });
    await harness.job.run();
    expect(harness.raised()).toEqual([]);
  });

  test("has its share of the domain's mail without what is forged", async () => {
    const { harness, number } = await settled();
    for (let n = 10; n < 20; n++) harness.report(number, harness.today, `198.51.100.${n} -/- - -`, { messages: 9_000 });
    harness.report(number, harness.today, MAILER, { messages: 400, authenticated: 400 });
    await harness.job.run();
    expect(harness.raised()).toContain("new_source org:example.net");
  });

  test("with little mail waits until it has a number of messages and a share, as the domain's thresholds say", async () => {
    for (const [thresholds, messages, isNews] of [
      [{}, 20, false],
      [{ new_source_percent: 0.01 }, 20, true],
      [{ new_source_percent: 0.01 }, 9, false],
      [{ new_source_percent: 0.01, new_source_messages: 5 }, 9, true],
    ] as const) {
      const { harness, number } = await settled({ alertThresholds: thresholds });
      harness.report(number, harness.today, MAILER, { messages, authenticated: messages });
      await harness.job.run();
      expect([thresholds, messages, harness.raised().length > 0]).toEqual([thresholds, messages, isNews]);
    }
  });

  test("is not alerted in the first week, in imported history, or when the user classified it", async () => {
    const harness = newHarness();
    const { number } = harness.add("young.example");
    harness.report(number, harness.today - 6, OWN, { messages: MANY, aligned: MANY });
    harness.report(number, harness.today, MAILER, { messages: 4_000, authenticated: 4_000 });
    harness.reverse("198.51.100.1", null);
    await harness.job.run();
    expect(harness.raised()).toEqual([]);

    const old = await settled();
    old.harness.report(old.number, old.harness.today - 8, MAILER, { messages: 400, authenticated: 400 });
    old.harness.report(old.number, old.harness.today, ofEnvelope("198.51.100.2", "said.example"), {
      messages: 400,
      authenticated: 400,
    });
    old.harness.db.transact((tx) =>
      old.harness.reading.setUserClassification(tx, old.number, {
        key: "org:said.example",
        classification: "authorized",
        atMs: 1,
        note: null,
      }),
    );
    await old.harness.job.run();
    expect(old.harness.raised()).toEqual([]);
  });

  test("waits for the reverse names of its addresses, an hour at most, without a new report", async () => {
    const { harness, number } = await settled();
    const sends = { messages: 400, aligned: 400 };
    harness.report(number, harness.today, "203.0.113.7 example.com/hs1 example.com -", sends);
    await harness.job.run();
    expect([harness.raised(), harness.find(number).isUnreviewed]).toEqual([[], true]);
    harness.reverse("203.0.113.7", "a1.hubspotemail.net");
    await harness.job.run();
    expect(harness.raised()).toEqual(["new_source service:hubspot"]);
    harness.report(number, harness.today, ofEnvelope("203.0.113.9", "mailer.example.net"), {
      messages: 400,
      authenticated: 400,
    });
    await harness.job.run();
    expect(harness.raised()).toHaveLength(1);
    await harness.clock.advance(HOUR_MS);
    await harness.job.run();
    expect(harness.raised().slice(1)).toEqual(["new_source org:example.net"]);
  });

  test("is none where another address of it was seen before", async () => {
    const { harness, number } = await settled();
    harness.report(number, harness.today, MAILER, { messages: 400, authenticated: 400 });
    await harness.job.run();
    await harness.clock.advance(25 * HOUR_MS);
    harness.report(number, harness.today, ofEnvelope("198.51.100.2", "mail2.example.net"), {
      messages: 400,
      authenticated: 400,
    });
    await harness.job.run();
    expect(harness.raised()).toEqual(["new_source org:example.net"]);
  });

  test("is alerted when an address that only spoofed before authenticates", async () => {
    const { harness, number } = await settled();
    harness.report(number, harness.today - 3, "198.51.100.4 -/- - -", { messages: 4_000 });
    await harness.job.run();
    harness.report(number, harness.today, ofEnvelope("198.51.100.4", "forger.example"), {
      messages: 400,
      authenticated: 400,
    });
    await harness.job.run();
    expect(harness.raised()).toContain("new_source org:forger.example");
  });

  test("that only untrusted reports name is not alerted where trusted ones arrive", async () => {
    const { harness, number } = await settled();
    harness.report(number, harness.today, MAILER, { messages: 400, authenticated: 400 });
    harness.db.sqlite.run("UPDATE dmarc_daily SET is_trusted = 0 WHERE messages = 400");
    await harness.job.run();
    expect(harness.raised()).toEqual([]);
    harness.db.sqlite.run("UPDATE dmarc_daily_reporters SET is_trusted = 0");
    harness.arrive(number);
    await harness.job.run();
    expect(harness.raised()).toEqual(["new_source org:example.net"]);
  });

  test("is alerted although an untrusted report about an earlier day named it first", async () => {
    const { harness, number } = await settled();
    const key = "198.51.100.2 example.com/hs1 example.com -";
    harness.reverse("198.51.100.2", "a1.hubspotemail.net");
    harness.report(number, harness.today - 20, key, { messages: 40, aligned: 40 });
    harness.db.sqlite.run("UPDATE dmarc_daily SET is_trusted = 0 WHERE messages = 40");
    harness.db.sqlite.run("UPDATE dmarc_sources SET is_vouched = 0 WHERE key = ?", [key]);
    await harness.job.run();
    harness.report(number, harness.today, key.replace("100.2", "100.3"), { messages: 5, aligned: 5 });
    harness.reverse("198.51.100.3", "a2.hubspotemail.net");
    await harness.job.run();
    expect(harness.raised()).toEqual(["new_source service:hubspot"]);
  });

  test("whose mail becomes aligned is alerted, if it sent too little before to be alerted", async () => {
    for (const [before, alerts] of [
      [9, ["new_source service:hubspot"]],
      [400, []],
    ] as const) {
      const harness = newHarness();
      const { number } = harness.add("example.com");
      harness.reverse("192.0.2.1", "mail.example.com");
      harness.reverse("198.51.100.2", "a1.hubspotemail.net");
      for (let day = harness.today - 14; day <= harness.today; day++)
        harness.report(number, day, OWN, { messages: MANY, aligned: MANY });
      harness.report(number, harness.today - 12, ofEnvelope("198.51.100.2", "hubspotemail.net"), {
        messages: before,
        authenticated: before,
      });
      await harness.job.run();
      expect(harness.raised()).toEqual([]);
      harness.report(number, harness.today, "198.51.100.2 example.com/hs1 example.com -", {
        messages: 50,
        aligned: 50,
      });
      await harness.job.run();
      expect(harness.raised()).toEqual([...alerts]);
    }
  });

  test("that only untrusted reports name is alerted where trusted ones arrived on only two days", async () => {
    const { harness, number } = await settled();
    harness.db.sqlite.run("UPDATE dmarc_daily_reporters SET is_trusted = 0 WHERE day < ?", [harness.today - 1]);
    harness.report(number, harness.today, MAILER, { messages: 400, authenticated: 400 });
    harness.db.sqlite.run("UPDATE dmarc_daily SET is_trusted = 0 WHERE messages = 400");
    await harness.job.run();
    expect(harness.raised()).toEqual(["new_source org:example.net"]);
  });

  test.each([
    [10, 10],
    [11, 1],
    [23, 1],
  ])("among %p makes %p alerts", async (count, alerts) => {
    const { harness, number } = await settled();
    for (let n = 0; n < count; n++)
      harness.report(number, harness.today, ofEnvelope(`198.51.100.${n}`, `m${n}.example`), {
        messages: 400,
        authenticated: 400,
      });
    await harness.job.run();
    const told = harness.events().filter(({ type }) => type === "dmarc.new_source");
    expect(told).toHaveLength(alerts);
    expect(told[0]?.data.count).toBe(count > 10 ? count : 1);
    expectDocumented(harness);
  });

  test("is marked as reviewed although its rule is off", async () => {
    const { harness, number } = await settled({ alerts: { new_source: false } });
    harness.report(number, harness.today, MAILER, { messages: 400, authenticated: 400 });
    await harness.job.run();
    harness.db.transact((tx) => harness.domains.update(tx, number, { alerts: {}, isUnreviewed: true }));
    await harness.job.run();
    expect(harness.raised()).toEqual([]);
  });
});

describe("a spoofing campaign", () => {
  const forge = (harness: DmarcAlertHarness, number: number, day: number, messages: number): void => {
    for (let n = 1; n <= 4; n++)
      harness.report(number, day, `198.51.10${n}.${day % 200} -/- - -`, { messages: messages / 4 });
    for (let n = 1; n <= 4; n++) harness.reverse(`198.51.10${n}.${day % 200}`, null);
  };

  test("is alerted once, however long it lasts, and again when another one begins", async () => {
    const { harness, number } = await settled();
    const alerted: string[] = [];
    for (let n = 0; n < 80; n++) {
      const day = harness.today + n;
      harness.report(number, day, OWN, { messages: MANY, aligned: MANY });
      if (n < 45 || n >= 70) forge(harness, number, day, 400);
      await harness.job.run();
      alerted.push(
        ...harness
          .raised()
          .slice(alerted.length)
          .map((what) => `${n}: ${what}`),
      );
      await harness.clock.advance(24 * HOUR_MS);
    }
    expect(alerted.map((text) => text.split(" ").slice(0, 2).join(" "))).toEqual([
      "0: spoofing_campaign",
      "70: spoofing_campaign",
    ]);
    expect(harness.events()[0]?.data).toMatchObject({ messages: 400, networks: 4 });
    expectDocumented(harness);
  });

  test("is not alerted when it ended over a week ago, or while the domain is learned", async () => {
    const old = await settled();
    for (let n = 15; n < 22; n++)
      old.harness.report(old.number, old.harness.today - n, OWN, { messages: 1, aligned: 1 });
    forge(old.harness, old.number, old.harness.today - 8, 400);
    forge(old.harness, old.number, old.harness.today, 96);
    forge(old.harness, old.number, old.harness.today - 1, 96);
    await old.harness.job.run();
    expect(old.harness.raised()).toEqual([]);

    const harness = newHarness();
    const { number } = harness.add("young.example");
    harness.reverse("192.0.2.1", "mail.young.example");
    for (let day = harness.today - 3; day <= harness.today; day++) harness.report(number, day, OWN, { messages: MANY });
    forge(harness, number, harness.today, 400);
    await harness.job.run();
    expect(harness.raised()).toEqual([]);
  });

  test("is alerted although a clock that was ahead raised one in the future", async () => {
    const { harness, number } = await settled();
    forge(harness, number, harness.today, 400);
    await harness.job.run();
    harness.db.sqlite.run("UPDATE dmarc_alerts SET at_ms = at_ms + 86400000000");
    harness.arrive(number);
    await harness.job.run();
    expect(harness.raised().map((what) => what.split(" ")[0])).toEqual(["spoofing_campaign", "spoofing_campaign"]);
  });

  test("is none with few messages a day", async () => {
    const { harness, number } = await settled();
    for (let n = 0; n < 7; n++) forge(harness, number, harness.today - n, 96);
    await harness.job.run();
    expect(harness.raised()).toEqual([]);
  });
});

describe("a stranger at several domains of an account", () => {
  const STRANGER = ofEnvelope("198.51.100.1", "mailer.example.net");
  type Second = Parameters<DmarcAlertHarness["add"]>[1];

  /** The same new sender at a settled domain, and then at another one. */
  const atBoth = async (more: Second = {}, key = STRANGER) => {
    const { harness, number } = await settled();
    const { number: second } = harness.add("example.org", more);
    harness.reverse("192.0.2.2", "mail.example.org");
    for (let day = harness.today - 14; day <= harness.today; day++)
      harness.report(second, day, "192.0.2.2 example.org/mail example.org -", { messages: MANY, aligned: MANY });
    await harness.job.run();
    for (const domain of [number, second]) {
      harness.report(domain, harness.today, key, { messages: 400, authenticated: 400 });
      await harness.job.run();
    }
    const raised = harness.raised().filter((what) => what.startsWith("new_source"));
    return { harness, raised };
  };

  test("is one alert, which names the other domain", async () => {
    const { harness, raised } = await atBoth();
    expect(raised).toEqual(["new_source org:example.net"]);
    const bodies = harness.db.sqlite.query<{ body: string }, []>("SELECT body FROM dmarc_alerts").all();
    expect(bodies.map(({ body }) => JSON.parse(body).data)).toMatchObject([
      { count: 1, sources: [{ key: "org:example.net" }], other_domains: ["example.org"] },
    ]);
  });

  test.each<[string, Second, string]>([
    ["of another account", { accountId: "other" }, STRANGER],
    ["with other recipients", { recipients: ["it@client.example"] }, STRANGER],
    ["with another webhook", { webhookUrl: "https://client.example/hook" }, STRANGER],
    ["of a service that sends for customers", {}, ofEnvelope("198.51.100.1", "ab.d.mailin.fr")],
  ])("%s raises an alert of its own", async (_, more, key) => {
    expect((await atBoth(more, key)).raised).toHaveLength(2);
  });
});
