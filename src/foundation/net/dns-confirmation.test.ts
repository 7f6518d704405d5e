import { afterEach, describe, expect, test } from "bun:test";
import { createTestClock } from "../../testing/clock.ts";
import { type DnsScript, encodeResponse, startDnsServer } from "../../testing/dns-server.ts";
import { bareNxdomain, emptyAnswer, serveZone, UNUSUAL, WORTHLESS, withoutSoa } from "../../testing/dns-wrong.ts";
import type { Zone } from "../../testing/dns-zone.ts";
import type { DnsOutcome } from "./dns.ts";
import { createDnsResolver } from "./dns-resolver.ts";

const stops: Array<() => void> = [];
afterEach(() => {
  for (const stop of stops.splice(0)) stop();
});

const setUp = async (...scripts: DnsScript[]) => {
  const clock = createTestClock();
  const servers = await Promise.all(scripts.map((script) => startDnsServer(script)));
  const resolver = createDnsResolver({ servers: servers.map(({ server }) => server), clock });
  stops.push(() => resolver.close(), ...servers.map(({ stop }) => stop));
  return { clock, resolver, servers };
};

const ZONE: Zone = {
  "there.example": { A: ["203.0.114.1"] },
  "alias.example": { CNAME: "there.example" },
  "dangling.example": { CNAME: "gone.example" },
};
const right = serveZone(ZONE);
const noSoa = serveZone(ZONE, { "*": withoutSoa });
const empty = serveZone(ZONE, { "*": emptyAnswer });
const bare = serveZone(ZONE, { "*": bareNxdomain });
const servfail: DnsScript = (query) => encodeResponse(query, { rcode: 2 });

/** The question, what the servers do, the outcome, how often each of them was asked. */
const rows: ReadonlyArray<readonly [string, string, readonly DnsScript[], DnsOutcome, readonly number[]]> = [
  ["with an SOA counts at once", "AAAA there.example", [right, right], "no_data", [1, 0]],
  ["with an SOA counts at once, NXDOMAIN too", "A gone.example", [right, right], "nxdomain", [1, 0]],
  ["that the only server repeats: empty", "AAAA there.example", [noSoa], "unconfirmed", [2]],
  ["that the only server repeats: NXDOMAIN", "A gone.example", [noSoa], "nxdomain", [2]],
  ["that another server repeats: empty", "AAAA there.example", [noSoa, noSoa], "no_data", [1, 1]],
  ["that another server repeats: NXDOMAIN", "A gone.example", [noSoa, noSoa], "nxdomain", [1, 1]],
  ["that another server vouches for", "AAAA there.example", [noSoa, right], "no_data", [1, 1]],
  ["that another server knows better", "A there.example", [empty, right], "response", [1, 1]],
  ["that another server knows better, NXDOMAIN", "A there.example", [bare, right], "response", [1, 1]],
  [
    "that the next cannot tell, the one after it repeats",
    "A there.example",
    [empty, servfail, empty],
    "no_data",
    [1, 1, 1],
  ],
  ["that the next cannot tell", "A there.example", [empty, servfail], "unconfirmed", [2, 1]],
  ["NXDOMAIN that the next cannot tell", "A gone.example", [bare, servfail], "nxdomain", [2, 1]],
  ["that the next contradicts", "A there.example", [empty, bare], "unconfirmed", [2, 1]],
  ["NXDOMAIN that the next contradicts", "A there.example", [bare, empty], "unconfirmed", [2, 1]],
  ["NXDOMAIN that one of two contradicts", "A there.example", [bare, empty, bare], "unconfirmed", [2, 1, 1]],
  ["after a server that failed", "A there.example", [servfail, empty], "unconfirmed", [1, 2]],
  ["at the end of an alias", "A dangling.example", [noSoa], "nxdomain", [2]],
  ["an alias itself needs no second word", "A alias.example", [noSoa], "response", [1]],
];

