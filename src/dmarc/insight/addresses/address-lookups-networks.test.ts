import { afterEach, describe, expect, test } from "bun:test";
import { asQueryName, originQueryName } from "../../../foundation/net/asn-lookup.ts";
import type { GeoipFacts } from "../../../foundation/net/geoip-files.ts";
import { reverseQueryName } from "../../../foundation/net/dns-name.ts";
import {
  type AddressLookupHarness,
  type AddressLookupSetup,
  startAddressLookups,
} from "../../../testing/address-lookups.ts";
import type { Zone, ZoneFailure } from "../../../testing/dns-zone.ts";
import type { AddressNetwork } from "./address-store.ts";
import { JOB_LIMITS, NETWORK_LIMITS } from "./address-lookups.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const IP = "8.8.8.8";
const NOTHING: AddressNetwork = { asn: null, asName: null, country: null, prefix: null };

const open: AddressLookupHarness[] = [];
afterEach(() => {
  for (const harness of open.splice(0)) harness.close();
});

const start = (zone: Zone, parts: Partial<AddressLookupSetup> = {}) => {
  const harness = startAddressLookups(zone, { ips: [IP], hasAsnLookup: true, ...parts });
  open.push(harness);
  const { db, clock, stored, resolver } = harness;
  return {
    ...harness,
    network(ip: string): AddressNetwork {
      const facts = stored(ip);
      if (facts === undefined) throw new Error(ip);
      const { asn, asName, country, prefix } = facts;
      return { asn, asName, country, prefix };
    },
    /** In how many milliseconds the network is looked up again. */
    dueInMs: (ip = IP): number =>
      (db.sqlite
        .query<{ due: number }, [string]>("SELECT network_due_at_ms due FROM dmarc_reverse_names WHERE ip = ?")
        .get(ip)?.due ?? 0) - clock.nowMs(),
    askedOfNetworks: (): string[] => resolver.queries.filter((question) => question.startsWith("TXT ")),
  };
};

const origin = (ip: string, ...records: string[]): Zone => ({ [originQueryName(ip)]: { TXT: records } });
const as = (asn: number, ...records: string[]): Zone => ({ [asQueryName(asn).toLowerCase()]: { TXT: records } });
const EXAMPLE: Zone = {
  ...origin(IP, "64500 | 8.8.8.0/24 | US | arin | 2000-01-01"),
  ...as(64_500, "64500 | US | arin | 2000-03-30 | EXAMPLE, US"),
};
const KNOWN: AddressNetwork = { asn: 64_500, asName: "EXAMPLE", country: "US", prefix: "8.8.8.0/24" };

