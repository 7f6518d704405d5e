import { describe, expect, test } from "bun:test";
import { err, ok } from "../../foundation/base/errors.ts";
import { createTestClock } from "../../testing/clock.ts";
import { type Zone, type ZoneFailure, type ZoneRecords, createZoneResolver } from "../../testing/dns-zone.ts";
import type { Blocklist } from "./blocklist.ts";
import type { DecodedResponse } from "./decode.ts";
import { type DnsblPacing, type BudgetExceeded, noPacing } from "./list-client.ts";
import { readEmbeddedCatalogue } from "./catalogue.ts";
import { createDnsbl } from "./open.ts";

const { lists } = readEmbeddedCatalogue();
const listOf = (id: string): Blocklist => {
  const list = lists.find((candidate) => candidate.id === id);
  if (!list) throw new Error(`no list ${id}`);
  return list;
};
const random = { integer: () => 0 };
const CANARY = "a".repeat(16);
const POSITIVE = "2.0.0.127.bl.spamcop.net";
const NEGATIVE = "1.0.0.127.bl.spamcop.net";
const MINUTE_MS = 60_000;
const spamcop = listOf("spamcop");

const start = (zone: Record<string, ZoneRecords | ZoneFailure>, pacing: DnsblPacing = noPacing) => {
  const clock = createTestClock();
  const resolver = createZoneResolver(zone);
  const { health } = createDnsbl({ resolver, clock, random, registrableDomain: () => null, pacing });
  return { clock, resolver, health, zone };
};
const listed = (...answers: string[]): ZoneRecords => ({ A: answers });

describe("the health of a list", () => {
  test.each<[claim: string, zone: Zone, state: string, reason: string]>([
    ["knows its test entry and nothing else", { [POSITIVE]: listed("127.0.0.2") }, "healthy", ""],
    ["does not know its own test entry", {}, "silent", "no entry for its own test point 127.0.0.2"],
    ["gives its test entry without a record", { [POSITIVE]: {} }, "silent", "its own test point"],
    [
      "lists everything",
      { [POSITIVE]: listed("127.0.0.2"), [NEGATIVE]: listed("127.0.0.2") },
      "wildcard",
      "never listed",
    ],
    [
      "answers for a random name",
      { [POSITIVE]: listed("127.0.0.2"), [`${CANARY}.bl.spamcop.net`]: listed("127.0.0.2") },
      "wildcard",
      "for a random name",
    ],
    [
      "answers for a random name with another address",
      { [POSITIVE]: listed("127.0.0.2"), [`${CANARY}.bl.spamcop.net`]: listed("91.195.240.117") },
      "wildcard",
      "outside 127.0.0.0/8",
    ],
    [
      "drops a random name only",
      { [POSITIVE]: listed("127.0.0.2"), [`${CANARY}.bl.spamcop.net`]: "timeout" },
      "healthy",
      "",
    ],
    [
      "lists a documentation address",
      { [POSITIVE]: listed("127.0.0.2"), "0.2.0.192.bl.spamcop.net": listed("127.0.0.2") },
      "wildcard",
      "192.0.2.0, a random target",
    ],
    [
      "answers for its test points only",
      {
        [POSITIVE]: listed("127.0.0.2"),
        "0.2.0.192.bl.spamcop.net": "timeout",
        "0.100.51.198.bl.spamcop.net": "timeout",
        "0.113.0.203.bl.spamcop.net": "timeout",
      },
      "unreachable",
      "responds for its test points, but not for other names",
    ],
    ["is parked", { [POSITIVE]: listed("91.195.240.117") }, "wildcard", "outside 127.0.0.0/8"],
    ["refuses", { [POSITIVE]: listed("127.255.255.254"), [NEGATIVE]: "timeout" }, "refused", "error code"],
    ["does not answer", { [POSITIVE]: "timeout", [NEGATIVE]: "timeout" }, "unreachable", "timed out"],
    ["answers its test entry strangely", { [POSITIVE]: listed("127.0.0.99") }, "unknown", "127.0.0.99"],
  ])("that %s", async (_, zone, state, reason) => {
    const { health } = start({ ...zone });
    const found = await health.ensureFresh(spamcop, "ipv4");
    expect(found.state).toBe(state as typeof found.state);
    expect(found.reason ?? "").toContain(reason);
    expect(health.of(spamcop, "ipv4")).toEqual(found);
  });

  test("is unknown before the first test and says so", () => {
    expect(start({}).health.of(spamcop, "ipv4")).toMatchObject({ state: "unknown", testedAtMs: null });
  });

  test("stays unknown for a list without test points, unless it lists everything", async () => {
    const efnet = listOf("efnetrbl");
    expect((await start({}).health.ensureFresh(efnet, "ipv4")).reason).toContain("no test point of this kind");
    const wild = start({ [`${CANARY}.rbl.efnetrbl.org`]: listed("127.0.0.1") });
    expect((await wild.health.ensureFresh(efnet, "ipv4")).state).toBe("wildcard");
  });

  test("comes with a remedy when the list refuses", async () => {
    const zone = { "2.0.0.127.zen.spamhaus.org": listed("127.255.255.254") };
    const found = await start(zone).health.ensureFresh(listOf("spamhaus-zen"), "ipv4");
    expect(found.remedy).toContain("POSTWARDEN_BLOCKLIST_KEYS");
  });

  test("accepts a code that is expected of the test point only", async () => {
    const zone = { "2.0.0.127.dnsbl.dronebl.org": listed("127.0.0.2") };
    expect((await start(zone).health.ensureFresh(listOf("dronebl"), "ipv4")).state).toBe("healthy");
  });

  test("is tested for each kind of target with test points of its own", async () => {
    const { health } = start({ "2.0.0.127.all.s5h.net": listed("127.0.0.2") });
    expect((await health.ensureFresh(listOf("s5h"), "ipv4")).state).toBe("healthy");
    expect((await health.ensureFresh(listOf("s5h"), "ipv6")).state).toBe("silent");
  });

  test("is unknown for a kind without test points, whatever the other kinds", async () => {
    const { health } = start({ "2.0.0.127.bl.blocklist.de": listed("127.0.0.15") });
    expect(await health.ensureFresh(listOf("blocklist-de"), "ipv4")).toMatchObject({ state: "healthy" });
    expect(await health.ensureFresh(listOf("blocklist-de"), "ipv6")).toMatchObject({ state: "unknown", kind: "ipv6" });
  });
});

