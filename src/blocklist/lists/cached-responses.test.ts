import { describe, expect, test } from "bun:test";
import { createTestClock } from "../../testing/clock.ts";
import { createCachingResolver } from "../../testing/caching-resolver.ts";
import { type ZoneFailure, type ZoneRecords, createZoneResolver } from "../../testing/dns-zone.ts";
import { err, ok } from "../../foundation/base/errors.ts";
import { type BudgetExceeded, type DnsblPacing, noPacing } from "./list-client.ts";
import { readEmbeddedCatalogue } from "./catalogue.ts";
import { createDnsbl } from "./open.ts";
import type { Target } from "./query-name.ts";

const spamcopIn = () => {
  const found = readEmbeddedCatalogue().lists.find(({ id }) => id === "spamcop");
  if (found === undefined) throw new Error("no spamcop");
  return found;
};
const spamcop = spamcopIn();
const POINT = "2.0.0.127.bl.spamcop.net";
const NAME = "4.4.8.8.bl.spamcop.net";
const TARGET: Target = { kind: "ipv4", value: "8.8.4.4" };
const ENTRY: ZoneRecords = { A: ["127.0.0.2"], TXT: ["Listed"] };
/** A cache has the A record; everything else has to come from the list, which does not respond. */
const CACHED = {
  A: ["127.0.0.2"],
  TXT: "timeout",
  AAAA: "timeout",
  MX: "timeout",
  NS: "timeout",
  PTR: "timeout",
  SOA: "timeout",
} satisfies ZoneRecords;
const TTL_S = 2100;
const MINUTE_MS = 60_000;

/** A list behind a caching resolver: what it says at the moment stands in `zone`. */
const start = async (more: Record<string, ZoneRecords | ZoneFailure> = {}) => {
  const clock = createTestClock();
  const zone: Record<string, ZoneRecords | ZoneFailure> = { [POINT]: ENTRY, ...more };
  const list = createZoneResolver(zone);
  const resolver = createCachingResolver(list, clock, (outcome) => (outcome === "response" ? TTL_S : 600));
  let drawn = 0;
  // Another number each time, so that random names differ as they do in earnest.
  const integer = (below: number): number => {
    drawn = (drawn * 31 + 7) % 65_521;
    return drawn % below;
  };
  const random = { integer };
  const { lookup, health } = createDnsbl({ resolver, clock, random, registrableDomain: () => null, pacing: noPacing });
  await health.ensureFresh(spamcop, "ipv4");
  expect(health.of(spamcop, "ipv4").state).toBe("healthy");
  const check = async (previous: readonly string[]) => {
    const checked = lookup.check(TARGET, spamcop, { previous });
    // Undecided listings are queried again a little later.
    for (let seconds = 0; seconds < 10; seconds += 1) await clock.advance(1000);
    return checked;
  };
  return { clock, zone, resolver, list, health, check };
};

describe("a delisting", () => {
  test("is confirmed within seconds although the resolver has the test point cached", async () => {
    const { clock, check } = await start();
    await clock.advance(10 * MINUTE_MS);
    expect(await check(["spamcop"])).toMatchObject({ outcome: "not_listed", retryAtMs: null });
  });

  test("is confirmed repeatedly while the test point is cached, or waits until it expires", async () => {
    const { clock, check, list } = await start();
    const outcomes: string[] = [];
    for (let n = 0; n < 8; n += 1) {
      await clock.advance(MINUTE_MS);
      const { outcome, retryAtMs } = await check(["spamcop"]);
      outcomes.push(outcome);
      if (outcome !== "not_listed") expect(retryAtMs).toBeLessThanOrEqual(clock.nowMs() + (TTL_S + 2) * 1000);
    }
    expect(outcomes[0]).toBe("not_listed");
    // Each proof came from the list itself.
    expect(list.queries.filter((question) => question.endsWith(` ${POINT}`)).length).toBeGreaterThan(2);
  });

  test("is not confirmed for a list that was shut down, although the resolver has its test point cached", async () => {
    const { clock, zone, check } = await start();
    await clock.advance(10 * MINUTE_MS);
    delete zone[POINT];
    expect(await check(["spamcop"])).toMatchObject({ outcome: "failed", reason: expect.stringContaining("cache") });
  });

  test("of a server with A records only waits until the cached test point expires", async () => {
    const { clock, zone, check } = await start({
      [POINT]: {
        A: ["127.0.0.2"],
        TXT: "nxdomain",
        AAAA: "nxdomain",
        MX: "nxdomain",
        NS: "nxdomain",
        PTR: "nxdomain",
        SOA: "nxdomain",
      },
    });
    await clock.advance(10 * MINUTE_MS);
    const first = await check(["spamcop"]);
    expect(first).toMatchObject({ outcome: "failed", reason: expect.stringContaining("cannot be confirmed before") });
    await clock.advance((first.retryAtMs ?? 0) - clock.nowMs());
    expect((await check(["spamcop"])).outcome).toBe("not_listed");
    delete zone[POINT];
    await clock.advance(TTL_S * 1000);
    expect((await check(["spamcop"])).outcome).toBe("failed");
  });

  test("is not confirmed by a cached negative response when the list has the entry again", async () => {
    const { zone, check } = await start();
    expect((await check(["spamcop"])).outcome).toBe("not_listed");
    zone[NAME] = ENTRY;
    const { outcome, retryAtMs } = await check(["spamcop"]);
    expect(outcome).toBe("failed");
    expect(retryAtMs).not.toBeNull();
  });
});

