import { describe, expect, test } from "bun:test";
import { createTestClock } from "../../testing/clock.ts";
import { type ZoneFailure, type ZoneRecords, createZoneResolver } from "../../testing/dns-zone.ts";
import type { Blocklist } from "./blocklist.ts";
import { createDnsblPacing, noPacing } from "./list-client.ts";
import { readEmbeddedCatalogue } from "./catalogue.ts";
import { createDnsbl } from "./open.ts";
import type { Target } from "./query-name.ts";

const { lists } = readEmbeddedCatalogue();
const listOf = (id: string): Blocklist => {
  const list = lists.find((candidate) => candidate.id === id);
  if (!list) throw new Error(`no list ${id}`);
  return list;
};
type MutableZone = Record<string, ZoneRecords | ZoneFailure>;

const HEALTHY: MutableZone = {
  "2.0.0.127.bl.spamcop.net": { A: ["127.0.0.2"] },
  "2.0.0.127.zen.spamhaus.org": { A: ["127.0.0.2", "127.0.0.4", "127.0.0.10"] },
  "2.0.0.127.secret.zen.dq.spamhaus.net": { A: ["127.0.0.2"] },
  "2.0.0.127.dnsbl.spfbl.net": { A: ["127.0.0.2"] },
  "test.uribl.com.multi.uribl.com": { A: ["127.0.0.14"] },
};
const IP: Target = { kind: "ipv4", value: "192.0.2.99" };
const NAME = "99.2.0.192.bl.spamcop.net";
const spamcop = listOf("spamcop");
const MINUTE_MS = 60_000;

const start = (zone: MutableZone = {}) => {
  const clock = createTestClock();
  const whole: MutableZone = { ...HEALTHY, ...zone };
  const resolver = createZoneResolver(whole);
  const registrableDomain = (domain: string) => domain.split(".").slice(-2).join(".");
  const { lookup, health } = createDnsbl({
    resolver,
    clock,
    random: { integer: () => 0 },
    registrableDomain,
    pacing: noPacing,
  });
  return { clock, zone: whole, resolver, lookup, health };
};

