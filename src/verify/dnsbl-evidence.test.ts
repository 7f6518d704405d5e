import { describe, expect, test } from "bun:test";
import { readEmbeddedCatalogue } from "../blocklist/lists/catalogue.ts";
import type { Clock } from "../foundation/base/clock.ts";
import type { Blocklist } from "../blocklist/lists/blocklist.ts";
import { createDnsbl, type Dnsbl } from "../blocklist/lists/open.ts";
import { createDnsblPacing, noPacing } from "../blocklist/lists/list-client.ts";
import { createTestClock, settle } from "../testing/clock.ts";
import { createZoneResolver, type Zone } from "../testing/dns-zone.ts";
import { domainWith, evidenceWith, findingWith } from "../testing/evidence.ts";
import { createMailNetworks } from "../testing/mail-network.ts";
import { BlocklistCheck } from "./dnsbl-evidence.ts";
import type { DnsblEvidence, DomainEvidence, ProbeFinding } from "./evidence.ts";
import { decideVerdict } from "./verdict.ts";

const networkOf = createMailNetworks();

const ASKED = new Set(["spamcop", "spamhaus-zen", "spamhaus-dbl"]);
const lists = readEmbeddedCatalogue().lists.filter(({ id }) => ASKED.has(id));
/** The lists know their test points, and nothing else. */
const TEST_POINTS: Zone = {
  "2.0.0.127.bl.spamcop.net": { A: ["127.0.0.2"] },
  "2.0.0.127.zen.spamhaus.org": { A: ["127.0.0.2", "127.0.0.4", "127.0.0.10"] },
  "dbltest.com.dbl.spamhaus.org": { A: ["127.0.1.2"] },
};
const MX_AT_SPAMCOP = "25.2.0.192.bl.spamcop.net";
const MX_AT_ZEN = "25.2.0.192.zen.spamhaus.org";
const DOMAIN_AT_DBL = "x.example.dbl.spamhaus.org";
const PATIENCE_MS = 2_000;
const CACHED_DOMAINS_MAX = 20_000;

const REFUSED: Zone[string] = { A: ["127.255.255.254"] };
const everywhere = (entry: Zone[string]): Zone =>
  new Proxy(
    {},
    { get: () => entry, has: () => true, getOwnPropertyDescriptor: () => ({ value: entry, configurable: true }) },
  );

/** A check of domains that have mail hosts. */
const checkWith = (clock: Clock, dnsbl: Dnsbl, which: readonly Blocklist[]) => {
  const blocklists = new BlocklistCheck(clock, { dnsbl, lists: which });
  return async (domain: DomainEvidence): Promise<DnsblEvidence> =>
    (await blocklists.check(domain)) ?? { outcome: "unknown", listings: [] };
};

const start = (zone: Zone, which = lists) => {
  const clock = createTestClock();
  const resolver = createZoneResolver(zone);
  const registrableDomain = (domain: string) => domain.split(".").slice(-2).join(".");
  const deps = { clock, random: { integer: () => 0 }, registrableDomain, pacing: noPacing };
  const inquire = checkWith(clock, createDnsbl({ ...deps, resolver }), which);
  return { clock, resolver, inquire };
};