describe("a negative response", () => {
  test.each(rows)("%s", async (_, question, scripts, outcome, counts) => {
    const { resolver, servers } = await setUp(...scripts);
    const [type, name] = question.split(" ");
    expect((await resolver.resolve(name ?? "", type === "A" ? "A" : "AAAA")).outcome).toBe(outcome);
    expect(servers.map(({ seen }) => seen.length)).toEqual([...counts]);
  });

  test.each([
    ["empty, then the record", [emptyAnswer], "response"],
    ["NXDOMAIN, then the record", [bareNxdomain], "response"],
    ["empty, then NXDOMAIN", [emptyAnswer, bareNxdomain], "unconfirmed"],
    ["NXDOMAIN, then empty", [bareNxdomain, emptyAnswer], "unconfirmed"],
  ] as const)("of a server that changes its mind: %s", async (_, wrong, outcome) => {
    const { resolver } = await setUp(serveZone(ZONE, { "A there.example": wrong }));
    expect((await resolver.resolve("there.example", "A")).outcome).toBe(outcome);
  });

  test("is asked for again with the DO bit, which the first question does not have", async () => {
    const { resolver, servers } = await setUp(noSoa);
    await resolver.resolve("there.example", "AAAA");
    expect(servers[0]?.seen.map(({ dnssecOk }) => dnssecOk)).toEqual([false, true]);
  });

  test("of a server that is named twice is not confirmed by itself", async () => {
    const clock = createTestClock();
    const { server, stop } = await startDnsServer(empty);
    const resolver = createDnsResolver({ servers: [server, server], clock });
    stops.push(() => resolver.close(), stop);
    expect((await resolver.resolve("there.example", "A")).outcome).toBe("unconfirmed");
  });

  test("is not asked of a server that was silent a moment ago", async () => {
    const { clock, resolver, servers } = await setUp(() => undefined, empty);
    const first = resolver.resolve("there.example", "A");
    await servers[0]?.received(1);
    await clock.advance(2000);
    await servers[0]?.received(2);
    await clock.advance(4000);
    expect((await first).outcome).toBe("unconfirmed");
    expect(await resolver.resolve("there.example", "MX")).toMatchObject({ outcome: "unconfirmed", elapsedMs: 0 });
    expect(servers[0]?.seen.length).toBe(2);
  });

  test("whose time is over is asked of nobody else, and nobody is thought silent for it", async () => {
    const servers = await Promise.all([empty, () => undefined, empty].map((script) => startDnsServer(script)));
    const clock = createTestClock();
    const timeouts = { totalMs: 2000 };
    const resolver = createDnsResolver({ servers: servers.map(({ server }) => server), clock, timeouts });
    stops.push(() => resolver.close(), ...servers.map(({ stop }) => stop));
    const first = resolver.resolve("there.example", "A");
    await servers[1]?.received(1);
    await clock.advance(2000);
    expect(await first).toMatchObject({ outcome: "unconfirmed", elapsedMs: 2000 });
    expect((await resolver.resolve("there.example", "MX")).outcome).toBe("no_data");
    expect(servers.map(({ seen }) => seen.length)).toEqual([2, 1, 1]);
  });

  test("that nobody confirmed stays so in the cache, and not for long", async () => {
    const { clock, resolver, servers } = await setUp(empty);
    for (const fromCache of [false, true])
      expect(await resolver.resolve("there.example", "A")).toMatchObject({ outcome: "unconfirmed", fromCache });
    await clock.advance(3000);
    expect((await resolver.resolve("there.example", "A")).fromCache).toBe(false);
    expect(servers[0]?.seen.length).toBe(4);
  });

  test("that was confirmed is known for the next callers", async () => {
    const { resolver, servers } = await setUp(noSoa);
    for (const fromCache of [false, true])
      expect(await resolver.resolve("gone.example", "A")).toMatchObject({ outcome: "nxdomain", fromCache });
    expect(servers[0]?.seen.length).toBe(2);
  });
});

describe("the only server's response", () => {
  for (const [name, wrong] of Object.entries(WORTHLESS)) {
    test(`${name}: nothing is known, the first time and out of the cache`, async () => {
      const { resolver } = await setUp(serveZone(ZONE, { "*": wrong }));
      for (const type of ["A", "A", "AAAA", "MX"] as const) {
        const { outcome, records } = await resolver.resolve("there.example", type);
        expect([type, ["response", "no_data", "nxdomain"].includes(outcome), records]).toEqual([type, false, []]);
      }
    });

    test(`${name}: the second server is believed`, async () => {
      const { resolver } = await setUp(serveZone(ZONE, { "*": wrong }), right);
      // An alias in a circle is a statement of its own.
      const expected = name === "an alias in a circle" ? "cname_loop" : "response";
      expect((await resolver.resolve("there.example", "A")).outcome).toBe(expected);
    });
  }

  for (const [name, unusual] of Object.entries(UNUSUAL)) {
    test(`${name}: as good as any`, async () => {
      const { resolver } = await setUp(serveZone(ZONE, { "*": unusual }));
      expect((await resolver.resolve("there.example", "A")).records).toEqual(["203.0.114.1"]);
      expect((await resolver.resolve("alias.example", "A")).records).toEqual(["203.0.114.1"]);
      expect((await resolver.resolve("there.example", "AAAA")).outcome).toBe("no_data");
      expect((await resolver.resolve("dangling.example", "A")).outcome).toBe("nxdomain");
      expect((await resolver.resolve("gone.example", "MX")).outcome).toBe("nxdomain");
    });
  }
});
