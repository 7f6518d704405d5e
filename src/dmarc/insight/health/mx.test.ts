import { expect, test } from "bun:test";
import { createZoneResolver, type Zone } from "../../../testing/dns-zone.ts";
import type { DnsResolver, TlsaRecord } from "../../../foundation/net/dns.ts";
import { checkMx } from "./mx.ts";
import { createHealthDns } from "./section-report.ts";

const PUBLIC = { A: ["8.8.4.4"] };
const check = (zone: Zone, resolver: DnsResolver = createZoneResolver(zone)) =>
  checkMx(createHealthDns(resolver), "example.com");
const codesOf = ({ findings }: Awaited<ReturnType<typeof check>>): string[] =>
  findings.map(({ code, severity }) => `${severity} ${code}`);
const withMx = (hosts: Zone, ...names: readonly string[]): Zone => ({
  "example.com": { MX: names.map((name, at) => [at, name] as const) },
  ...hosts,
});

test.each([
  ["a sound host", withMx({ "mx.a.net": PUBLIC }, "mx.a.net"), []],
  ["IPv6 only", withMx({ "mx.a.net": { AAAA: ["2607:f8b0::1"] } }, "mx.a.net"), []],
  ["an alias", withMx({ "mx.a.net": { CNAME: "b.net" }, "b.net": PUBLIC }, "mx.a.net"), ["warning mx_alias"]],
  [
    "an alias of nothing",
    withMx({ "mx.a.net": { CNAME: "b.net" } }, "mx.a.net"),
    ["warning mx_alias", "error mx_host_without_address"],
  ],
  ["no address", withMx({}, "mx.a.net"), ["error mx_host_without_address"]],
  [
    "a second host without one",
    withMx({ "mx.a.net": PUBLIC }, "mx.a.net", "b.net"),
    ["warning mx_host_without_address"],
  ],
  ["a private address", withMx({ "mx.a.net": { A: ["10.0.0.5"] } }, "mx.a.net"), ["error mx_host_not_public"]],
  ["a reserved one", withMx({ "mx.a.net": { A: ["192.0.2.1"] } }, "mx.a.net"), ["error mx_host_not_public"]],
  [
    "private beside public",
    withMx({ "mx.a.net": { A: ["8.8.4.4", "10.0.0.5"] } }, "mx.a.net"),
    ["warning mx_host_not_public"],
  ],
  ["SERVFAIL", withMx({ "mx.a.net": "servfail", "_25._tcp.mx.a.net": "nxdomain" }, "mx.a.net"), []],
  [
    "none beside an unknown one",
    withMx({ "mx.a.net": "servfail" }, "mx.a.net", "b.net"),
    ["warning mx_host_without_address"],
  ],
] as const)("%s", async (_, zone, codes) => {
  expect(codesOf(await check(zone))).toEqual([...codes]);
});

test("a host that the DNS says nothing about is not known", async () => {
  const section = await check(withMx({ "mx.a.net": "servfail", "_25._tcp.mx.a.net": "timeout" }, "mx.a.net"));
  expect(section).toMatchObject({
    status: "unknown",
    findings: [],
    hosts: [{ exchange: "mx.a.net", addresses: null, dane: null }],
  });
  expect(section.unchecked).toHaveLength(3);
});

test("of many hosts the first ten are looked up", async () => {
  const names = Array.from({ length: 40 }, (_, at) => `mx${at}.a.net`);
  const zone = withMx({}, ...names);
  const resolver = createZoneResolver(zone);
  const section = await check(zone, resolver);
  expect(section.hosts).toHaveLength(40);
  expect(resolver.queries).toHaveLength(31);
  expect(new Set(section.findings.map(({ severity }) => severity))).toEqual(new Set(["warning"]));
});

const TLSA: TlsaRecord = { usage: 3, selector: 1, matching: 1, dataBytes: 32 };
/** A resolver that validates, for which the names are signed. */
const validating = (zone: Zone, signed: readonly string[]): DnsResolver => {
  const resolver = createZoneResolver(zone);
  return {
    resolve: async (name, type, options) => ({
      ...(await resolver.resolve(name, type, options)),
      authenticated: signed.includes(name),
    }),
  };
};

test.each([
  ["usable and signed", [TLSA], ["org", "example.com", "_25._tcp.mx.a.net"], "secure", []],
  ["one of them usable", [{ ...TLSA, usage: 1 }, TLSA], ["org", "example.com", "_25._tcp.mx.a.net"], "secure", []],
  ["not signed", [TLSA], ["org", "example.com"], "insecure", ["warning dane_without_dnssec"]],
  ["MX records not signed", [TLSA], ["org", "_25._tcp.mx.a.net"], "insecure", ["warning dane_without_dnssec"]],
  ["a resolver that does not validate", [TLSA], [], "not_known", ["info dane_not_known"]],
  ["usage 1", [{ ...TLSA, usage: 1 }], ["org"], "unusable", ["warning dane_unusable"]],
  ["a digest of the wrong length", [{ ...TLSA, dataBytes: 20 }], ["org"], "unusable", ["warning dane_unusable"]],
  ["an unknown selector", [{ ...TLSA, selector: 2 }], ["org"], "unusable", ["warning dane_unusable"]],
  ["a whole key", [{ ...TLSA, matching: 0, dataBytes: 294 }], [], "not_known", ["info dane_not_known"]],
  ["none", [], ["org"], "none", []],
] as const)("DANE: %s", async (_, records, signed, dane, codes) => {
  const zone = withMx({ "mx.a.net": PUBLIC, "_25._tcp.mx.a.net": { TLSA: records } }, "mx.a.net");
  const section = await check(zone, validating(zone, signed));
  expect(section.hosts[0]?.dane).toBe(dane);
  expect(codesOf(section)).toEqual([...codes]);
});
