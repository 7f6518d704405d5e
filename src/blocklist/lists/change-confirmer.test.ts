import { describe, expect, test } from "bun:test";
import { createTestClock } from "../../testing/clock.ts";
import { type ZoneFailure, type ZoneRecords, createZoneResolver } from "../../testing/dns-zone.ts";
import type { Blocklist } from "./blocklist.ts";
import { noPacing } from "./list-client.ts";
import { readEmbeddedCatalogue } from "./catalogue.ts";
import { createDnsbl } from "./open.ts";
import type { Target } from "./query-name.ts";

const { lists } = readEmbeddedCatalogue();
const listOf = (id: string): Blocklist => {
  const list = lists.find((candidate) => candidate.id === id);
  if (!list) throw new Error(`no list ${id}`);
  return list;
};
const IP: Target = { kind: "ipv4", value: "192.0.2.99" };
const NAME = "99.2.0.192.bl.spamcop.net";
const spamcop = listOf("spamcop");

const start = (records: Record<string, ZoneRecords | ZoneFailure> = {}) => {
  const zone: typeof records = {
    "2.0.0.127.bl.spamcop.net": { A: ["127.0.0.2"] },
    "2.0.0.127.dnsbl.dronebl.org": { A: ["127.0.0.2"] },
    ...records,
  };
  const resolver = createZoneResolver(zone);
  const deps = { clock: createTestClock(), random: { integer: () => 0 }, registrableDomain: () => null };
  return { zone, resolver, ...createDnsbl({ ...deps, resolver, pacing: noPacing }) };
};

describe("a change", () => {
  test("to listed is confirmed when it is returned twice and the negative test point is not listed", async () => {
    const { lookup, resolver } = start({ [NAME]: { A: ["127.0.0.2"] } });
    expect((await lookup.check(IP, spamcop, { previous: [] })).outcome).toBe("listed");
    expect(resolver.countQueries(NAME, "A")).toBe(2);
    // The list itself was tested once, before the lookup.
    expect(resolver.countQueries("2.0.0.127.bl.spamcop.net", "A")).toBe(1);
  });

  test("to listed is not confirmed when a random address is listed and a larger sample of them, too", async () => {
    const { lookup, zone, health } = start({ [NAME]: { A: ["127.0.0.2"] } });
    await health.ensureFresh(spamcop, "ipv4");
    zone["0.0.0.129.bl.spamcop.net"] = { A: ["127.0.0.2"] };
    expect((await lookup.check(IP, spamcop, { previous: [] })).outcome).toBe("failed");
    expect(health.of(spamcop, "ipv4").state).toBe("wildcard");
  });

  test("of a muted listing needs no confirmation", async () => {
    const { lookup, resolver } = start({ [NAME]: { A: ["127.0.0.2"] } });
    const muted = ["spamcop"];
    expect(await lookup.check(IP, spamcop, { previous: [], muted })).toMatchObject({
      outcome: "listed",
      listings: [{ id: "spamcop" }],
    });
    expect((await lookup.check(IP, spamcop, { previous: ["spamcop"], muted })).outcome).toBe("listed");
    expect(resolver.countQueries(NAME, "A")).toBe(2);
  });

  test("to listed is not confirmed for a list that lists everything, which is then tested again", async () => {
    const { lookup, zone, health } = start({ [NAME]: { A: ["127.0.0.2"] } });
    await health.ensureFresh(spamcop, "ipv4");
    zone["1.0.0.127.bl.spamcop.net"] = { A: ["127.0.0.2"] };
    const result = await lookup.check(IP, spamcop, { previous: [] });
    expect(result).toMatchObject({ outcome: "failed", listings: [], returnCodes: ["127.0.0.2"] });
    expect(result.reason).toContain("it lists everything");
    await lookup.check(IP, spamcop, { previous: [] });
    expect(health.of(spamcop, "ipv4").state).toBe("wildcard");
  });

  test("to listed is compared with a documentation address if the list has no negative test point", async () => {
    const dronebl = listOf("dronebl");
    const { lookup, zone, health } = start({ "99.2.0.192.dnsbl.dronebl.org": { A: ["127.0.0.3"] } });
    await health.ensureFresh(dronebl, "ipv4");
    expect((await lookup.check(IP, dronebl, { previous: [] })).outcome).toBe("listed");
    zone["0.2.0.192.dnsbl.dronebl.org"] = { A: ["127.0.0.3"] };
    expect((await lookup.check(IP, dronebl, { previous: [] })).outcome).toBe("failed");
  });

  test("to not listed is not confirmed for a list that lost its test point", async () => {
    const { lookup, zone, health } = start();
    await health.ensureFresh(spamcop, "ipv4");
    zone["2.0.0.127.bl.spamcop.net"] = "nxdomain";
    const result = await lookup.check(IP, spamcop, { previous: ["spamcop"] });
    expect(result.outcome).toBe("failed");
    expect(result.reason).toContain("its own test point");
  });

  test("to not listed is confirmed when the list has its positive test point", async () => {
    const { lookup } = start();
    expect((await lookup.check(IP, spamcop, { previous: ["spamcop"] })).outcome).toBe("not_listed");
  });

  test("that cannot be confirmed is a failure", async () => {
    const { lookup, zone, health } = start({ [NAME]: { A: ["127.0.0.2"] } });
    await health.ensureFresh(spamcop, "ipv4");
    zone["1.0.0.127.bl.spamcop.net"] = "timeout";
    expect((await lookup.check(IP, spamcop, { previous: [] })).outcome).toBe("failed");
  });

  test("is none for known listings and those of other lists: no second query is sent", async () => {
    const { lookup, resolver } = start({ [NAME]: { A: ["127.0.0.2"] } });
    await lookup.check(IP, spamcop, { previous: ["spamcop", "psbl"] });
    expect(resolver.countQueries(NAME, "A")).toBe(1);
    await lookup.check({ kind: "ipv4", value: "192.0.2.1" }, spamcop, { previous: ["psbl"] });
    expect(resolver.countQueries("1.2.0.192.bl.spamcop.net", "A")).toBe(1);
  });

  test("is dropped when the second response differs", async () => {
    const { resolver, health, zone } = start({ [NAME]: { A: ["127.0.0.2"] } });
    await health.ensureFresh(spamcop, "ipv4");
    const fickle: typeof resolver = {
      ...resolver,
      async resolve(name, type, options) {
        const reply = await resolver.resolve(name, type, options);
        if (name === NAME) zone[NAME] = "nxdomain";
        return reply;
      },
    };
    const deps = { clock: createTestClock(), random: { integer: () => 0 }, registrableDomain: () => null };
    const { lookup } = createDnsbl({ ...deps, resolver: fickle, pacing: noPacing });
    const result = await lookup.check(IP, spamcop, { previous: [] });
    expect(result).toMatchObject({ outcome: "failed", reason: "The list gave two different responses in a row." });
  });
});
