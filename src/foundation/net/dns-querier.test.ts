import { afterEach, describe, expect, test } from "bun:test";
import type { Answer } from "dns-packet";
import fc from "fast-check";
import { createTestClock } from "../../testing/clock.ts";
import { type DnsScript, encodeResponse, type SeenQuery, startDnsServer, soaFor } from "../../testing/dns-server.ts";
import { formatServer } from "./dns.ts";
import { createDnsResolver } from "./dns-resolver.ts";
import type { DnsResourceRecord, DnsMessage } from "./dns-message.ts";
import { readAnswer } from "./dns-querier.ts";

const stops: Array<() => void> = [];
afterEach(() => {
  for (const stop of stops.splice(0)) stop();
});

const start = async (script: DnsScript) => {
  const dns = await startDnsServer(script);
  stops.push(dns.stop);
  return dns;
};

/** A resolver over scripted servers, without a cache. */
const setUp = async (...scripts: DnsScript[]) => {
  const clock = createTestClock();
  const servers = await Promise.all(scripts.map(start));
  const resolver = createDnsResolver({ servers: servers.map((dns) => dns.server), clock, cacheEntriesMax: 0 });
  stops.push(() => resolver.close());
  const [first, second = first] = servers;
  if (!first || !second) throw new Error("no server");
  return { clock, resolver, first, second };
};

const records = (name: string): Answer[] => [{ name, type: "A", ttl: 60, data: "192.0.2.1" }];
const answer: DnsScript = (query) => encodeResponse(query, { answers: records(query.name) });
const silence: DnsScript = () => undefined;
const nxdomain: DnsScript = (query) => encodeResponse(query, { rcode: 3, authorities: [soaFor(query.name)] });
const fail =
  (rcode: number): DnsScript =>
  (query) =>
    encodeResponse(query, { rcode });

describe("silence", () => {
  test("is met with one retransmit, of another id, port and letter case", async () => {
    const { clock, resolver, first } = await setUp((query) => (first.seen.length === 1 ? undefined : answer(query)));
    const pending = resolver.resolve("some-long-name.example.com", "A");
    await first.received(1);
    await clock.advance(2000);
    expect(await pending).toMatchObject({ outcome: "response", elapsedMs: 2000 });
    const [lost, repeated] = first.seen;
    expect(repeated?.name).toBe("some-long-name.example.com");
    expect(lost?.name.toLowerCase()).toBe("some-long-name.example.com");
    expect(lost?.name).not.toBe(repeated?.name ?? "");
    expect([lost?.id, lost?.port]).not.toEqual([repeated?.id, repeated?.port]);
  });

  test("of the first server leads to the second, which is asked first for a while", async () => {
    const { clock, resolver, first, second } = await setUp(silence, answer);
    const pending = resolver.resolve("a.example", "A");
    await first.received(1);
    await clock.advance(2000);
    await first.received(2);
    await clock.advance(4000);
    expect(await pending).toMatchObject({ outcome: "response", server: formatServer(second.server) });

    expect((await resolver.resolve("b.example", "A")).elapsedMs).toBe(0);
    expect(first.seen.length).toBe(2);

    await clock.advance(30_000);
    const later = resolver.resolve("c.example", "A");
    await first.received(3);
    await clock.advance(2000);
    await first.received(4);
    await clock.advance(4000);
    expect((await later).outcome).toBe("response");
  });

  test("of all servers is a timeout within the total time", async () => {
    const { clock, resolver, first, second } = await setUp(silence, silence);
    const pending = resolver.resolve("a.example", "A");
    await first.received(1);
    await clock.advance(2000);
    await first.received(2);
    await clock.advance(4000);
    await second.received(1);
    await clock.advance(2000);
    await second.received(2);
    await clock.advance(2000);
    expect(await pending).toMatchObject({ outcome: "timeout", elapsedMs: 10_000 });
    expect(clock.pending()).toBe(0);
  });
});

describe("the next server", () => {
  test.each([
    ["SERVFAIL", fail(2)],
    ["REFUSED", fail(5)],
    ["a malformed response", (query: SeenQuery) => Buffer.concat([encodeResponse(query), Buffer.from("x")])],
  ])("is asked after %s", async (_, script) => {
    const { resolver, first, second } = await setUp(script, answer);
    expect(await resolver.resolve("a.example", "A")).toMatchObject({
      outcome: "response",
      server: formatServer(second.server),
    });
    expect(first.seen.length).toBe(1);
  });

  test("is not asked after a no", async () => {
    const { resolver, second } = await setUp(nxdomain, answer);
    expect((await resolver.resolve("a.example", "A")).outcome).toBe("nxdomain");
    expect(second.seen.length).toBe(0);
  });

  test("that is down does not hide what the first one said", async () => {
    const { resolver, first, second } = await setUp(fail(2), answer);
    second.stop();
    expect(await resolver.resolve("a.example", "A")).toMatchObject({
      outcome: "servfail",
      server: formatServer(first.server),
    });
  });

  test("a closed port is a network error, at once", async () => {
    const { resolver, first } = await setUp(answer);
    first.stop();
    expect(await resolver.resolve("a.example", "A")).toMatchObject({ outcome: "network_error", elapsedMs: 0 });
  });
});