describe("a test", () => {
  test("is valid for half an hour", async () => {
    const { health, resolver, clock } = start({ [POSITIVE]: listed("127.0.0.2") });
    await health.ensureFresh(spamcop, "ipv4");
    await clock.advance(30 * MINUTE_MS - 1);
    await health.ensureFresh(spamcop, "ipv4");
    expect(resolver.countQueries(POSITIVE, "A")).toBe(1);
    await clock.advance(1);
    await health.ensureFresh(spamcop, "ipv4");
    expect(resolver.countQueries(POSITIVE, "A")).toBe(2);
  });

  test("runs once for concurrent callers", async () => {
    const { health, resolver } = start({ [POSITIVE]: listed("127.0.0.2") });
    await Promise.all([1, 2, 3].map(() => health.ensureFresh(spamcop, "ipv4")));
    expect(resolver.countQueries(POSITIVE, "A")).toBe(1);
  });

  test("for a doubt does not rely on one that was already running", async () => {
    const { health, resolver } = start({ [POSITIVE]: listed("127.0.0.2") });
    const tests = await Promise.all([health.ensureFresh(spamcop, "ipv4"), health.testAgain(spamcop, "ipv4")]);
    expect(tests).toMatchObject([{ state: "healthy" }, { isTested: true, health: { state: "healthy" } }]);
    expect(resolver.countQueries(POSITIVE, "A")).toBe(2);
  });

  test("of a bad list queries no random addresses", async () => {
    const { health, resolver } = start({});
    await health.ensureFresh(spamcop, "ipv4");
    expect(resolver.countQueries("0.2.0.192.bl.spamcop.net", "A")).toBe(0);
  });

  test("is incomplete when one test point was not queried", async () => {
    let sent = 0;
    const spent: BudgetExceeded = { kind: "budget_spent", problem: "Spent.", retryAfterMs: 1 };
    const pacing: DnsblPacing = { acquire: async () => (++sent === 3 ? err(spent) : ok(null)) };
    const { health, resolver } = start({ [POSITIVE]: listed("127.0.0.2") }, pacing);
    expect(await health.ensureFresh(spamcop, "ipv4")).toMatchObject({ state: "unknown", testedAtMs: null });
    expect(resolver.countQueries(NEGATIVE, "A")).toBe(0);
  });

  test("that fails takes effect at once; two passed tests restore the list", async () => {
    const { health, zone, clock } = start({ [POSITIVE]: listed("127.0.0.2") });
    const stateAfter = async (minutes: number) => {
      await clock.advance(minutes * MINUTE_MS);
      return (await health.ensureFresh(spamcop, "ipv4")).state;
    };
    expect(await stateAfter(0)).toBe("healthy");
    zone[POSITIVE] = "nxdomain";
    expect(await stateAfter(30)).toBe("silent");
    zone[POSITIVE] = listed("127.0.0.2");
    expect(await stateAfter(30)).toBe("silent");
    expect(await stateAfter(5)).toBe("healthy");
  });

  test("that fails between two passed tests restarts the count", async () => {
    const { health, zone, clock } = start({ [POSITIVE]: "nxdomain" });
    const states: string[] = [];
    for (const answer of ["nxdomain", "there", "nxdomain", "there", "there"] as const) {
      zone[POSITIVE] = answer === "there" ? listed("127.0.0.2") : answer;
      states.push((await health.ensureFresh(spamcop, "ipv4")).state);
      await clock.advance(30 * MINUTE_MS);
    }
    expect(states).toEqual(["silent", "silent", "silent", "silent", "healthy"]);
  });

  test("of an unreachable list is repeated in a minute, and one passed test restores it", async () => {
    const { health, zone, clock } = start({ [POSITIVE]: "timeout" });
    expect((await health.ensureFresh(spamcop, "ipv4")).state).toBe("unreachable");
    zone[POSITIVE] = listed("127.0.0.2");
    await clock.advance(MINUTE_MS);
    expect((await health.ensureFresh(spamcop, "ipv4")).state).toBe("healthy");
  });

  test("is not repeated soon for a list that refuses our queries", async () => {
    const { health, resolver, clock } = start({ [POSITIVE]: listed("127.255.255.254") });
    await health.ensureFresh(spamcop, "ipv4");
    await clock.advance(29 * MINUTE_MS);
    await health.ensureFresh(spamcop, "ipv4");
    expect(resolver.countQueries(POSITIVE, "A")).toBe(1);
  });

  test("that is incomplete changes nothing, and is repeated as soon as possible", async () => {
    const refusals: BudgetExceeded[] = [];
    const pacing: DnsblPacing = {
      acquire: () => Promise.resolve(refusals[0] === undefined ? ok(null) : err(refusals[0])),
    };
    const { health, zone, clock } = start({ [POSITIVE]: listed("127.0.0.2") }, pacing);
    await health.ensureFresh(spamcop, "ipv4");
    await clock.advance(30 * MINUTE_MS);
    refusals.push({ kind: "budget_spent", problem: "Spent.", retryAfterMs: 1 });
    zone[POSITIVE] = "nxdomain";
    expect((await health.ensureFresh(spamcop, "ipv4")).state).toBe("healthy");
    expect(await health.testAgain(spamcop, "ipv4")).toMatchObject({ isTested: false, health: { state: "healthy" } });
    refusals.length = 0;
    expect((await health.ensureFresh(spamcop, "ipv4")).state).toBe("silent");
  });

  test("of all lists comes once for every kind, in the order of the lists", async () => {
    const all = await start({}).health.ensureAllFresh([listOf("s5h"), spamcop, listOf("blocklist-de")]);
    expect(all.map(({ list, kind }) => `${list} ${kind}`)).toEqual([
      "s5h ipv4",
      "s5h ipv6",
      "spamcop ipv4",
      "blocklist-de ipv4",
      "blocklist-de ipv6",
    ]);
  });
});