describe("the blocklists", () => {
  test("that know neither the domain nor its mail host: clean", async () => {
    expect(await start(TEST_POINTS).inquire(domainWith())).toEqual({ outcome: "clean", listings: [] });
  });

  test("are not queried for a domain without mail hosts", async () => {
    const { resolver, clock } = start(TEST_POINTS);
    const dnsbl = createDnsbl({
      ...{ clock, resolver, random: { integer: () => 0 }, pacing: noPacing },
      registrableDomain: () => "x.example",
    });
    const blocklists = new BlocklistCheck(clock, { dnsbl, lists });
    expect(await blocklists.check(domainWith({ outcome: "nxdomain", hosts: [] }))).toBeNull();
    expect(resolver.queries).toEqual([]);
  });

  test("name what they list, and which of the two it is", async () => {
    const zone = { ...TEST_POINTS, [MX_AT_SPAMCOP]: { A: ["127.0.0.2"] }, [DOMAIN_AT_DBL]: { A: ["127.0.1.2"] } };
    const evidence = await start(zone).inquire(domainWith());
    expect(evidence.outcome).toBe("listed");
    expect(evidence.listings.toSorted((a, b) => a.subject.localeCompare(b.subject))).toEqual([
      { listing: "spamcop", subject: "192.0.2.25" },
      { listing: expect.stringMatching(/^spamhaus-dbl/), subject: "x.example" },
    ]);
  });

  test("that only say a range should not send mail say nothing against an address", async () => {
    const zone = { ...TEST_POINTS, [MX_AT_ZEN]: { A: ["127.0.0.10"] } };
    expect(await start(zone).inquire(domainWith())).toEqual({ outcome: "clean", listings: [] });
  });

  test("that refuse us, list everything, or give no answer say nothing at all: unknown", async () => {
    for (const entry of [REFUSED, { A: ["127.0.0.2"] }, { A: ["192.0.2.1"] }, "servfail", "nxdomain"] as const) {
      expect(await start(everywhere(entry)).inquire(domainWith())).toEqual({ outcome: "unknown", listings: [] });
    }
  });

  test("of which one refuses us: the others count", async () => {
    const spamcopRefuses = { ...TEST_POINTS, "2.0.0.127.bl.spamcop.net": REFUSED, [MX_AT_SPAMCOP]: REFUSED };
    expect((await start(spamcopRefuses).inquire(domainWith())).outcome).toBe("clean");
    const zone = { ...spamcopRefuses, [DOMAIN_AT_DBL]: { A: ["127.0.1.2"] } };
    expect((await start(zone).inquire(domainWith())).outcome).toBe("listed");
  });

  test("are queried for at most three mail host addresses that may be connected to, and for no address literal", async () => {
    const addresses = [1, 2, 3, 4].map((n) => ({ address: `192.0.2.${n}`, allowed: n > 1 }));
    const hosts = [{ host: "mx.x.example", preference: 10, addresses, lookup_failed: false }];
    const { inquire, resolver } = start(TEST_POINTS);
    await inquire(domainWith({ name: "[192.0.2.2]", hosts }));
    const asked = resolver.queries.filter((question) => /^A [1-4]\.2\.0\.192\.bl/.test(question));
    expect(asked.toSorted()).toEqual([2, 3, 4].map((n) => `A ${n}.2.0.192.bl.spamcop.net`));
    expect(resolver.queries.some((question) => question.includes("192.0.2.2"))).toBe(false);
  });

  test("are queried once for what many addresses have in common, and again when that has expired", async () => {
    const { inquire, resolver, clock } = start(TEST_POINTS);
    const askedTimes = () => resolver.countQueries(MX_AT_SPAMCOP, "A");
    await Promise.all([inquire(domainWith()), inquire(domainWith())]);
    await inquire(domainWith());
    expect(askedTimes()).toBe(1);
    await clock.advance(10 * 60_000);
    await inquire(domainWith());
    expect(askedTimes()).toBe(2);
  });

  test("of more domains than the cache holds, the oldest is queried again", async () => {
    const { inquire, resolver } = start(
      TEST_POINTS,
      lists.filter(({ id }) => id === "spamhaus-dbl"),
    );
    const inquireAbout = (n: number) => inquire(domainWith({ name: `x${n}.example`, hosts: [] }));
    const queriesFor = (n: number) => resolver.countQueries(`x${n}.example.dbl.spamhaus.org`, "A");
    for (let n = 0; n < CACHED_DOMAINS_MAX; n++) await inquireAbout(n);
    await inquireAbout(0);
    expect(queriesFor(0)).toBe(1);
    await inquireAbout(CACHED_DOMAINS_MAX);
    await inquireAbout(1);
    await inquireAbout(0);
    expect([queriesFor(0), queriesFor(1)]).toEqual([2, 1]);
  });

  test("are queried again after they gave no response", async () => {
    const zone: Record<string, Zone[string]> = {};
    const { inquire, clock } = start(zone);
    expect((await inquire(domainWith())).outcome).toBe("unknown");
    Object.assign(zone, TEST_POINTS);
    await clock.advance(60 * 60_000);
    await inquire(domainWith());
    await clock.advance(60 * 60_000);
    expect((await inquire(domainWith())).outcome).toBe("clean");
  });
});