describe("packets that are not the answer", () => {
  const lie =
    (parts: object): DnsScript =>
    (query) => [
      encodeResponse(query, { answers: [{ name: query.name, type: "A", ttl: 60, data: "192.0.2.66" }], ...parts }),
      encodeResponse(query, { answers: records(query.name) }),
    ];
  test.each([
    ["a wrong id", (query: SeenQuery) => lie({ id: query.id ^ 1 })(query)],
    ["another name", lie({ question: { name: "b.example", type: "A" } })],
    ["another type", lie({ question: { name: "a.example", type: "MX" } })],
    [
      "garbage",
      (query: SeenQuery) => [
        Buffer.from("garbage, and more of it"),
        encodeResponse(query, { answers: records(query.name) }),
      ],
    ],
    [
      "an empty packet",
      (query: SeenQuery) => [new Uint8Array(0), encodeResponse(query, { answers: records(query.name) })],
    ],
    ["the query echoed", (query: SeenQuery) => [query.bytes, encodeResponse(query, { answers: records(query.name) })]],
  ])("%s is ignored, and the answer behind it counts", async (_, script) => {
    const { resolver } = await setUp(script);
    expect(await resolver.resolve("a.example", "A")).toMatchObject({ outcome: "response", records: ["192.0.2.1"] });
  });

  test("a packet from another port is ignored", async () => {
    const refused = Promise.withResolvers<void>();
    const socket = { error: () => refused.resolve() };
    const other = await Bun.udpSocket({ hostname: "127.0.0.1", port: 0, socket });
    stops.push(() => other.close());
    const { resolver } = await setUp(async (query) => {
      const forged = [{ name: query.name, type: "A", ttl: 60, data: "192.0.2.66" } as const];
      other.send(encodeResponse(query, { answers: forged }), query.port, "127.0.0.1");
      // The system has turned the forged packet away before the true answer leaves.
      await refused.promise;
      return answer(query);
    });
    expect((await resolver.resolve("a.example", "A")).records).toEqual(["192.0.2.1"]);
  });

  test("our id with an unreadable question is malformed, not silence", async () => {
    const { clock, resolver, first } = await setUp((query) => encodeResponse(query).subarray(0, 14));
    const pending = resolver.resolve("a.example", "A");
    await first.received(1);
    await clock.advance(2000);
    expect((await pending).outcome).toBe("malformed");
  });

  test("any bytes behind the right question end the question, and never wrongly", async () => {
    let tail: Uint8Array = new Uint8Array(0);
    const { resolver } = await setUp((query) => {
      const bytes = Buffer.concat([encodeResponse(query), tail]);
      bytes.writeUInt16BE(1, 6);
      return bytes;
    });
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ minLength: 1, maxLength: 30 }), async (bytes) => {
        tail = bytes;
        const reply = await resolver.resolve("a.example", "A");
        expect(["malformed", "unconfirmed"]).toContain(reply.outcome);
      }),
    );
  });
});

describe("letter case", () => {
  const folding: DnsScript = (query) => {
    const name = query.name.toLowerCase();
    return encodeResponse(query, { question: { name, type: "A" }, answers: records(name) });
  };

  test("a server that changes it is asked again in lower case at once, and then only so", async () => {
    const { resolver, first } = await setUp(folding);
    expect(await resolver.resolve("some-long-name.example", "A")).toMatchObject({ outcome: "response", elapsedMs: 0 });
    expect(first.seen.map(({ name }) => name === name.toLowerCase())).toEqual([false, true]);
    await resolver.resolve("other-long-name.example", "A");
    expect(first.seen.length).toBe(3);
  });

  test("is mixed again after ten minutes", async () => {
    const { clock, resolver, first } = await setUp(folding);
    await resolver.resolve("some-long-name.example", "A");
    await clock.advance(600_000);
    await resolver.resolve("some-long-name.example", "A");
    expect(first.seen.length).toBe(4);
  });
});

describe("EDNS", () => {
  test.each([1, 4])("a server that answers it with code %d is asked without, and then only so", async (rcode) => {
    const { resolver, first } = await setUp((query) =>
      query.ednsBytes === undefined ? answer(query) : encodeResponse(query, { rcode, question: null }),
    );
    expect(await resolver.resolve("a.example", "A")).toMatchObject({ outcome: "response" });
    expect(first.seen.map(({ ednsBytes }) => ednsBytes)).toEqual([1232, undefined]);
    expect(await resolver.resolve("b.example", "A")).toMatchObject({ outcome: "response" });
    expect(first.seen.length).toBe(3);
  });

  test("FORMERR to a plain query is a failure", async () => {
    const { resolver, first } = await setUp(fail(1));
    expect((await resolver.resolve("a.example", "A")).outcome).toBe("servfail");
    expect(first.seen.length).toBe(2);
  });
});

