import { afterEach, describe, expect, test } from "bun:test";
import type { Answer } from "dns-packet";
import type { OnBehalfOf } from "../base/on-behalf-of.ts";
import { createTestClock } from "../../testing/clock.ts";
import {
  type DnsScript,
  encodeResponse,
  type ScriptedDnsServer,
  startDnsServer,
  soaFor,
} from "../../testing/dns-server.ts";
import { formatServer } from "./dns.ts";
import { createDnsResolver, type DnsResolverOptions } from "./dns-resolver.ts";

const stops: Array<() => void> = [];
afterEach(() => {
  for (const stop of stops.splice(0)) stop();
});

const setUp = async (script: DnsScript, options: Partial<DnsResolverOptions> = {}) => {
  const clock = createTestClock();
  const dns: ScriptedDnsServer = await startDnsServer(script);
  const resolver = createDnsResolver({ servers: [dns.server], clock, ...options });
  stops.push(() => resolver.close(), dns.stop);
  return { clock, dns, resolver };
};

const a = (name: string, data = "192.0.2.1"): Answer => ({ name, type: "A", ttl: 60, data });
const cname = (name: string, data: string): Answer => ({ name, type: "CNAME", ttl: 60, data });
const answerA: DnsScript = (query) => encodeResponse(query, { answers: [a(query.name)] });

describe("a reply", () => {
  test("carries everything that evidence needs", async () => {
    const { dns, resolver } = await setUp((query) => encodeResponse(query, { answers: [a(query.name)], flags: 0x20 }));
    expect(await resolver.resolve("Example.COM.", "A")).toEqual({
      name: "example.com",
      type: "A",
      outcome: "response",
      records: ["192.0.2.1"],
      cnames: [],
      ttlS: 60,
      authenticated: true,
      server: formatServer(dns.server),
      fromCache: false,
      elapsedMs: 0,
    });
  });

  test.each([
    ["NOERROR without records", 0, "no_data"],
    ["NXDOMAIN", 3, "nxdomain"],
    ["SERVFAIL", 2, "servfail"],
    ["REFUSED", 5, "refused"],
  ] as const)("%s is %s", async (_, rcode, outcome) => {
    const { resolver } = await setUp((query) => encodeResponse(query, { rcode, authorities: [soaFor(query.name)] }));
    expect(await resolver.resolve("example.com", "MX")).toMatchObject({ outcome, records: [], authenticated: false });
  });

  test.each(["", "a..b", "münchen.de", `${"a".repeat(64)}.com`])("nobody is asked for %p", async (name) => {
    const { dns, resolver } = await setUp(answerA);
    expect(await resolver.resolve(name, "A")).toMatchObject({ outcome: "invalid_name", server: null });
    expect(dns.seen).toEqual([]);
  });
});

describe("aliases over several responses", () => {
  const targets = new Map([
    ["a.example", "b.example"],
    ["b.example", "c.example"],
    ["x.example", "y.example"],
    ["y.example", "x.example"],
  ]);
  const script: DnsScript = (query) => {
    const target = targets.get(query.name.toLowerCase());
    return encodeResponse(query, { answers: [target ? cname(query.name, target) : a(query.name)] });
  };

  test("are followed by further questions", async () => {
    const { dns, resolver } = await setUp(script);
    const reply = await resolver.resolve("a.example", "A");
    expect(reply).toMatchObject({
      name: "a.example",
      outcome: "response",
      records: ["192.0.2.1"],
      cnames: ["b.example", "c.example"],
    });
    expect(dns.seen.map(({ name }) => name.toLowerCase())).toEqual(["a.example", "b.example", "c.example"]);
  });

  test("that lead in a circle end as such", async () => {
    const { resolver } = await setUp(script);
    expect(await resolver.resolve("x.example", "A")).toMatchObject({ outcome: "cname_loop", records: [] });
  });

  test("without end are given up after eight", async () => {
    const { dns, resolver } = await setUp((query) =>
      encodeResponse(query, { answers: [cname(query.name, `x${query.name}`)] }),
    );
    expect(await resolver.resolve("a.example", "A")).toMatchObject({ outcome: "cname_loop" });
    expect(dns.seen.length).toBe(8);
  });

  test("a target that fails is no answer about the name", async () => {
    const { resolver } = await setUp((query) =>
      query.name.toLowerCase() === "a.example"
        ? encodeResponse(query, { answers: [cname(query.name, "b.example")] })
        : encodeResponse(query, { rcode: 2 }),
    );
    expect(await resolver.resolve("a.example", "A")).toMatchObject({ outcome: "servfail", cnames: ["b.example"] });
  });
});