describe("a check", () => {
  test("of a listed address returns the listing, the return codes and the text of the list", async () => {
    const { lookup, clock } = start({ [NAME]: { A: ["127.0.0.2"], TXT: ["Blocked - see\nhttps://example.org"] } });
    expect(await lookup.check(IP, spamcop)).toEqual({
      list: "spamcop",
      outcome: "listed",
      listings: [
        {
          id: "spamcop",
          name: "SpamCop SCBL",
          category: "spam",
          severity: "high",
          meanings: spamcop.codes.map(({ meaning }) => meaning),
          returnCodes: ["127.0.0.2"],
        },
      ],
      returnCodes: ["127.0.0.2"],
      text: "Blocked - see https://example.org",
      queryNames: [NAME],
      reason: null,
      remedy: null,
      checkedAtMs: clock.nowMs(),
      retryAtMs: null,
    });
  });

  test("of an address that is not listed sends no TXT query", async () => {
    const { lookup, resolver } = start();
    expect(await lookup.check(IP, spamcop)).toMatchObject({
      outcome: "not_listed",
      listings: [],
      text: null,
      reason: null,
    });
    expect(resolver.countQueries(NAME, "TXT")).toBe(0);
  });

  test("needs no text: a listing without one is a listing", async () => {
    const { lookup } = start({ [NAME]: { A: ["127.0.0.2"], TXT: "timeout" } });
    expect(await lookup.check(IP, spamcop)).toMatchObject({ outcome: "listed", text: null });
  });

  test("limits the length of the text", async () => {
    const { lookup } = start({ [NAME]: { A: ["127.0.0.2"], TXT: ["x".repeat(9000), "y"] } });
    expect((await lookup.check(IP, spamcop)).text?.length).toBe(500);
  });

  test.each<[claim: string, records: ZoneRecords | ZoneFailure, outcome: string, reason: string]>([
    ["a timeout", "timeout", "failed", "timed out"],
    ["SERVFAIL", "servfail", "failed", "SERVFAIL"],
    ["an undocumented answer", { A: ["127.0.0.77"] }, "failed", "127.0.0.77"],
    ["an answer outside 127/8", { A: ["203.0.113.1"] }, "failed", "203.0.113.1"],
    ["a refusal", { A: ["127.255.255.255"] }, "refused", "error code"],
    ["a refusal beside a listing", { A: ["127.0.0.2", "127.255.255.255"] }, "refused", "error code"],
  ])("does not take %s for a result, and keeps the return codes", async (_, records, outcome, reason) => {
    const { lookup } = start({ [NAME]: records });
    const result = await lookup.check(IP, spamcop);
    expect(result.outcome).toBe(outcome as typeof result.outcome);
    expect(result.reason ?? "").toContain(reason);
    expect(result.returnCodes).toEqual(typeof records === "string" ? [] : (records.A as string[]));
  });

  test("skips a list that does not apply, without a query", async () => {
    const { lookup, resolver } = start();
    expect((await lookup.check({ kind: "ipv6", value: "2001:db8::1" }, spamcop)).outcome).toBe("skipped");
    expect((await lookup.check(IP, listOf("spamhaus-authbl"))).reason).toContain("key");
    expect(resolver.queries).toEqual([]);
  });

  test("queries a host and its registrable domain where the list may contain either", async () => {
    const { lookup } = start({ "example.org.dnsbl.spfbl.net": { A: ["127.0.0.2"], TXT: ["bad"] } });
    const target: Target = { kind: "domain", value: "mail.example.org" };
    expect(await lookup.check(target, listOf("spfbl"))).toMatchObject({
      outcome: "listed",
      queryNames: ["mail.example.org.dnsbl.spfbl.net", "example.org.dnsbl.spfbl.net"],
      text: "bad",
    });
  });

  test("with one name not listed and the other unknown is unknown", async () => {
    const { lookup } = start({ "example.org.dnsbl.spfbl.net": "timeout" });
    const result = await lookup.check({ kind: "domain", value: "mail.example.org" }, listOf("spfbl"));
    expect(result.outcome).toBe("failed");
  });

  test("with one name listed and the other outside 127.0.0.0/8 fails", async () => {
    const { lookup } = start({
      "mail.example.org.dnsbl.spfbl.net": { A: ["127.0.0.2"] },
      "example.org.dnsbl.spfbl.net": { A: ["203.0.113.1"] },
    });
    const result = await lookup.check({ kind: "domain", value: "mail.example.org" }, listOf("spfbl"));
    expect(result).toMatchObject({ outcome: "failed", returnCodes: ["127.0.0.2", "203.0.113.1"] });
  });

  test("returns several listings of one response", async () => {
    const { lookup } = start({ "example.org.multi.uribl.com": { A: ["127.0.0.6"] } });
    const { listings } = await lookup.check({ kind: "domain", value: "a.example.org" }, listOf("uribl-multi"));
    expect(listings.map(({ id }) => id)).toEqual(["uribl-black", "uribl-grey"]);
  });

  test("shows a key nowhere", async () => {
    const list = { ...listOf("spamhaus-zen"), key: "secret" };
    const name = "99.2.0.192.secret.zen.dq.spamhaus.net";
    const { lookup, resolver } = start({ [name]: { A: ["127.0.0.2"], TXT: [`see ${name.toUpperCase()}`] } });
    const result = await lookup.check(IP, list);
    expect(resolver.countQueries(name, "A")).toBe(1);
    expect(result).toMatchObject({ outcome: "listed", queryNames: ["99.2.0.192.{key}.zen.dq.spamhaus.net"] });
    expect(JSON.stringify(result).toLowerCase()).not.toContain("secret");
  });
});