describe("truncated responses", () => {
  const truncated = (query: SeenQuery) => encodeResponse(query, { flags: 0x0200 });

  test("are asked for again over TCP", async () => {
    const texts = Array.from({ length: 200 }, (_, n) => `${n}:${"x".repeat(200)}`);
    const { resolver, first } = await setUp((query) =>
      query.transport === "udp"
        ? truncated(query)
        : encodeResponse(query, {
            answers: texts.map((data): Answer => ({ name: query.name, type: "TXT", ttl: 60, data: [data] })),
          }),
    );
    expect(await resolver.resolve("a.example", "TXT")).toMatchObject({ outcome: "response", records: texts });
    expect(first.seen.map(({ transport }) => transport)).toEqual(["udp", "tcp"]);
  });

  test("a truncated answer is never used, also when TCP is silent", async () => {
    const { clock, resolver, first } = await setUp((query) =>
      query.transport === "udp" ? truncated(query) : undefined,
    );
    const pending = resolver.resolve("a.example", "A");
    await first.received(2);
    await clock.advance(4000);
    expect(await pending).toMatchObject({ outcome: "timeout", elapsedMs: 4000 });
  });

  test.each([
    ["with another id", (query: SeenQuery) => encodeResponse(query, { id: query.id ^ 1 })],
    ["truncated again", truncated],
    ["of a few octets", () => Buffer.from("abc")],
    ["of none", () => new Uint8Array(0)],
  ])("a TCP response %s is malformed", async (_, respond) => {
    const { resolver } = await setUp((query) => (query.transport === "udp" ? truncated(query) : respond(query)));
    expect((await resolver.resolve("a.example", "A")).outcome).toBe("malformed");
  });
});

const message = (parts: Partial<DnsMessage>): DnsMessage => ({
  rcode: 0,
  isAuthenticated: false,
  answers: [],
  hasStrayAnswers: false,
  authorities: [],
  sizeBytes: 100,
  ...parts,
});
const a = (owner: string, data: string, ttlS = 60): DnsResourceRecord => ({ owner, type: "A", ttlS, data });
const cname = (owner: string, data: string, ttlS = 60): DnsResourceRecord => ({ owner, type: "CNAME", ttlS, data });
const ns = (owner: string): DnsResourceRecord => ({ owner, type: "NS", ttlS: 60, data: "ns.example" });
const soa = (owner: string, ttlS: number, minimumS: number): DnsResourceRecord => ({
  owner,
  type: "SOA",
  ttlS,
  data: { primary: "ns", mailbox: "h", serial: 1, refreshS: 1, retryS: 1, expireS: 1, minimumS },
});
const read = (parts: Partial<DnsMessage>) => readAnswer(message(parts), "a.example", "A");

describe("records", () => {
  test("all of the name and type count, with the least time to live", () => {
    expect(read({ answers: [a("a.example", "192.0.2.1", 90), a("a.example", "192.0.2.2", 30)] })).toEqual({
      kind: "response",
      records: ["192.0.2.1", "192.0.2.2"],
      cnames: [],
      ttlS: 30,
      isVouched: true,
    });
  });

  test("a record of another name is not believed", () => {
    expect(read({ answers: [a("b.example", "192.0.2.66"), a("a.example", "192.0.2.1")] })).toMatchObject({
      records: ["192.0.2.1"],
    });
    // Nothing but a stranger's records is no statement that the name has none.
    expect(read({ answers: [a("b.example", "192.0.2.66")] }).kind).toBe("malformed");
  });

  test("aliases are followed in any order, and shorten the time to live", () => {
    const answers = [a("c.example", "192.0.2.1"), cname("b.example", "c.example", 7), cname("a.example", "b.example")];
    expect(read({ answers })).toEqual({
      kind: "response",
      records: ["192.0.2.1"],
      cnames: ["b.example", "c.example"],
      ttlS: 7,
      isVouched: true,
    });
  });

  test("a question about the alias itself follows nothing", () => {
    const reading = readAnswer(message({ answers: [cname("a.example", "b.example")] }), "a.example", "CNAME");
    expect(reading).toMatchObject({ kind: "response", records: ["b.example"], cnames: [] });
  });

  test("an alias without what lies behind it is to be followed by another question", () => {
    expect(read({ answers: [cname("a.example", "b.example")] })).toMatchObject({
      kind: "follow",
      cnames: ["b.example"],
    });
  });
});