describe("an ordinary response", () => {
  const failed = (cause: "unreachable" | "outside_loopback" | "unconfirmed") =>
    ({ outcome: "failed", cause, reason: "Because." }) as const;
  const healthy = async () => {
    const { health, clock, resolver } = start({ [POSITIVE]: listed("127.0.0.2") });
    await health.ensureFresh(spamcop, "ipv4");
    const record = (decoded: DecodedResponse, times = 1) => {
      for (let n = 0; n < times; n += 1) health.recordResponse(spamcop, "ipv4", decoded);
      return health.of(spamcop, "ipv4");
    };
    /** The number of tests when a caller needs the list after `minutes`. */
    const testsAfter = async (minutes: number) => {
      await clock.advance(minutes * MINUTE_MS);
      await health.ensureFresh(spamcop, "ipv4");
      return resolver.countQueries(POSITIVE, "A");
    };
    return { record, testsAfter };
  };

  test("missing five times in a row makes the list unreachable", async () => {
    const { record } = await healthy();
    expect(record(failed("unreachable"), 4).state).toBe("healthy");
    record({ outcome: "not_listed", ignored: [] });
    expect(record(failed("unreachable"), 4).state).toBe("healthy");
    expect(record(failed("unreachable"))).toMatchObject({
      state: "unreachable",
      reason: "The list did not respond to 5 queries in a row.",
    });
  });

  test("missing before a passed test does not count after it", async () => {
    const { record, testsAfter } = await healthy();
    record(failed("unreachable"), 4);
    expect(await testsAfter(30)).toBe(2);
    expect(record(failed("unreachable"), 4).state).toBe("healthy");
  });

  test("outside 127.0.0.0/8 makes it a wildcard at once", async () => {
    const { record } = await healthy();
    expect(record(failed("outside_loopback"))).toMatchObject({ state: "wildcard", reason: "Because." });
  });

  test("that refuses brings the next test forward to five minutes later", async () => {
    const { record, testsAfter } = await healthy();
    expect(record({ outcome: "refused", reason: "No.", remedy: "Pay." }).state).toBe("healthy");
    expect(await testsAfter(4)).toBe(1);
    expect(await testsAfter(1)).toBe(2);
  });

  test("with an unconfirmed change is tested at once, and one that changes nothing is not", async () => {
    const { record, testsAfter } = await healthy();
    record({ outcome: "not_listed", ignored: [] });
    expect(await testsAfter(0)).toBe(1);
    record(failed("unconfirmed"));
    expect(await testsAfter(0)).toBe(2);
  });

  test("does not delay a test that is due sooner, nor test an unhealthy list sooner", async () => {
    const { record, testsAfter } = await healthy();
    await testsAfter(29);
    record({ outcome: "refused", reason: "No.", remedy: "Pay." });
    expect(await testsAfter(1)).toBe(2);
    record(failed("outside_loopback"));
    record(failed("unconfirmed"));
    expect(await testsAfter(0)).toBe(2);
  });
});

test("the health of at most 2000 lists is remembered", () => {
  const { health } = start({});
  for (let n = 0; n < 2000; n += 1) health.of({ ...spamcop, id: `list-${n}` }, "ipv4");
  expect(() => health.of({ ...spamcop, id: "one-more" }, "ipv4")).toThrow("More lists");
});

describe("every list of the catalogue", () => {
  test.each(lists.map((list) => [list.id, list] as const))(
    "%s is silent where nobody has heard of it, or proves nothing",
    async (_, list) => {
      const keyed = { ...list, key: list.zone === null ? "k" : null };
      const { health } = start({});
      for (const { state, kind } of await health.ensureAllFresh([keyed])) {
        expect(state).toBe((list.testPoints[kind]?.positive.length ?? 0) > 0 ? "silent" : "unknown");
      }
    },
  );
});
