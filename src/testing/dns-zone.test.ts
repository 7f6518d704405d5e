import { describe, expect, test } from "bun:test";
import type { DnsType } from "../foundation/net/dns.ts";
import { createZoneResolver, type Zone } from "./dns-zone.ts";

const ZONE: Zone = {
  "example.com": { MX: [[10, "mx.example.com"]], A: ["192.0.2.1"], TXT: ["v=spf1 -all"], AAAA: "timeout" },
  "null.example": { MX: [[0, "."]] },
  "alias.example": { CNAME: "second.example" },
  "second.example": { CNAME: "example.com" },
  "dangling.example": { CNAME: "missing.example" },
  "circle.example": { CNAME: "circle.example" },
  "broken.example": "servfail",
};

test.each<[string, DnsType, object]>([
  ["example.com", "MX", { outcome: "response", records: [{ preference: 10, exchange: "mx.example.com" }] }],
  ["Example.COM.", "A", { name: "example.com", outcome: "response", records: ["192.0.2.1"] }],
  ["example.com", "TXT", { outcome: "response", records: ["v=spf1 -all"] }],
  ["example.com", "AAAA", { outcome: "timeout", records: [] }],
  ["example.com", "NS", { outcome: "no_data", records: [] }],
  ["null.example", "MX", { outcome: "response", records: [{ preference: 0, exchange: "." }] }],
  ["alias.example", "A", { outcome: "response", records: ["192.0.2.1"], cnames: ["second.example", "example.com"] }],
  ["alias.example", "CNAME", { outcome: "response", records: ["second.example"], cnames: [] }],
  ["dangling.example", "A", { outcome: "nxdomain", cnames: ["missing.example"] }],
  ["circle.example", "A", { outcome: "cname_loop" }],
  ["broken.example", "MX", { outcome: "servfail", records: [] }],
  ["unknown.example", "MX", { outcome: "nxdomain", records: [] }],
  ["constructor", "MX", { outcome: "nxdomain" }],
])("%s %s", async (name, type, expected) => {
  expect(await createZoneResolver(ZONE).resolve(name, type)).toMatchObject(expected);
});

describe("the queries", () => {
  test("is remembered in order and counted", async () => {
    const resolver = createZoneResolver(ZONE);
    await resolver.resolve("Example.com", "MX");
    await resolver.resolve("example.com", "A");
    await resolver.resolve("example.com", "MX");
    expect(resolver.queries).toEqual(["MX example.com", "A example.com", "MX example.com"]);
    expect(resolver.countQueries("example.com", "MX")).toBe(2);
  });
});

test("a fired signal gives aborted", async () => {
  const reply = await createZoneResolver(ZONE).resolve("example.com", "A", { signal: AbortSignal.abort() });
  expect(reply).toMatchObject({ outcome: "aborted", records: [] });
});