describe("a listing", () => {
  test("is confirmed within seconds when another record type exists too", async () => {
    const { check } = await start({ [NAME]: ENTRY });
    expect((await check([])).outcome).toBe("listed");
  });

  test("needs no text: a name that exists is enough", async () => {
    const { check } = await start({ [NAME]: { A: ["127.0.0.2"] } });
    expect((await check([])).outcome).toBe("listed");
  });

  test("that the list withdrew is not confirmed although the resolver has it cached", async () => {
    const { zone, resolver, check } = await start({ [NAME]: ENTRY });
    await resolver.resolve(NAME, "A");
    delete zone[NAME];
    expect((await check([])).outcome).toBe("failed");
    expect((await check([])).outcome).toBe("failed");
  });

  test("of a server with A records only is confirmed when the cached response has expired and the list returns it again", async () => {
    const only = (type: string) => ({ [type]: "nxdomain" as const });
    const bare = {
      A: ["127.0.0.2"],
      ...only("TXT"),
      ...only("AAAA"),
      ...only("MX"),
      ...only("NS"),
      ...only("PTR"),
      ...only("SOA"),
    };
    const { clock, check } = await start({ [POINT]: bare, [NAME]: bare });
    const first = await check([]);
    expect(first).toMatchObject({ outcome: "failed", reason: expect.stringContaining("not confirmed") });
    await clock.advance((first.retryAtMs ?? 0) - clock.nowMs());
    expect((await check([])).outcome).toBe("listed");
  });
});

test("a test point from a cache does not count as a test", async () => {
  const { clock, zone, health } = await start();
  await clock.advance(MINUTE_MS);
  zone[POINT] = CACHED;
  const testing = health.testAgain(spamcop, "ipv4");
  for (let seconds = 0; seconds < 10; seconds += 1) await clock.advance(1000);
  expect(await testing).toMatchObject({ isTested: false, health: { state: "healthy" } });
  delete zone[POINT];
  const again = health.testAgain(spamcop, "ipv4");
  for (let seconds = 0; seconds < 10; seconds += 1) await clock.advance(1000);
  expect(await again).toMatchObject({ isTested: true, health: { state: "silent" } });
});

describe("a test of a new list whose test point only a cache returns", () => {
  /** The first test can send the test point only, so that it is incomplete; the next finds it in the cache. */
  const testTwice = async (more: Record<string, ZoneRecords | ZoneFailure> = {}) => {
    const clock = createTestClock();
    const list = createZoneResolver({ [POINT]: CACHED, ...more });
    const resolver = createCachingResolver(list, clock, () => TTL_S);
    const spent: BudgetExceeded = { kind: "budget_spent", problem: "Spent.", retryAfterMs: 1 };
    let left = 1;
    const pacing: DnsblPacing = { acquire: async () => (left-- > 0 ? ok(null) : err(spent)) };
    const random = { integer: () => 0 };
    const { health } = createDnsbl({ resolver, clock, random, registrableDomain: () => null, pacing });
    const test = async () => {
      const testing = health.ensureFresh(spamcop, "ipv4");
      for (let seconds = 0; seconds < 10; seconds += 1) await clock.advance(1000);
      return testing;
    };
    expect(await test()).toMatchObject({ state: "unknown", testedAtMs: null });
    await clock.advance(MINUTE_MS);
    left = Number.POSITIVE_INFINITY;
    return test();
  };

  test("says so, and proves nothing", async () => {
    expect(await testTwice()).toMatchObject({ state: "unknown", reason: expect.stringContaining("from its cache") });
  });

  test("still finds that it lists everything", async () => {
    expect((await testTwice({ "1.0.0.127.bl.spamcop.net": ENTRY })).state).toBe("wildcard");
  });
});