describe("by DNS", () => {
  test("the network of an address is found with its name, and kept for a month", async () => {
    const { job, network, dueInMs, stored, clock, askedOfNetworks } = start(EXAMPLE);
    expect(stored(IP)).toMatchObject({ isNetworkKnown: false, isNameKnown: false });
    await job.run();
    expect(network(IP)).toEqual(KNOWN);
    expect(stored(IP)).toMatchObject({ isNetworkKnown: true, isNameKnown: true, name: null });
    expect(dueInMs()).toBe(30 * DAY_MS);
    await job.run();
    await clock.advance(30 * DAY_MS - 1);
    await job.run();
    expect(askedOfNetworks()).toHaveLength(2);
    await clock.advance(1);
    await job.run();
    expect(askedOfNetworks()).toHaveLength(4);
  });

  test("the name of an AS is asked for once for all its addresses, and again after a month", async () => {
    const ips = Array.from({ length: 300 }, (_, n) => `8.8.${n >> 8}.${n & 255}`);
    const zone = Object.assign(
      { ...as(64_500, "64500 | US | arin | | EXAMPLE, US") },
      ...ips.map((ip) => origin(ip, "64500 | 8.8.0.0/16 | US | arin |")),
    );
    const { job, network, resolver, clock, tell } = start(zone, { ips: ips.slice(1) });
    const named = () => resolver.countQueries("as64500.asn.cymru.com", "TXT");
    await job.run();
    expect(named()).toBe(1);
    expect(ips.slice(1).every((ip) => network(ip).asName === "EXAMPLE")).toBe(true);
    tell(ips[0] ?? "");
    await clock.advance(30 * DAY_MS - 1);
    await job.run();
    expect([named(), network(ips[0] ?? "").asName]).toEqual([1, "EXAMPLE"]);
    await clock.advance(1);
    await job.run();
    expect(named()).toBe(2);
  });

  test.each<[string, Zone]>([
    ["the name does not exist", {}],
    ["the name has no TXT record", { [originQueryName(IP)]: "no_data" }],
  ])("no network announces the address when %s; it is looked up again in a week", async (_, zone) => {
    const { job, network, stored, dueInMs } = start(zone);
    await job.run();
    expect(network(IP)).toEqual(NOTHING);
    expect(stored(IP)?.isNetworkKnown).toBe(true);
    expect(dueInMs()).toBe(7 * DAY_MS);
  });

  test("an AS that has no name is asked for it again after a week", async () => {
    const ips = [IP, "8.8.8.9", "8.8.8.10"];
    const zone = Object.assign({}, ...ips.map((ip) => origin(ip, "64500 | 8.8.8.0/24 | US | arin |")));
    const { job, network, resolver, clock, tell } = start(zone);
    const named = () => resolver.countQueries("as64500.asn.cymru.com", "TXT");
    await job.run();
    expect(network(IP)).toEqual({ ...KNOWN, asName: null });
    await clock.advance(7 * DAY_MS - 1);
    tell("8.8.8.9");
    await job.run();
    expect([named(), network("8.8.8.9")]).toEqual([1, { ...KNOWN, asName: null }]);
    await clock.advance(1);
    tell("8.8.8.10");
    await job.run();
    expect(named()).toBe(2);
  });

  const FAILURES: readonly ZoneFailure[] = [
    ...(["unconfirmed", "servfail", "refused", "timeout", "malformed", "network_error", "cname_loop"] as const),
    ...(["invalid_name", "local_failure", "overloaded", "aborted"] as const),
  ];
  const wrongAnswers: ReadonlyArray<[string, Zone]> = [
    ...FAILURES.map((failure): [string, Zone] => [failure, { [originQueryName(IP)]: failure }]),
    ["garbage", origin(IP, "v=spf1 -all")],
    ["another network's record", origin(IP, "64500 | 192.0.2.0/24 | US | arin |")],
  ];

  test.each(wrongAnswers)(
    "%s is no finding: what is known stays, and it is tried again less and less often",
    async (_, broken) => {
      const zone: Record<string, Zone[string]> = { ...EXAMPLE };
      const { job, network, dueInMs, clock, stored } = start(zone);
      await job.run();
      Object.assign(zone, broken);
      await clock.advance(30 * DAY_MS);
      const waits: number[] = [];
      for (let run = 0; run < 6; run += 1) {
        await job.run();
        expect(network(IP)).toEqual(KNOWN);
        waits.push(dueInMs() / HOUR_MS);
        await clock.advance(dueInMs());
      }
      expect(waits).toEqual([1, 2, 4, 8, 16, 24]);
      expect(stored(IP)?.isNetworkKnown).toBe(true);
    },
  );

  test.each(wrongAnswers)("%s at first leaves the network unknown", async (_, broken) => {
    const { job, stored } = start(broken);
    await job.run();
    expect(stored(IP)).toMatchObject({ ...NOTHING, isNetworkKnown: false, isNameKnown: true });
  });

  test.each<[string, Zone]>([
    ["does not answer", { [asQueryName(64_501).toLowerCase()]: "timeout" }],
    ["answers about another AS", as(64_501, "64502 | US | arin | | OTHER, US")],
  ])(
    "when the name of a new AS %s, the number is kept without the old name, and it is tried again",
    async (_, broken) => {
      const zone: Record<string, Zone[string]> = { ...EXAMPLE };
      const { job, network, dueInMs, clock } = start(zone);
      await job.run();
      Object.assign(zone, origin(IP, "64501 | 8.8.0.0/16 |  | arin |"), broken);
      await clock.advance(30 * DAY_MS);
      await job.run();
      expect(network(IP)).toEqual({ asn: 64_501, asName: null, country: "US", prefix: "8.8.0.0/16" });
      expect(dueInMs()).toBe(HOUR_MS);
      Object.assign(zone, as(64_501, "64501 | US | arin | | SECOND, US"));
      await clock.advance(HOUR_MS);
      await job.run();
      expect(network(IP)).toMatchObject({ asn: 64_501, asName: "SECOND" });
    },
  );

  test("the old name of an AS stays while the new one cannot be found out", async () => {
    const zone: Record<string, Zone[string]> = { ...EXAMPLE };
    const { job, network, clock } = start(zone);
    await job.run();
    zone[asQueryName(64_500).toLowerCase()] = "servfail";
    await clock.advance(30 * DAY_MS);
    await job.run();
    expect(network(IP)).toEqual(KNOWN);
  });

  test("a network that is not announced any more is none", async () => {
    const zone: Record<string, Zone[string]> = { ...EXAMPLE };
    const { job, network, clock } = start(zone);
    await job.run();
    zone[originQueryName(IP)] = "nxdomain";
    await clock.advance(30 * DAY_MS);
    await job.run();
    expect(network(IP)).toEqual(NOTHING);
  });

  test("reverse names do not wait for networks, nor the other way round", async () => {
    const named = { [reverseQueryName(IP)]: { PTR: ["dns.example.com"] }, "dns.example.com": { A: [IP] } };
    const first = start({ ...named, [originQueryName(IP)]: "timeout" });
    await first.job.run();
    expect(first.stored(IP)).toMatchObject({ name: "dns.example.com", isConfirmed: true });
    const second = start({ ...EXAMPLE, [reverseQueryName(IP)]: "timeout" });
    await second.job.run();
    expect(second.stored(IP)).toMatchObject({ ...KNOWN, isNameKnown: false });
  });

  test("addresses that are not public are never asked about", async () => {
    const { job, askedOfNetworks, dueInMs } = start({}, { ips: ["10.0.0.1", "fe80::1", "nonsense"] });
    await job.run();
    expect(askedOfNetworks()).toEqual([]);
    expect(dueInMs("10.0.0.1")).toBe(365 * DAY_MS);
  });

  test("a bug about one address is logged and does not stop the others", async () => {
    const { job, network, resolver, logged, stored } = start(EXAMPLE, { ips: ["9.9.9.9", IP] });
    const { resolve } = resolver;
    const broken: typeof resolve = (name, type, options) => {
      if (name === originQueryName("9.9.9.9")) throw new Error("a bug");
      return resolve(name, type, options);
    };
    Object.assign(resolver, { resolve: broken });
    await job.run();
    expect(network(IP)).toEqual(KNOWN);
    expect(stored("9.9.9.9")).toMatchObject({ isNameKnown: true, isNetworkKnown: false });
    expect(logged.join()).toContain("a bug");
  });

  test("that is stopped writes nothing about what it did not hear, and does not begin again", async () => {
    const { job, stored, askedOfNetworks, dueInMs } = start(EXAMPLE);
    const run = job.run();
    job.stop();
    await run;
    await job.run();
    expect(stored(IP)).toMatchObject({ ...NOTHING, isNetworkKnown: false });
    expect(dueInMs()).toBeLessThan(0);
    expect(askedOfNetworks().length).toBeLessThanOrEqual(1);
  });
});

