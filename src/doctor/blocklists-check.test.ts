import { expect, test } from "bun:test";
import { systemClock } from "../foundation/base/clock.ts";
import { isEnabled } from "../blocklist/lists/blocklist.ts";
import { readEmbeddedCatalogue } from "../blocklist/lists/catalogue.ts";
import { createZoneResolver, type ZoneRecords } from "../testing/dns-zone.ts";
import { encodeResponse, startDnsServer } from "../testing/dns-server.ts";
import { checkBlocklists, checkBlocklistsThrough } from "./blocklists-check.ts";

const lists = readEmbeddedCatalogue().lists.filter(isEnabled);

test("says that all lists are unusable through a resolver, and what to do", async () => {
  const found = await checkBlocklists(lists, createZoneResolver({}));
  expect(found).toMatchObject({ check: "blocklists", state: "warn" });
  expect(found.message).toContain("None of");
  expect(found.message).toContain("POSTWARDEN_DNS_SERVERS");
});

test("names some of the lists that refuse, and how many there are", async () => {
  const zone: Record<string, ZoneRecords> = {
    "2.0.0.127.bl.spamcop.net": { A: ["127.0.0.2"] },
    "2.0.0.127.zen.spamhaus.org": { A: ["127.255.255.254"] },
  };
  const { message } = await checkBlocklists(lists, createZoneResolver(zone));
  expect(message).toContain("lists are not usable. Spamhaus ZEN:");
  expect(message).toContain("blocklist lists --test");
  expect(message).not.toContain("SpamCop");
});

test("is content when every list gives its test entry", async () => {
  const zone = { "2.0.0.127.bl.spamcop.net": { A: ["127.0.0.2"] } };
  const only = lists.filter(({ id }) => id === "spamcop");
  expect(await checkBlocklists(only, createZoneResolver(zone))).toMatchObject({ state: "ok" });
});

test("each DNS server is judged by itself", async () => {
  const answering = await startDnsServer((query) =>
    encodeResponse(query, { answers: [{ type: "A", name: query.name, ttl: 60, data: "127.0.0.2" }] }),
  );
  const refusing = await startDnsServer((query) => encodeResponse(query, { rcode: 5 }));
  const only = lists.filter(({ id }) => id === "spamcop");
  const servers = [answering.server, refusing.server];
  const found = await checkBlocklistsThrough(only, { servers, clock: systemClock, tested: null });
  answering.stop();
  refusing.stop();
  expect(found.map(({ state }) => state)).toEqual(["ok", "warn"]);
  expect(found[1]?.message).toStartWith(`Through 127.0.0.1:${refusing.server.port}: None of 1 lists`);
});

test("the service counts what its own tests found, as its pages do", async () => {
  const healthy = { state: "healthy", reason: null, remedy: null } as const;
  const tested = [
    { name: "A", ...healthy },
    { name: "B", state: "unknown", reason: null, remedy: null },
    { name: "C", state: "refused", reason: "It refuses public resolvers.", remedy: "Use your own." },
  ] as const;
  const found = await checkBlocklistsThrough([], { servers: [], clock: systemClock, tested });
  expect(found.map(({ state, message }) => [state, message])).toEqual([
    ["warn", "1 of 3 lists are not usable. C: It refuses public resolvers. Use your own."],
  ]);
});
