import { afterEach, expect, test } from "bun:test";
import { systemClock } from "../foundation/base/clock.ts";
import { systemRandom } from "../foundation/base/secrets.ts";
import { publicResolverOf } from "../foundation/net/resolv-conf.ts";
import { createTestClock } from "../testing/clock.ts";
import {
  type DnsScript,
  encodeResponse,
  type ScriptedDnsServer,
  soaFor,
  startDnsServer,
} from "../testing/dns-server.ts";
import { checkDnsServers, publicFindings } from "./dns-check.ts";

const servers: ScriptedDnsServer[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.stop();
});

const start = async (script: DnsScript) => {
  const started = await startDnsServer(script);
  servers.push(started);
  return started;
};

const MX = {
  type: "MX",
  name: "shop.example.com",
  ttl: 60,
  data: { preference: 1, exchange: "mx.example.com" },
} as const;

/** A resolver that knows the MX of one domain, and says NXDOMAIN for everything else. */
const good: DnsScript = (query) =>
  query.type === "MX"
    ? encodeResponse(query, { answers: [MX] })
    : encodeResponse(query, { rcode: 3, authorities: [soaFor(query.name)] });

const look = async (started: readonly ScriptedDnsServer[], domain = "shop.example.com") => {
  const options = { clock: systemClock, random: systemRandom, domain };
  const found = await checkDnsServers({ ...options, servers: started.map(({ server }) => server) });
  return found.map(({ check, state, message }) => ({ is: `${check} ${state}`, message }));
};

test("a good resolver responds, over TCP too, and says NXDOMAIN", async () => {
  const server = await start(good);
  const found = await look([server]);
  expect(found.map(({ is }) => is)).toEqual(["dns ok", "dns_tcp ok", "dns_rewriting ok"]);
  expect(found[0]?.message).toMatch(/^127\.0\.0\.1:\d+ responds \(MX of shop\.example\.com, \d+ ms\)\.$/);
  expect(server.seen.filter(({ transport }) => transport === "tcp")).toHaveLength(1);
  expect(server.seen.find(({ type }) => type === "A")?.name.toLowerCase()).toMatch(/^[a-z]{24}\.com$/);
});

test("an address for a name that does not exist is a failure", async () => {
  const server = await start((query) =>
    query.type === "A"
      ? encodeResponse(query, { answers: [{ type: "A", name: query.name, ttl: 60, data: "198.51.100.9" }] })
      : good(query),
  );
  const rewriting = (await look([server])).find(({ is }) => is.startsWith("dns_rewriting"));
  expect(rewriting?.is).toBe("dns_rewriting fail");
  expect(rewriting?.message).toContain("returns 198.51.100.9 for a name that does not exist");
  expect(rewriting?.message).toContain("POSTWARDEN_DNS_SERVERS");
});

test("SERVFAIL for a name that does not exist is a warning", async () => {
  const server = await start((query) => (query.type === "A" ? encodeResponse(query, { rcode: 2 }) : good(query)));
  expect((await look([server])).map(({ is }) => is)).toContain("dns_rewriting warn");
});

test("a server without TCP is a warning that names the port", async () => {
  const server = await start((query) => (query.transport === "tcp" ? encodeResponse(query, { id: 1 }) : good(query)));
  const clock = createTestClock();
  const checking = checkDnsServers({
    ...{ clock, random: systemRandom, domain: "shop.example.com", servers: [server.server] },
  });
  await server.received(3);
  while (server.seen.filter(({ transport }) => transport === "tcp").length === 0) await clock.advance(0);
  await clock.advance(10_000);
  const tcp = (await checking).find(({ check }) => check === "dns_tcp");
  expect(tcp?.state).toBe("warn");
  expect(tcp?.message).toContain(`Allow TCP port ${server.server.port} to it.`);
});

test("a server that refuses is a failure alone, and a warning beside one that responds", async () => {
  const refusing = await start((query) => encodeResponse(query, { rcode: 5 }));
  const alone = await look([refusing]);
  expect(alone.map(({ is }) => is)).toEqual(["dns fail"]);
  expect(alone[0]?.message).toContain("failed: refused. Use another resolver");
  const both = await look([refusing, await start(good)]);
  expect(both.map(({ is }) => is)).toEqual(["dns warn", "dns ok", "dns_tcp ok", "dns_rewriting ok"]);
  expect(both[0]?.message).toContain("Remove it from POSTWARDEN_DNS_SERVERS.");
});

test("a domain without MX shows nothing about the server but that it responds", async () => {
  const server = await start((query) => encodeResponse(query, { rcode: 3, authorities: [soaFor(query.name)] }));
  const [first] = await look([server], "none.example.com");
  expect(first?.is).toBe("dns warn");
  expect(first?.message).toContain("--domain");
});

test("a domain that is no name is not the server's fault", async () => {
  const [first] = await look([await start(good)], "no name");
  expect(first?.is).toBe("dns warn");
});

test("servers that say nothing are given up within ten seconds", async () => {
  const clock = createTestClock();
  const silent = await start(() => undefined);
  const checking = checkDnsServers({
    ...{ clock, random: systemRandom, domain: "shop.example.com", servers: [silent.server] },
  });
  await silent.received(1);
  await clock.advance(10_000);
  expect(await checking).toMatchObject([{ check: "dns", state: "fail" }]);
});

test("a public resolver is a warning with what to do", () => {
  expect(publicFindings({ address: "1.1.1.1", port: 53 })).toMatchObject([
    { check: "dns", state: "warn", message: expect.stringContaining("1.1.1.1:53 is a public resolver (Cloudflare).") },
  ]);
  expect(publicFindings({ address: "127.0.0.1", port: 53 })).toEqual([]);
});

test.each([
  ["8.8.8.8", "Google Public DNS"],
  ["2606:4700:4700::1111", "Cloudflare"],
  ["127.0.0.1", null],
  ["192.168.1.1", null],
])("%s belongs to %p", (address, operator) => {
  expect(publicResolverOf(address)).toBe(operator);
});