describe("a run", () => {
  const many = (count: number): string[] =>
    Array.from({ length: count }, (_, n) => `8.${n >> 16}.${(n >> 8) & 255}.${n & 255}`);
  const known = ({ db }: Pick<AddressLookupHarness, "db">, like: string): number =>
    db.sqlite
      .query<{ n: number }, [string]>(
        "SELECT count(*) n FROM dmarc_reverse_names WHERE network_asked_at_ms IS NOT NULL AND ip LIKE ?",
      )
      .get(like)?.n ?? 0;

  test("takes a thousand addresses at most; new ones do not wait behind a large import, nor due ones behind new ones", async () => {
    const harness = start({}, { ips: many(3_000) });
    const { job, tell, db } = harness;
    db.sqlite.run("UPDATE dmarc_reverse_names SET network_due_at_ms = 5 WHERE rowid <= 600");
    tell("9.9.9.8", "9.9.9.9");
    await job.run();
    expect(known(harness, "9.9.9.%")).toBe(2);
    expect(known(harness, "%")).toBe(JOB_LIMITS.addressesMax);
    expect(db.sqlite.query("SELECT count(*) n FROM dmarc_reverse_names WHERE network_due_at_ms = 5").get()).toEqual({
      n: 600 - Math.floor(JOB_LIMITS.addressesMax / 3),
    });
    for (let run = 0; run < 3; run += 1) await job.run();
    expect(known(harness, "%")).toBe(3_002);
  });

  test("ends when the service does not answer; what it did not ask stays due", async () => {
    const ips = many(900);
    const zone = Object.fromEntries(ips.map((ip) => [originQueryName(ip), "timeout" as const]));
    const { job, askedOfNetworks, resolver } = start(zone, { ips });
    await job.run();
    const asked = askedOfNetworks().length;
    expect(asked).toBeGreaterThanOrEqual(NETWORK_LIMITS.failuresInARowMax);
    expect(asked).toBeLessThan(NETWORK_LIMITS.failuresInARowMax + JOB_LIMITS.atOnceMax);
    expect(resolver.queries.filter((question) => question.startsWith("PTR "))).toHaveLength(900);
    await job.run();
    expect(new Set(askedOfNetworks()).size).toBe(askedOfNetworks().length);
    expect(askedOfNetworks().length).toBeGreaterThan(asked);
  });

  test("begins no look-up after 45 seconds", async () => {
    const stepMs = 10_000;
    const { job, askedOfNetworks, resolver, clock } = start({}, { ips: many(300) });
    const { resolve } = resolver;
    const slow: typeof resolve = async (name, type, options) => {
      if (type === "TXT") await clock.advance(stepMs);
      return resolve(name, type, options);
    };
    Object.assign(resolver, { resolve: slow });
    await job.run();
    const rounds = Math.ceil(JOB_LIMITS.runMs / stepMs);
    expect(askedOfNetworks().length).toBeGreaterThan(0);
    expect(askedOfNetworks().length).toBeLessThanOrEqual(rounds * JOB_LIMITS.atOnceMax);
  });

  test("asks with a deadline and at most 32 at once", async () => {
    const { job, resolver } = start({}, { ips: many(100) });
    const { resolve } = resolver;
    let atOnce = 0;
    let most = 0;
    const timeouts = new Set<number | undefined>();
    const counted: typeof resolve = async (name, type, options) => {
      if (type !== "TXT") return resolve(name, type, options);
      atOnce += 1;
      most = Math.max(most, atOnce);
      timeouts.add(options?.timeoutMs);
      await Promise.resolve();
      atOnce -= 1;
      return resolve(name, type, options);
    };
    Object.assign(resolver, { resolve: counted });
    await job.run();
    expect([most, [...timeouts]]).toEqual([JOB_LIMITS.atOnceMax, [5_000]]);
  });
});