describe("patience", () => {
  /** Answers from the zone, but never a question about this suffix. */
  const silentAt = (suffix: string, zone: Zone) => {
    const clock = createTestClock();
    const resolver = createZoneResolver(zone);
    const resolve: typeof resolver.resolve = (name, type, options) =>
      name.endsWith(suffix) ? Promise.withResolvers<never>().promise : resolver.resolve(name, type, options);
    const registrableDomain = (domain: string) => domain;
    const deps = { clock, random: { integer: () => 0 }, registrableDomain, pacing: noPacing };
    return {
      clock,
      inquire: checkWith(clock, createDnsbl({ ...deps, resolver: { resolve } }), lists),
    };
  };

  test("ends after two seconds with unknown when no list responds", async () => {
    const { clock, inquire } = silentAt("", TEST_POINTS);
    const asked = inquire(domainWith());
    let ended = false;
    void asked.then(() => {
      ended = true;
    });
    await clock.advance(PATIENCE_MS - 1);
    expect(ended).toBe(false);
    await clock.advance(1);
    expect(await asked).toEqual({ outcome: "unknown", listings: [] });
    expect(clock.pending()).toBe(0);
  });

  test("ends with the responses received by then", async () => {
    const zone = { ...TEST_POINTS, [MX_AT_SPAMCOP]: { A: ["127.0.0.2"] } };
    const { clock, inquire } = silentAt("spamhaus.org", zone);
    const asked = inquire(domainWith());
    await clock.advance(PATIENCE_MS);
    expect((await asked).listings).toEqual([{ listing: "spamcop", subject: "192.0.2.25" }]);
  });

  test("an incomplete set of responses is not cached: the others are queried the next time", async () => {
    const zone = { ...TEST_POINTS, [MX_AT_SPAMCOP]: { A: ["127.0.0.2"] } };
    const clock = createTestClock();
    const resolver = createZoneResolver(zone);
    const silent = new Set([MX_AT_SPAMCOP]);
    const resolve: typeof resolver.resolve = (name, type, options) =>
      silent.has(name) ? Promise.withResolvers<never>().promise : resolver.resolve(name, type, options);
    const deps = { clock, random: { integer: () => 0 }, registrableDomain: (name: string) => name, pacing: noPacing };
    const inquire = checkWith(clock, createDnsbl({ ...deps, resolver: { resolve } }), lists);
    const first = inquire(domainWith());
    await clock.advance(PATIENCE_MS);
    expect((await first).outcome).toBe("clean");
    silent.clear();
    const second = inquire(domainWith());
    await clock.advance(PATIENCE_MS);
    expect((await second).outcome).toBe("listed");
  });

  test("leaves no timer behind when all have answered", async () => {
    const { clock, inquire } = start(TEST_POINTS);
    await inquire(domainWith());
    expect(clock.pending()).toBe(0);
  });

  test("under load those who cannot have a turn in time hear so at once, and the others are served", async () => {
    const clock = createTestClock();
    const resolver = createZoneResolver(TEST_POINTS);
    const pacing = createDnsblPacing({ clock, waitMsMax: 1_000 });
    const dnsbl = createDnsbl({
      clock,
      resolver,
      random: { integer: () => 0 },
      registrableDomain: (name) => name,
      pacing,
    });
    const inquire = checkWith(
      clock,
      dnsbl,
      lists.filter(({ id }) => id === "spamcop"),
    );
    const outcomes: string[] = [];
    const host = (n: number) => ({ address: `192.0.${2 + (n >> 8)}.${n & 255}`, allowed: true });
    for (let n = 0; n < 400; n++) {
      const hosts = [{ host: "mx", preference: 10, addresses: [host(n)], lookup_failed: false }];
      void inquire(domainWith({ name: "[x]", hosts })).then(({ outcome }) => outcomes.push(outcome));
    }
    await settle();
    await clock.advance(PATIENCE_MS);
    expect(outcomes).toHaveLength(400);
    expect(outcomes.filter((outcome) => outcome === "clean").length).toBeGreaterThan(50);
  });
});

