import { expect, test } from "bun:test";
import { createZoneResolver, type Zone } from "../testing/dns-zone.ts";
import { checkReverseName, seenAddress } from "./egress-address-check.ts";

const transcriptOf = (...texts: readonly string[]) =>
  texts.map((text) => ({
    atMs: 0,
    from: text.startsWith("> ") ? ("us" as const) : ("server" as const),
    text: text.replace(/^> /, ""),
  }));
const BANNER = "220 mx.example.com [203.0.114.200] ESMTP";
const EHLO = "> EHLO probe.example";

test.each<[string, readonly string[], string | null]>([
  ["Gmail's form", [BANNER, EHLO, "250-mx.google.com at your service, [203.0.114.9]", "250 SIZE 1"], "203.0.114.9"],
  ["Exim's form", [BANNER, EHLO, "250-mx.example.com Hello probe.example [203.0.114.9]"], "203.0.114.9"],
  ["an IPv6 address", [BANNER, EHLO, "250-mx at your service, [2a00:1450:4001::1a]"], "2a00:1450:4001::1a"],
  ["an IPv6 literal", [BANNER, EHLO, "250-mx Hello [IPv6:2a00:1450::9]"], "2a00:1450::9"],
  ["a refusal", ["554 5.7.1 Service unavailable; client 203.0.114.9 blocked."], "203.0.114.9"],
  ["its own address only", [BANNER, EHLO, "250-203.0.114.1 Hello"], null],
  ["a private address", [BANNER, EHLO, "250-mx Hello [10.0.0.5]"], null],
  ["no address", [BANNER, EHLO, "250-mx.example.com", "250 SIZE 10240000"], null],
  ["nothing", [], null],
])("the address that a mail host sees: %s", (_, texts, address) => {
  expect(seenAddress(transcriptOf(...texts), "203.0.114.1")).toBe(address);
});

const PTR = "9.114.0.203.in-addr.arpa";
const GOOD: Zone = { [PTR]: { PTR: ["out.example"] }, "out.example": { A: ["203.0.114.9"] } };

test.each<[string, Zone, string, string, string]>([
  [
    "all three names agree",
    GOOD,
    "out.example",
    "ok",
    "203.0.114.9 is out.example, which resolves back to it; so does",
  ],
  [
    "another HELO name that resolves to it",
    { ...GOOD, "helo.example": { A: ["203.0.114.8", "203.0.114.9"] } },
    "helo.example",
    "ok",
    "so does the HELO name",
  ],
  ["no PTR record", {}, "helo.example", "warn", "publish: helo.example A 203.0.114.9"],
  ["no PTR record, and no name for HELO", {}, "localhost", "warn", "publish: mail.example.com A 203.0.114.9"],
  ["a PTR query that fails", { [PTR]: "servfail" }, "helo.example", "warn", "failed (servfail)"],
  [
    "a PTR record that does not lead back",
    { [PTR]: { PTR: ["out.example"] }, "out.example": { A: ["203.0.114.8"] } },
    "out.example",
    "warn",
    "does not resolve back to it. Publish: out.example A 203.0.114.9",
  ],
  ["a HELO name that is elsewhere", GOOD, "helo.example", "warn", "Publish: helo.example A 203.0.114.9"],
])("names of an egress: %s", async (_, zone, heloName, state, message) => {
  const found = await checkReverseName({ address: "203.0.114.9", heloName, resolver: createZoneResolver(zone) });
  expect([found.check, found.state]).toEqual(["egress_name", state as "ok"]);
  expect(found.message).toContain(message);
});

test("an IPv6 address is looked up as AAAA", async () => {
  const address = "2a00:1450::9";
  const ptr = "9.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.5.4.1.0.0.a.2.ip6.arpa";
  const zone: Zone = { [ptr]: { PTR: ["out.example"] }, "out.example": { AAAA: [address] } };
  const found = await checkReverseName({ address, heloName: "out.example", resolver: createZoneResolver(zone) });
  expect(found.state).toBe("ok");
});

test("of an address with more than five reverse names, the first five are looked up", async () => {
  const names = Array.from({ length: 6 }, (_, at) => `n${at}.example`);
  const resolver = createZoneResolver({ [PTR]: { PTR: names }, "n5.example": { A: ["203.0.114.9"] } });
  const found = await checkReverseName({ address: "203.0.114.9", heloName: "n5.example", resolver });
  expect(found.state).toBe("warn");
  expect(names.map((name) => resolver.countQueries(name, "A"))).toEqual([1, 1, 1, 1, 1, 0]);
});