describe("switched off", () => {
  test("no query about networks leaves, whatever is due, and nothing is written", async () => {
    const { job, askedOfNetworks, resolver, stored, clock } = start(EXAMPLE, { hasAsnLookup: false });
    await job.run();
    await clock.advance(400 * DAY_MS);
    await job.run();
    expect(askedOfNetworks()).toEqual([]);
    expect(resolver.queries.some((question) => question.includes("cymru"))).toBe(false);
    expect(stored(IP)).toMatchObject({ ...NOTHING, isNetworkKnown: false, isNameKnown: true });
  });
});

describe("with a user's databases", () => {
  const FILE: GeoipFacts = { asn: 64_510, asName: "From the file", country: "DE", prefix: "8.8.0.0/16" };
  const databases = (facts: Readonly<Record<string, Partial<GeoipFacts>>>) => ({
    find: (ip: string): GeoipFacts => ({ ...NOTHING, ...facts[ip] }),
    refresh: async () => undefined,
  });

  test("no query leaves about what they know, and a newer database is read within a week", async () => {
    const { job, network, askedOfNetworks, dueInMs } = start(EXAMPLE, { geoip: databases({ [IP]: FILE }) });
    await job.run();
    expect(network(IP)).toEqual(FILE);
    expect(askedOfNetworks()).toEqual([]);
    expect(dueInMs()).toBe(7 * DAY_MS);
  });

  test("the DNS says what they do not know", async () => {
    const geoip = databases({ [IP]: { country: "DE" } });
    const { job, network } = start({ ...EXAMPLE }, { geoip, ips: [IP, "9.9.9.9"] });
    await job.run();
    expect(network(IP)).toEqual({ ...KNOWN, country: "DE" });
    expect(network("9.9.9.9")).toEqual(NOTHING);
  });

  test("the name of an AS that they do not name is asked for, without the address", async () => {
    const geoip = databases({ [IP]: { ...FILE, asn: 64_500, asName: null } });
    const { job, network, askedOfNetworks } = start(EXAMPLE, { geoip });
    await job.run();
    expect(network(IP).asName).toBe("EXAMPLE");
    expect(askedOfNetworks()).toEqual(["TXT as64500.asn.cymru.com"]);
  });

  test("the country is kept while the DNS does not answer, and the AS is tried again", async () => {
    const geoip = databases({ [IP]: { country: "DE" } });
    const { job, network, stored, dueInMs } = start({ [originQueryName(IP)]: "servfail" }, { geoip });
    await job.run();
    expect(network(IP)).toEqual({ ...NOTHING, country: "DE" });
    expect(stored(IP)?.isNetworkKnown).toBe(false);
    expect(dueInMs()).toBe(HOUR_MS);
  });

  test("they are read with the DNS switched off, and nothing is asked", async () => {
    const geoip = databases({ [IP]: { ...FILE, asName: null }, "9.9.9.9": { country: "DE" } });
    const { job, network, askedOfNetworks, stored } = start(EXAMPLE, {
      geoip,
      hasAsnLookup: false,
      ips: [IP, "9.9.9.9", "1.1.1.1"],
    });
    await job.run();
    expect(network(IP)).toEqual({ ...FILE, asName: null });
    expect(network("9.9.9.9")).toEqual({ ...NOTHING, country: "DE" });
    expect(stored("1.1.1.1")).toMatchObject({ ...NOTHING, isNetworkKnown: true });
    expect(askedOfNetworks()).toEqual([]);
  });
});