describe("no records", () => {
  test.each([
    ["the lesser of both", [soa("example", 50, 20)], 20],
    ["the lesser of both, other way", [soa("example", 10, 20)], 10],
    ["the root's zone too", [soa(".", 10, 20)], 10],
    ["an SOA that may not be kept", [soa("example", 0, 0)], 0],
  ])("an SOA vouches for a no, and gives its time to live: %s", (_, authorities, ttlS) => {
    const said = { records: [], cnames: [], ttlS, isVouched: true };
    expect(read({ authorities })).toEqual({ kind: "no_data", ...said });
    expect(read({ rcode: 3, authorities })).toEqual({ kind: "nxdomain", ...said });
  });

  test.each([
    ["no SOA", []],
    ["the SOA of a foreign zone", [soa("other", 10, 20)]],
    ["the SOA of a zone whose name only ends alike", [soa("xample", 10, 20)]],
    ["the SOA of a name below", [soa("www.a.example", 10, 20)]],
  ])("%s vouches for nothing", (_, authorities) => {
    const said = { records: [], cnames: [], ttlS: 0, isVouched: false };
    expect(read({ authorities })).toEqual({ kind: "no_data", ...said });
    expect(read({ rcode: 3, authorities })).toEqual({ kind: "nxdomain", ...said });
  });

  test("an alias that ends nowhere is nxdomain", () => {
    expect(read({ rcode: 3, answers: [cname("a.example", "b.example")], authorities: [soa("example", 9, 9)] })).toEqual(
      {
        kind: "nxdomain",
        records: [],
        cnames: ["b.example"],
        ttlS: 9,
        isVouched: true,
      },
    );
  });

  test("an alias whose target has no such records is no_data when the SOA says so", () => {
    expect(read({ answers: [cname("a.example", "b.example")], authorities: [soa("example", 9, 9)] }).kind).toBe(
      "no_data",
    );
  });
});

describe("unknown is not no", () => {
  test.each<[string, Partial<DnsMessage>, string]>([
    ["SERVFAIL", { rcode: 2 }, "servfail"],
    ["FORMERR", { rcode: 1 }, "servfail"],
    ["NOTIMP", { rcode: 4 }, "servfail"],
    ["YXDOMAIN", { rcode: 6 }, "servfail"],
    ["BADVERS", { rcode: 16 }, "servfail"],
    ["a code whose low bits look like NXDOMAIN", { rcode: 19 }, "servfail"],
    ["REFUSED", { rcode: 5 }, "refused"],
    ["SERVFAIL with records", { rcode: 2, answers: [a("a.example", "192.0.2.1")] }, "servfail"],
    ["a referral", { authorities: [ns("example")] }, "servfail"],
    ["NXDOMAIN with the record", { rcode: 3, answers: [a("a.example", "192.0.2.1")] }, "malformed"],
    ["a referral that claims authority", { rcode: 0, authorities: [ns("."), ns("example")] }, "servfail"],
    [
      "records of another class beside an SOA",
      { hasStrayAnswers: true, authorities: [soa("example", 9, 9)] },
      "malformed",
    ],
    ["NXDOMAIN beside records of another class", { rcode: 3, hasStrayAnswers: true }, "malformed"],
    [
      "a record of another type beside an SOA",
      {
        answers: [{ owner: "a.example", type: "TXT", ttlS: 60, data: "hello" }],
        authorities: [soa("example", 9, 9)],
      },
      "malformed",
    ],
    [
      "an alias of somebody else beside an SOA",
      { answers: [cname("b.example", "c.example")], authorities: [soa("example", 9, 9)] },
      "malformed",
    ],
    ["an alias of itself", { answers: [cname("a.example", "a.example")] }, "cname_loop"],
    [
      "aliases in a circle",
      { answers: [cname("a.example", "b.example"), cname("b.example", "a.example")] },
      "cname_loop",
    ],
    [
      "a circle behind the name",
      { answers: [cname("a.example", "b"), cname("b", "c"), cname("c", "b")] },
      "cname_loop",
    ],
  ])("%s", (_, parts, kind) => expect(read(parts)).toEqual({ kind: kind as "servfail" }));

  test("name servers beside an SOA are no referral", () => {
    expect(read({ authorities: [ns("example"), soa("example", 9, 9)] })).toMatchObject({
      kind: "no_data",
      isVouched: true,
    });
  });

  test("eight aliases are followed, nine are not", () => {
    const chain = (length: number) =>
      Array.from({ length }, (_, n) => cname(n === 0 ? "a.example" : `n${n}`, `n${n + 1}`));
    expect(read({ answers: [...chain(8), a("n8", "192.0.2.1")] })).toMatchObject({ kind: "response" });
    expect(read({ answers: [...chain(9), a("n9", "192.0.2.1")] })).toEqual({ kind: "cname_loop" });
  });
});
