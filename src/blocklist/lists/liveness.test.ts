import { describe, expect, test } from "bun:test";
import type { DnsOutcome, DnsResponse, DnsType } from "../../foundation/net/dns.ts";
import { createTestClock } from "../../testing/clock.ts";
import { noPacing, ListClient, PRESENCE_TYPES } from "./list-client.ts";
import { readEmbeddedCatalogue } from "./catalogue.ts";
import { LivenessProber } from "./liveness.ts";

const spamcopIn = () => {
  const found = readEmbeddedCatalogue().lists.find(({ id }) => id === "spamcop");
  if (found === undefined) throw new Error("no spamcop");
  return found;
};
const spamcop = spamcopIn();
const PREFIX = "2.0.0.127";
const POINT = `${PREFIX}.bl.spamcop.net`;

type Reply = readonly [outcome: DnsOutcome, ttlS: number];
type Replies = Partial<Record<DnsType, Reply>>;
const SILENT: Reply = ["timeout", 0];
const GONE: Reply = ["nxdomain", 600];
const there = (ttlS: number): Reply => ["response", ttlS];
const empty = (ttlS: number): Reply => ["no_data", ttlS];
/** All types that show whether a name exists. */
const everyType = (reply: Reply): Replies => Object.fromEntries(PRESENCE_TYPES.map((type) => [type, reply]));

/** What the list says, through a resolver, about its test point and about any other name; a test may change both. */
const start = (point: Replies = {}, other: Replies = {}) => {
  const clock = createTestClock();
  const asked: string[] = [];
  const says = { point, other };
  const resolver = {
    async resolve<T extends DnsType>(name: string, type: T): Promise<DnsResponse<T>> {
      const isPoint = name === POINT;
      asked.push(isPoint ? type : `${type} of a random name`);
      const [outcome, ttlS] = isPoint ? (says.point[type] ?? SILENT) : (says.other[type] ?? GONE);
      const records = outcome === "response" ? ["127.0.0.2"] : [];
      return { name, type, outcome, records, ttlS, cnames: [] } as unknown as DnsResponse<T>;
    },
  };
  const prober = new LivenessProber(new ListClient(resolver, noPacing), { clock, random: { integer: () => 0 } });
  /** What was asked since the last call. */
  const asks = () => asked.splice(0);
  const prove = async (sinceMs = clock.monotonicMs()) => {
    const proof = prober.prove(spamcop, "ipv4", sinceMs);
    await clock.advance(2_100);
    return proof;
  };
  const exists = (isFresh = false) => prober.queryExistence(spamcop, "ipv4", { prefix: PREFIX, isFresh });
  return { clock, says, prober, asks, prove, exists };
};

const UNDECIDED = { kind: "undecided", isFresh: false, ttlS: 0 } as const;

describe("a list", () => {
  test("that returns its test point is alive; one text and one other type are learned from it", async () => {
    const { prove, asks } = start({ A: there(300) });
    expect(await prove()).toEqual({ kind: "alive" });
    expect(asks()).toEqual(["A", "TXT", "AAAA"]);
  });

  test("that was alive since is not asked again", async () => {
    const { prove, asks, clock } = start({ A: there(300) });
    const sinceMs = clock.monotonicMs() - 1;
    await prove(sinceMs);
    asks();
    expect(await prove(sinceMs)).toEqual({ kind: "alive" });
    expect(asks()).toEqual([]);
    await prove(sinceMs + 1);
    expect(asks()).toContain("A");
  });

  test("that lost its test point failed, for all who wait for the same response", async () => {
    const { prove, asks } = start({ A: GONE });
    for (const proof of await Promise.all([prove(), prove()]))
      expect(proof).toMatchObject({ kind: "failed", finding: { state: "silent" } });
    expect(asks()).toEqual(["A"]);
  });

  test("without a test point of a kind cannot be proven", async () => {
    const { prober } = start();
    await expect(prober.prove(spamcop, "domain", 0)).rejects.toThrow("has no test point for domain");
  });
});