describe("an unreliable list", () => {
  test.each<[claim: string, zone: MutableZone, outcome: string]>([
    ["is silent", { "2.0.0.127.bl.spamcop.net": "nxdomain" }, "failed"],
    ["lists everything", { "1.0.0.127.bl.spamcop.net": { A: ["127.0.0.2"] } }, "failed"],
    ["is unreachable", { "2.0.0.127.bl.spamcop.net": "timeout" }, "failed"],
    ["refuses", { "2.0.0.127.bl.spamcop.net": { A: ["127.255.255.254"] } }, "refused"],
  ])("because it %s, is not queried", async (_, zone, outcome) => {
    const { lookup, resolver } = start({ [NAME]: { A: ["127.0.0.2"] }, ...zone });
    const result = await lookup.check(IP, spamcop);
    expect(result.outcome).toBe(outcome as typeof result.outcome);
    expect(result.reason).toEqual(expect.any(String));
    expect(resolver.countQueries(NAME, "A")).toBe(0);
  });

  test("without test points can list but not clear a target", async () => {
    const { lookup } = start({ "98.2.0.192.rbl.efnetrbl.org": { A: ["127.0.0.1"] } });
    const efnet = listOf("efnetrbl");
    expect(await lookup.check(IP, efnet)).toMatchObject({
      outcome: "unproven",
      reason: expect.stringContaining("no test point"),
    });
    expect((await lookup.check({ kind: "ipv4", value: "192.0.2.98" }, efnet)).outcome).toBe("listed");
  });

  test("that refused one query is tested again soon", async () => {
    const { lookup, resolver, clock } = start({ [NAME]: { A: ["127.255.255.255"] } });
    await lookup.check(IP, spamcop);
    await clock.advance(5 * MINUTE_MS);
    await lookup.check({ kind: "ipv4", value: "192.0.2.1" }, spamcop);
    expect(resolver.countQueries("2.0.0.127.bl.spamcop.net", "A")).toBe(2);
  });

  test("is unhealthy after the first response outside 127.0.0.0/8", async () => {
    const { lookup, health } = start({ [NAME]: { A: ["91.195.240.117"] } });
    await lookup.check(IP, spamcop);
    expect(health.of(spamcop, "ipv4").state).toBe("wildcard");
    expect((await lookup.check({ kind: "ipv4", value: "192.0.2.1" }, spamcop)).outcome).toBe("failed");
  });
});

describe("a check of many lists", () => {
  test("returns one outcome per list, in their order", async () => {
    const { lookup } = start({ [NAME]: { A: ["127.0.0.2"] } });
    const results = await lookup.checkAll(IP, [listOf("spamhaus-zen"), spamcop, listOf("uribl-multi")]);
    expect(results.map(({ list, outcome }) => `${list} ${outcome}`)).toEqual([
      "spamhaus-zen not_listed",
      "spamcop listed",
      "uribl-multi skipped",
    ]);
  });

  test("queries at most 16 lists at a time, and all of them", async () => {
    const running: string[] = [];
    let most = 0;
    const resolver = createZoneResolver({});
    const counting: typeof resolver = {
      ...resolver,
      async resolve(name, type, options) {
        const zone = name.slice(name.indexOf("list-"));
        running.push(zone);
        most = Math.max(most, new Set(running).size);
        await new Promise<void>((resolve) => setImmediate(resolve));
        running.splice(running.indexOf(zone), 1);
        return resolver.resolve(name, type, options);
      },
    };
    const untestable = Array.from({ length: 40 }, (_, index) => ({
      ...listOf("dan-torexit"),
      id: `list-${index}`,
      zone: `list-${index}.example`,
    }));
    const { lookup } = createDnsbl({
      resolver: counting,
      clock: createTestClock(),
      random: { integer: () => 0 },
      registrableDomain: () => null,
      pacing: noPacing,
    });
    expect(await lookup.checkAll(IP, untestable)).toHaveLength(40);
    expect(most).toBe(16);
  });

  test("keeps to the published pauses by default", async () => {
    const clock = createTestClock();
    const resolver = createZoneResolver({ ...HEALTHY });
    const { lookup } = createDnsbl({ resolver, clock, random: { integer: () => 0 }, registrableDomain: () => null });
    const list = { ...spamcop, budget: { queriesPerDay: null, spacingMs: MINUTE_MS / 10 } };
    const check = lookup.check(IP, list);
    await clock.advance(2 * (MINUTE_MS / 10));
    expect(resolver.queries).toHaveLength(3);
    await clock.advance(30 * (MINUTE_MS / 10));
    expect((await check).outcome).toBe("not_listed");
  });

  test("with an exhausted budget fails, and clears nothing", async () => {
    const clock = createTestClock();
    const pacing = createDnsblPacing({ clock });
    const resolver = createZoneResolver({ ...HEALTHY });
    const deps = { resolver, clock, pacing, random: { integer: () => 0 }, registrableDomain: () => null };
    const list = { ...spamcop, budget: { queriesPerDay: 3, spacingMs: 0 } };
    expect(await createDnsbl(deps).lookup.check(IP, list)).toMatchObject({
      outcome: "failed",
      returnCodes: [],
      reason: expect.stringContaining("daily budget of 3 queries"),
    });
  });
});
