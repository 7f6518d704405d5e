import { expect, test } from "bun:test";
import { createRuleFinder, type RuledAddress, type SourceRule } from "./source-rules.ts";

const ADDRESS: RuledAddress = {
  ip: "192.0.2.7",
  name: "mail.host.example",
  isAsked: true,
  isGeneric: false,
  asn: 64_500,
  country: "DE",
  isAuthenticated: true,
};
const threat = (rule: Omit<SourceRule, "classification">): SourceRule => ({ ...rule, classification: "threat" });

test.each<[string, Omit<SourceRule, "classification">, Partial<RuledAddress>, boolean]>([
  ["its network", { network: "192.0.2.0/24" }, {}, true],
  ["another network", { network: "192.0.3.0/24" }, {}, false],
  ["a network of the other family", { network: "::/0" }, {}, false],
  ["its IPv6 network", { network: "2001:db8::/32" }, { ip: "2001:db8::1" }, true],
  ["its AS", { asn: 64_500 }, {}, true],
  ["an AS, when none is known", { asn: 64_500 }, { asn: null }, false],
  ["its country", { country: "DE" }, {}, true],
  ["a name above its own", { reverse_name: "host.example" }, {}, true],
  ["a name that its own only ends with", { reverse_name: "ost.example" }, {}, false],
  ["no name", { reverse_name: "none" }, { name: null }, true],
  ["no name, before the DNS was asked", { reverse_name: "none" }, { name: null, isAsked: false }, false],
  ["a generic name", { reverse_name: "generic" }, { isGeneric: true }, true],
  ["mail without authentication", { authenticated: false }, { isAuthenticated: false }, true],
  ["one condition of two", { authenticated: false, network: "192.0.2.0/24" }, {}, false],
  ["the other condition of two", { asn: 64_500, network: "192.0.3.0/24" }, {}, false],
])("a rule about %s", (_, rule, address, fits) => {
  expect(createRuleFinder([threat(rule)])({ ...ADDRESS, ...address })).toEqual(fits ? threat(rule) : null);
});

test("the first rule that fits counts", () => {
  const rules = [threat({ asn: 1 }), { ...threat({ asn: 64_500 }), classification: "authorized" as const }];
  const find = createRuleFinder([...rules, threat({ network: "192.0.2.0/24" })]);
  expect(find(ADDRESS)?.classification).toBe("authorized");
  expect(find({ ...ADDRESS, asn: 2 })?.classification).toBe("threat");
  expect(find({ ...ADDRESS, asn: 2, ip: "192.0.3.7" })).toBeNull();
});
