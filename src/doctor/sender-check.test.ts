import { expect, test } from "bun:test";
import { createZoneResolver, type Zone } from "../testing/dns-zone.ts";
import { checkHelo, checkSender } from "./sender-check.ts";

const NAME = { "probe.example": { A: ["203.0.114.1"] } } as const;
const PTR = "1.114.0.203.in-addr.arpa";

test.each<[string, Zone, string, RegExp]>([
  ["a name that leads back", { ...NAME, [PTR]: { PTR: ["probe.example"] } }, "ok", /PTR record matches/],
  ["a name without PTR", NAME, "warn", /no PTR record/],
  ["a name whose PTR cannot be looked up", { ...NAME, [PTR]: "servfail" }, "warn", /query failed.*servfail/],
  ["a name without address", { "probe.example": { TXT: ["hello"] } }, "fail", /no A or AAAA record/],
  ["a name that is not there", {}, "fail", /no A or AAAA record/],
  ["a name that cannot be looked up", { "probe.example": "unconfirmed" }, "warn", /failed.*unconfirmed/],
  [
    "a name of which half is known",
    { "probe.example": { AAAA: "timeout" } },
    "warn",
    /query for probe.example failed.*timeout/,
  ],
])("HELO: %s", async (_, zone, state, message) => {
  const found = await checkHelo({ heloName: "probe.example" }, createZoneResolver(zone));
  expect([found.check, found.state]).toEqual(["helo", state as typeof found.state]);
  expect(found.message).toMatch(message);
});

test.each<[string, Zone, string, RegExp]>([
  ["with MX", { "x.example": { MX: [[10, "mx.x.example"]] } }, "ok", /accepts mail/],
  ["with an IPv6 address only", { "x.example": { AAAA: ["2a00:1450::25"] } }, "ok", /accepts mail/],
  ["with neither", { "x.example": { TXT: ["hello"] } }, "fail", /no MX, A or AAAA record/],
  ["that cannot be looked up", { "x.example": { MX: "unconfirmed" } }, "warn", /failed.*unconfirmed/],
])("the sender's domain %s", async (_, zone, state, message) => {
  const found = await checkSender({ mailFrom: "verify@x.example" }, createZoneResolver(zone));
  expect([found.check, found.state]).toEqual(["mail_from", state as typeof found.state]);
  expect(found.message).toMatch(message);
});

test.each([
  ["[203.0.113.5]", "warn", "is an address literal"],
  ["probe", "fail", '"probe" is not a fully qualified host name'],
])("the HELO name %s is not looked up: %s", async (heloName, state, message) => {
  const resolver = createZoneResolver({ probe: { A: ["203.0.113.5"] } });
  const found = await checkHelo({ heloName }, resolver);
  expect([found.check, found.state]).toEqual(["helo", state as typeof found.state]);
  expect(found.message).toContain(message);
  expect(resolver.queries).toEqual([]);
});