describe("equal questions", () => {
  test("at the same time share one query", async () => {
    const { dns, resolver } = await setUp(answerA);
    const names = ["example.com", "EXAMPLE.com", "example.com."];
    const replies = await Promise.all(names.map((name) => resolver.resolve(name, "A")));
    expect(replies.map(({ outcome }) => outcome)).toEqual(["response", "response", "response"]);
    expect(dns.seen.length).toBe(1);
  });

  test("later are answered from the cache, until the time to live is over", async () => {
    const { clock, dns, resolver } = await setUp(answerA);
    await resolver.resolve("example.com", "A");
    await clock.advance(59_000);
    expect(await resolver.resolve("example.com", "A")).toMatchObject({
      fromCache: true,
      ttlS: 1,
      records: ["192.0.2.1"],
    });
    await clock.advance(1000);
    expect(await resolver.resolve("example.com", "A")).toMatchObject({ fromCache: false, ttlS: 60 });
    expect(dns.seen.length).toBe(2);
  });

  test("of another type are other questions", async () => {
    const { dns, resolver } = await setUp((query) => encodeResponse(query, { authorities: [soaFor(query.name)] }));
    await resolver.resolve("example.com", "A");
    await resolver.resolve("example.com", "AAAA");
    expect(dns.seen.length).toBe(2);
  });

  test("are asked anew after a timeout", async () => {
    const { clock, dns, resolver } = await setUp((query) =>
      dns.seen.length <= 2 ? undefined : encodeResponse(query, { answers: [a(query.name)] }),
    );
    const first = resolver.resolve("example.com", "A");
    await dns.received(1);
    await clock.advance(2000);
    await dns.received(2);
    await clock.advance(4000);
    expect(await first).toMatchObject({ outcome: "timeout", server: formatServer(dns.server), elapsedMs: 6000 });
    expect(await resolver.resolve("example.com", "A")).toMatchObject({ outcome: "response" });
  });
});

describe("a caller's patience", () => {
  test("ends its own wait only", async () => {
    const told = Promise.withResolvers<void>();
    const { clock, dns, resolver } = await setUp(async (query) => {
      await told.promise;
      return answerA(query);
    });
    const patient = resolver.resolve("example.com", "A");
    const hurried = resolver.resolve("example.com", "A", { timeoutMs: 500 });
    const controller = new AbortController();
    const leaving = resolver.resolve("example.com", "A", { signal: controller.signal });
    await dns.received(1);
    await clock.advance(500);
    controller.abort();
    expect(await hurried).toMatchObject({ outcome: "timeout", elapsedMs: 500 });
    expect(await leaving).toMatchObject({ outcome: "aborted" });
    told.resolve();
    expect(await patient).toMatchObject({ outcome: "response" });
  });

  test("a signal fired before asks nobody", async () => {
    const { dns, resolver } = await setUp(answerA);
    const reply = await resolver.resolve("example.com", "A", { signal: AbortSignal.abort() });
    expect(reply.outcome).toBe("aborted");
    expect(dns.seen).toEqual([]);
  });
});

describe("limits", () => {
  test("more questions than may be under way wait, and more than may wait are turned away", async () => {
    const told = Promise.withResolvers<void>();
    const hold: DnsScript = async (query) => {
      await told.promise;
      return answerA(query);
    };
    const { dns, resolver } = await setUp(hold, { underWayMax: 1, waitingMax: 1 });
    const first = resolver.resolve("a.example", "A");
    const second = resolver.resolve("b.example", "A");
    expect(await resolver.resolve("c.example", "A")).toMatchObject({ outcome: "overloaded", server: null });
    await dns.received(1);
    expect(dns.seen.length).toBe(1);
    told.resolve();
    expect([(await first).outcome, (await second).outcome]).toEqual(["response", "response"]);
  });

  test("a thousand questions over twenty places are all answered", async () => {
    const { dns, resolver } = await setUp(answerA, { underWayMax: 20 });
    const names = Array.from({ length: 1000 }, (_, n) => `host${n}.example`);
    const replies = await Promise.all(names.map((name) => resolver.resolve(name, "A")));
    expect(replies.every(({ outcome, name }, n) => outcome === "response" && name === names[n])).toBe(true);
    expect(dns.seen.length).toBe(1000);
  });

  test("a list's question goes first once a single check waits for it, too; other lists' questions come by turns", async () => {
    const held: Array<() => void> = [];
    const hold: DnsScript = async (query) => {
      await new Promise<void>((resolve) => held.push(resolve));
      return answerA(query);
    };
    const { dns, resolver } = await setUp(hold, { underWayMax: 1, waitingMax: 100 });
    const ask = (name: string, account: string, priority: OnBehalfOf["priority"]) =>
      resolver.resolve(`${name}.example`, "A", { onBehalfOf: { account, priority } });
    const all = [
      ask("x1", "x", "bulk"),
      ask("x2", "x", "bulk"),
      ask("x3", "x", "bulk"),
      ask("y1", "y", "bulk"),
      ask("shared", "x", "bulk"),
      ask("shared", "z", "realtime"),
    ];
    for (let n = 1; n <= 5; n++) {
      await dns.received(n);
      held.shift()?.();
    }
    await Promise.all(all);
    expect(dns.seen.map(({ name }) => name.toLowerCase().replace(".example", ""))).toEqual([
      "x1",
      "shared",
      "x2",
      "y1",
      "x3",
    ]);
  });

  test("closing ends what is under way, and what comes later", async () => {
    const { clock, dns, resolver } = await setUp(() => undefined);
    const pending = resolver.resolve("example.com", "A");
    await dns.received(1);
    resolver.close();
    expect((await pending).outcome).toBe("aborted");
    expect((await resolver.resolve("other.example", "A")).outcome).toBe("aborted");
    expect(clock.pending()).toBe(0);
  });
});