describe("in a verification", () => {
  const publicMx = "203.0.114.1";
  const zone = { ...TEST_POINTS, "1.114.0.203.bl.spamcop.net": { A: ["127.0.0.2"] } } as const;
  const onlyAda = (address: string) => (address.startsWith("ada@") ? "250 2.1.5 Ok" : "550 5.1.1 User unknown");

  test("a listed mail host makes an accepted address risky", async () => {
    const network = networkOf({
      hosts: [{ name: "mx.x.example", script: { rcpt: onlyAda } }],
      zone,
      blocklists: lists,
    });
    const { result, evidence } = await network.verify();
    expect(result).toMatchObject({ verdict: "risky", sub_status: "dnsbl_listed", signals: { dnsbl: "warn" } });
    expect(evidence.conclusion?.because).toBe(`${publicMx} is on the blocklist spamcop.`);
    expect((await network.verify("bob@x.example")).result).toMatchObject({
      sub_status: "mailbox_not_found",
      signals: { dnsbl: "warn" },
    });
  });

  test("clean lists pass the signal; without them it is skipped, and no list is queried", async () => {
    const hosts = [{ name: "mx.x.example", script: { rcpt: onlyAda } }];
    const on = await networkOf({ hosts, zone: TEST_POINTS, blocklists: lists }).verify();
    expect(on.result).toMatchObject({ sub_status: "mailbox_exists", signals: { dnsbl: "pass" } });
    const off = networkOf({ hosts, zone });
    const { result, evidence } = await off.verify();
    expect([result.sub_status, result.signals.dnsbl, evidence.dnsbl]).toEqual(["mailbox_exists", "skipped", null]);
    expect(off.asked.some((question) => question.includes("spamcop"))).toBe(false);
  });

  test("lists that could not say are a signal that is unknown, and change nothing else", async () => {
    const network = networkOf({ hosts: [{ name: "mx.x.example", script: { rcpt: onlyAda } }], blocklists: lists });
    expect((await network.verify()).result).toMatchObject({
      sub_status: "mailbox_exists",
      signals: { dnsbl: "unknown" },
    });
  });
});

describe("a listing decides only where nothing weightier does", () => {
  const dnsbl = { outcome: "listed", listings: [{ listing: "spamcop", subject: "x.example" }] } as const;
  const subStatusOf = (parts: Parameters<typeof evidenceWith>[0]) =>
    decideVerdict(evidenceWith({ ...parts, dnsbl: { outcome: dnsbl.outcome, listings: [...dnsbl.listings] } }))
      .sub_status;

  test.each([
    ["mailbox_not_found", "mailbox_not_found"],
    ["mailbox_disabled", "mailbox_disabled"],
    ["smtputf8_unsupported", "smtputf8_unsupported"],
    ["null_mx", "null_mx"],
    ["mailbox_full", "mailbox_full"],
    ["greylisted", "greylisted"],
    ["rate_limited", "rate_limited"],
    ["blocked", "smtp_blocked"],
    ["sender_rejected", "sender_rejected"],
    ["tls_required", "tls_required"],
    ["temporary", "smtp_temporary_error"],
    ["protocol_error", "smtp_protocol_error"],
    ["unreachable", "smtp_unreachable"],
    ["timeout", "smtp_timeout"],
    ["internal", "internal_error"],
    ["accepted", "dnsbl_listed"],
  ] as const)("a mailbox that is %s: %s", (reading: ProbeFinding["reading"], subStatus) => {
    expect(subStatusOf({ findings: [findingWith({ reading, reply: "line" })] })).toBe(subStatus);
  });

  test("list hits, catch-alls and unverifiable providers come before it, roles after it", () => {
    expect(subStatusOf({ toxic: "x.example" })).toBe("toxic");
    expect(subStatusOf({ address: { disposable: "x.example" } })).toBe("disposable");
    expect(subStatusOf({ findings: [findingWith({ catch_all: "yes" })] })).toBe("catch_all");
    expect(subStatusOf({ domain: { unverifiable_provider: "Some" } })).toBe("unverifiable_provider");
    expect(subStatusOf({ address: { role_account: "info" } })).toBe("dnsbl_listed");
  });
});