describe("a list whose test point is cached", () => {
  test("is alive when it returns another type of it, which then counts since that query", async () => {
    const { prove, says, clock, asks } = start({ A: there(250), TXT: there(300) });
    const beforeMs = clock.monotonicMs() - 1;
    expect(await prove()).toEqual({ kind: "alive" });
    expect(asks()).toEqual(["A", "TXT"]);
    says.point = {};
    expect(await prove(beforeMs)).toEqual({ kind: "alive" });
    expect(asks()).toEqual([]);
  });

  test("is unproven until the copy has expired when nothing else responds", async () => {
    const { prove, says, clock, prober } = start({ A: there(250) });
    const proof = prober.prove(spamcop, "ipv4", clock.monotonicMs());
    await clock.advance(2_000);
    says.point = { A: there(248) };
    await clock.advance(100);
    expect(await proof).toEqual({ kind: "unproven", untilMs: clock.monotonicMs() + 250_000 });
    says.point = { A: GONE };
    expect((await prove()).kind).toBe("failed");
  });

  test("failed when the test point is gone two seconds later", async () => {
    const { clock, says, prober } = start({ A: there(250) });
    const proof = prober.prove(spamcop, "ipv4", clock.monotonicMs());
    await clock.advance(2_000);
    says.point = { A: GONE };
    await clock.advance(100);
    expect(await proof).toMatchObject({ kind: "failed", finding: { state: "silent" } });
  });

  test("failed when one type of the test point is a copy, and a type like it is gone", async () => {
    const { prove, asks } = start({ ...everyType(GONE), A: there(250), TXT: SILENT, AAAA: there(250) });
    expect(await prove()).toMatchObject({
      kind: "failed",
      finding: { reason: expect.stringContaining("no longer has its own test point 127.0.0.2") },
    });
    expect(asks()).toEqual(["A", "TXT", "AAAA", "MX"]);
  });

  test("is asked once for each group of types that does not know the name, and no more when its test point proves to be there", async () => {
    const { prove, asks, exists } = start({ ...everyType(GONE), A: there(250) });
    expect(await prove()).toEqual({ kind: "alive" });
    expect(asks()).toEqual(["A", "TXT", "AAAA", "A"]);
    expect(await exists()).toEqual(UNDECIDED);
    expect(asks()).toEqual([]);
  });

  test("is asked no type again that does not distinguish names", async () => {
    const { prove, asks } = start({ ...everyType(empty(600)), A: there(250) }, everyType(empty(600)));
    expect(await prove()).toEqual({ kind: "alive" });
    expect(asks()).toEqual(["A", "TXT", "TXT of a random name", "AAAA", "AAAA of a random name", "A"]);
  });
});

describe("a name", () => {
  test("with a text exists, without a question about a random name", async () => {
    const { exists, asks } = start({ TXT: there(300) });
    expect(await exists(true)).toEqual({ kind: "exists", isFresh: true, ttlS: 300 });
    expect(asks()).toEqual(["TXT"]);
  });

  test("exists by a copy only where a copy is enough", async () => {
    expect(await start({ TXT: there(250) }).exists()).toEqual({ kind: "exists", isFresh: false, ttlS: 250 });
    expect(await start({ TXT: there(250) }).exists(true)).toEqual(UNDECIDED);
  });

  test("is asked by another type while a copy of its text may be cached, and by text from its expiry on", async () => {
    const { exists, asks, clock } = start({ TXT: there(300) });
    await exists();
    await clock.advance(299_999);
    asks();
    await exists();
    expect(asks()).not.toContain("TXT");
    await clock.advance(1);
    await exists();
    expect(asks()).toEqual(["TXT"]);
  });

  test("that does not exist is undecided unless the type is known to find entries", async () => {
    const { exists, prove, says, clock } = start({ TXT: GONE, AAAA: GONE });
    expect(await exists()).toEqual(UNDECIDED);
    says.point = { A: there(300), TXT: empty(600) };
    await prove();
    await clock.advance(600_000);
    says.point = { TXT: GONE };
    expect(await exists()).toEqual({ kind: "absent", isFresh: false, ttlS: 600 });
    says.point = { TXT: there(250) };
    expect(await exists(true)).toEqual(UNDECIDED);
  });

  test("is undecided when nothing responds", async () => {
    const { exists, asks } = start();
    expect(await exists()).toEqual(UNDECIDED);
    expect(asks()).toEqual(["TXT", "AAAA"]);
  });

  test.each([
    [599, true],
    [598, false],
  ])(
    "without records exists when a random name does not; with a TTL of %i of 600 it is fresh: %p",
    async (ttlS, isFresh) => {
      expect(await start({ TXT: empty(ttlS) }).exists()).toEqual({ kind: "exists", isFresh, ttlS });
    },
  );

  test("is not asked again by a type for which random names exist, too", async () => {
    const { exists, asks, clock } = start({ TXT: empty(600) }, { TXT: empty(600) });
    expect(await exists()).toEqual(UNDECIDED);
    await clock.advance(600_000);
    asks();
    expect(await exists()).toEqual(UNDECIDED);
    expect(asks()).not.toContain("TXT");
  });

  test("is asked again by a type for which the random name had no response", async () => {
    const { exists, asks, clock } = start({ TXT: empty(600) }, { TXT: SILENT });
    expect(await exists()).toEqual(UNDECIDED);
    await clock.advance(600_000);
    asks();
    await exists();
    expect(asks()).toContain("TXT of a random name");
  });
});

describe("a response two seconds later", () => {
  test.each([
    ["with the same TTL came from the list", there(250), true],
    ["with a lower TTL is a copy", there(249), false],
    ["without the entry counts whatever its TTL", ["nxdomain", 10] as const, true],
  ])("%s", async (_, reply, counts) => {
    const { prober, clock, asks } = start({ A: reply });
    const later = prober.queryLater(spamcop, PREFIX, { ttlS: 250 });
    await clock.advance(2_099);
    expect(asks()).toEqual([]);
    await clock.advance(1);
    expect((await later) !== null).toBe(counts);
  });
});
