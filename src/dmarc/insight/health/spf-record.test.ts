import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { isAlmostSpfText, isSpfText, parseSpfTerms } from "./spf-record.ts";

const faults = (text: string) =>
  parseSpfTerms(text).flatMap((term) => (term.kind === "fault" ? [[term.text, term.code]] : []));

describe("records without a fault", () => {
  test.each([
    "v=spf1 -all",
    "v=spf1",
    "v=spf1 ",
    "V=SPF1 -ALL",
    "v=spf1 +all",
    "v=spf1 a -all",
    "v=spf1 a:example.org -all",
    "v=spf1 mx -all",
    "v=spf1 mx:example.org -all",
    "v=spf1 mx mx:example.org -all",
    "v=spf1 mx/30 -all",
    "v=spf1 mx/30 mx:example.org/30 -all",
    "v=spf1 ptr -all",
    "v=spf1 ip4:192.0.2.128/28 -all",
    "v=spf1 ip4:192.0.2.0/0 ip4:255.255.255.255/32 -all",
    "v=spf1 ip6:2001:db8::/32 ip6:::1 ip6:::ffff:192.0.2.1/128 -all",
    "v=spf1 a/24//64 a//64 a:mail.example.com/24//64 ~all",
    "v=spf1 include:example.com include:example.net -all",
    "v=spf1 redirect=_spf.example.com",
    "v=spf1 mx -all exp=explain._spf.%{d}",
    "v=spf1 exists:%{ir}.%{l1r-}._spf.%{d} -all",
    "v=spf1 mx:example.com -all",
    "v=spf1 ?include:_spf.google.com ~all",
    "v=spf1 include:_spf.google.com include:spf.protection.outlook.com include:servers.mcsv.net ~all",
    "v=spf1 include:%{ir}.%{v}.%{d}.spf.has.pphosted.com ~all",
    "v=spf1 exists:%{i}._i.%{d}._d.espf.agari.com include:%{d}.a0.spf-protect.example -all",
    "v=spf1 a:mail-1.xn--bcher-kva.example. -all",
    "v=spf1  ip4:192.0.2.1   -all  ",
    "v=spf1 moo=cow -all",
    "v=spf1 include:_spf.example.com -all unknown=%{i}",
  ])("%s", (text) => {
    expect(isSpfText(text)).toBe(true);
    expect(faults(text)).toEqual([]);
  });
});

describe("records with a fault", () => {
  test.each([
    ["v=spf1 ip4:192.0.2.256 -all", "ip4:192.0.2.256", "spf_syntax"],
    ["v=spf1 ip4:192.0.2.1/33 -all", "ip4:192.0.2.1/33", "spf_syntax"],
    ["v=spf1 ip4:192.0.2.1/08 -all", "ip4:192.0.2.1/08", "spf_syntax"],
    ["v=spf1 ip4:2001:db8::1 -all", "ip4:2001:db8::1", "spf_syntax"],
    ["v=spf1 ip6:192.0.2.1 -all", "ip6:192.0.2.1", "spf_syntax"],
    ["v=spf1 ip6:2001:db8::/129 -all", "ip6:2001:db8::/129", "spf_syntax"],
    ["v=spf1 ip4: -all", "ip4:", "spf_syntax"],
    ["v=spf1 ip4:192.0.2 -all", "ip4:192.0.2", "spf_syntax"],
    ["v=spf1 ip:192.0.2.1 -all", "ip:192.0.2.1", "spf_unknown_mechanism"],
    ["v=spf1 192.0.2.1 -all", "192.0.2.1", "spf_syntax"],
    ["v=spf1 ipv4:192.0.2.1 -all", "ipv4:192.0.2.1", "spf_unknown_mechanism"],
    ["v=spf1 include -all", "include", "spf_syntax"],
    ["v=spf1 include: -all", "include:", "spf_syntax"],
    ["v=spf1 include:localhost -all", "include:localhost", "spf_syntax"],
    ["v=spf1 include:192.0.2.1 -all", "include:192.0.2.1", "spf_syntax"],
    ["v=spf1 include:example.com/24 -all", "include:example.com/24", "spf_syntax"],
    ["v=spf1 a:exam%ple.com -all", "a:exam%ple.com", "spf_syntax"],
    ["v=spf1 a:%{x}.com -all", "a:%{x}.com", "spf_syntax"],
    ["v=spf1 a:example.com/33 -all", "a:example.com/33", "spf_syntax"],
    ["v=spf1 all:example.com", "all:example.com", "spf_syntax"],
    ["v=spf1 -all;", "-all;", "spf_syntax"],
    ["v=spf1 -al", "-al", "spf_unknown_mechanism"],
    ["v=spf1 mx, -all", "mx,", "spf_syntax"],
    ["v=spf1 a\t-all", "a\t-all", "spf_syntax"],
    ["v=spf1 redirect= ", "redirect=", "spf_syntax"],
    ["v=spf1 redirect=a.example redirect=b.example", "redirect=b.example", "spf_syntax"],
    ["v=spf1 exp=a.example exp=b.example -all", "exp=b.example", "spf_syntax"],
    ["v=spf1 exists:-all", "exists:-all", "spf_syntax"],
    ["v=spf1 --all", "--all", "spf_syntax"],
  ])("%s", (text, term, code) => {
    expect(faults(text)).toEqual([[term, code]]);
  });

  test("an address alone: the finding says how to write it", () => {
    const [term] = parseSpfTerms("v=spf1 ip:192.0.2.1 -all");
    expect(term).toMatchObject({ problem: "is not a mechanism: write ip4: or ip6:" });
  });
});

test.each([
  ["v=spf1 -all", true, false],
  ["v=spf10 -all", false, true],
  ["v=spf1;-all", false, true],
  ['"v=spf1 -all"', false, true],
  [" v=spf1 -all", false, true],
  ["spf1 -all", false, true],
  ["v=spf 1 -all", false, true],
  ["spf2.0/pra -all", false, true],
  ["google-site-verification=1", false, false],
  ["v=DMARC1; p=none", false, false],
])("%s is a record: %p, was meant as one: %p", (text, isRecord, isAlmost) => {
  expect([isSpfText(text), isAlmostSpfText(text)]).toEqual([isRecord, isAlmost]);
});

test("no text throws, and the number of terms is bounded", () => {
  const piece = fc.constantFrom(
    "v=spf1",
    " ",
    "-all",
    "include:",
    "%{i}",
    "%",
    "a:",
    "/",
    "//",
    "ip4:",
    "192.0.2.1",
    "redirect=",
    "example.com",
    ".",
  );
  const text = fc
    .array(fc.oneof(piece, fc.string({ maxLength: 6 })), { maxLength: 60 })
    .map((all) => `v=spf1 ${all.join("")}`);
  fc.assert(fc.property(text, (input) => expect(parseSpfTerms(input).length).toBeLessThanOrEqual(500)));
  expect(parseSpfTerms(`v=spf1 ${"a ".repeat(30_000)}`)).toHaveLength(500);
});
