import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { originQueryName } from "../foundation/net/asn-lookup.ts";
import { createTestClock } from "../testing/clock.ts";
import { createZoneResolver, type Zone } from "../testing/dns-zone.ts";
import { writeMmdb } from "../testing/mmdb-writer.ts";
import { checkNetworks } from "./networks-check.ts";

const NAME = originQueryName("8.8.8.8");
const folder = mkdtempSync(join(tmpdir(), "doctor-geoip-"));
afterAll(() => rmSync(folder, { recursive: true }));

const clock = createTestClock();

test.each<[string, Zone, "ok" | "warn", string]>([
  [
    "an answer",
    { [NAME]: { TXT: ["64500 | 8.8.8.0/24 | US | arin |"] } },
    "ok",
    "8.8.8.8 is in 8.8.8.0/24 of AS64500.",
  ],
  ["no answer", { [NAME]: "timeout" }, "warn", "does not respond (timeout)"],
  ["garbage", { [NAME]: { TXT: ["blocked"] } }, "warn", "does not respond (malformed)"],
  ["a denial", {}, "warn", "so it filters responses"],
])("by DNS: %s", async (_, zone, state, message) => {
  const resolver = createZoneResolver(zone);
  const [found, ...rest] = await checkNetworks({ config: { asnLookup: "dns", geoipPaths: [] }, resolver, clock });
  expect(found).toMatchObject({ check: "asn", state });
  expect(found?.message).toContain(message);
  expect([resolver.queries, rest]).toEqual([[`TXT ${NAME}`], []]);
});

test("switched off, it says so and asks nothing", async () => {
  const resolver = createZoneResolver({});
  const found = await checkNetworks({ config: { asnLookup: "off", geoipPaths: [] }, resolver, clock });
  expect(found).toMatchObject([{ check: "asn", state: "ok" }]);
  expect(found[0]?.message).toContain("POSTWARDEN_ASN_LOOKUP is off");
  expect(resolver.queries).toEqual([]);
});

test.each([
  ["today's", 0, "ok", "(GeoLite2-ASN, 2026-01-01)"],
  ["an old one", 91, "warn", "older than 90 days"],
])("a database: %s", async (_, days, state, message) => {
  const path = join(folder, "asn.mmdb");
  writeFileSync(path, writeMmdb({}, { type: "GeoLite2-ASN", builtAtMs: clock.nowMs() - days * 86_400_000 }));
  const config = { asnLookup: "off" as const, geoipPaths: [path] };
  const [, found] = await checkNetworks({ config, resolver: createZoneResolver({}), clock });
  expect(found).toMatchObject({ check: "geoip", state });
  expect(found?.message).toContain(message);
});

test("a database that is not there fails", async () => {
  const config = { asnLookup: "off" as const, geoipPaths: [join(folder, "none.mmdb")] };
  const [, found] = await checkNetworks({ config, resolver: createZoneResolver({}), clock });
  expect(found).toEqual({
    check: "geoip",
    state: "fail",
    message: `POSTWARDEN_GEOIP_DB: ${join(folder, "none.mmdb")} cannot be used: no such file.`,
  });
});
