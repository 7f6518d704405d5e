import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import ipaddr from "ipaddr.js";
import { asQueryName, originQueryName, parseAsName, parseOrigin, readAsn, readCountry } from "./asn-lookup.ts";
import { networkOf, parseCidr } from "../base/cidr.ts";

const IP6 = "2001:db8:1:2::3";
const SINGLE = "64500 | 192.0.2.0/24 | US | arin | 2000-01-01";

test.each([
  ["192.0.2.10", "10.2.0.192.origin.asn.cymru.com"],
  ["2001:db8::1", "1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.origin6.asn.cymru.com"],
])("%s is asked for as %s", (ip, name) => {
  expect(originQueryName(ip)).toBe(name);
});

test("an AS is asked for by its number", () => {
  expect(asQueryName(64_500)).toBe("AS64500.asn.cymru.com");
});

describe("the origin of an address", () => {
  const v4 = "192.0.2.10";
  test.each<[string, string, readonly string[], ReturnType<typeof parseOrigin>]>([
    ["one record", v4, [SINGLE], { asn: 64_500, country: "US", prefix: "192.0.2.0/24" }],
    ["in quotes", v4, [`"${SINGLE}"`], { asn: 64_500, country: "US", prefix: "192.0.2.0/24" }],
    ["in quotes, twice", v4, [`""${SINGLE}" "`], { asn: 64_500, country: "US", prefix: "192.0.2.0/24" }],
    ["without blanks", v4, ["64500|192.0.2.0/24|us|arin|"], { asn: 64_500, country: "US", prefix: "192.0.2.0/24" }],
    [
      "with AS before the number",
      v4,
      ["AS64500 | 192.0.2.0/24 | US"],
      { asn: 64_500, country: "US", prefix: "192.0.2.0/24" },
    ],
    [
      "several networks announce the prefix, in one record",
      v4,
      ["64511 64500 64505 | 192.0.2.0/24 | DE | ripencc | 2000-01-01"],
      { asn: 64_500, country: "DE", prefix: "192.0.2.0/24" },
    ],
    [
      "an AS set",
      v4,
      ["{64511,64500} | 192.0.2.0/24 | DE | ripencc |"],
      { asn: 64_500, country: "DE", prefix: "192.0.2.0/24" },
    ],
    [
      "several networks announce the prefix, in several records",
      v4,
      ["64511 | 192.0.2.0/24 | DE | ripencc |", "64500 | 192.0.2.0/24 | US | arin |"],
      { asn: 64_500, country: "US", prefix: "192.0.2.0/24" },
    ],
    [
      "several prefixes: the most specific one",
      v4,
      [
        "64500 | 192.0.0.0/16 | US | arin |",
        "64511 | 192.0.2.0/24 | DE | ripencc |",
        "64501 | 192.0.0.0/20 | US | arin |",
      ],
      { asn: 64_511, country: "DE", prefix: "192.0.2.0/24" },
    ],
    [
      "a prefix with host bits",
      v4,
      ["64500 | 192.0.2.77/24 | US | arin |"],
      { asn: 64_500, country: "US", prefix: "192.0.2.0/24" },
    ],
    ["IPv6", IP6, ["64500 | 2001:DB8::/32 | JP | apnic |"], { asn: 64_500, country: "JP", prefix: "2001:db8::/32" }],
    ["no country", v4, ["64500 | 192.0.2.0/24 |  | arin |"], { asn: 64_500, country: null, prefix: "192.0.2.0/24" }],
    [
      "the country is not available",
      v4,
      ["64500 | 192.0.2.0/24 | NA | arin |"],
      { asn: 64_500, country: null, prefix: "192.0.2.0/24" },
    ],
    ["Namibia", v4, ["64500 | 192.0.2.0/24 | NA | afrinic |"], { asn: 64_500, country: "NA", prefix: "192.0.2.0/24" }],
    [
      "a region that is no country",
      v4,
      ["64500 | 192.0.2.0/24 | EU | ripencc |"],
      { asn: 64_500, country: null, prefix: "192.0.2.0/24" },
    ],
    ["two fields only", v4, ["64500 | 192.0.2.0/24"], { asn: 64_500, country: null, prefix: "192.0.2.0/24" }],
    [
      "garbage beside a good record",
      v4,
      ["", "hello", SINGLE, "| | |"],
      { asn: 64_500, country: "US", prefix: "192.0.2.0/24" },
    ],
    ["overlong", v4, [`${SINGLE}${" | x".repeat(100_000)}`], { asn: 64_500, country: "US", prefix: "192.0.2.0/24" }],
    ["overlong before anything is said", v4, [`${" ".repeat(5_000)}${SINGLE}`], null],
    ["a good record behind a hundred others", v4, [...Array<string>(100).fill("x"), SINGLE], null],
    ["nothing", v4, [], null],
    ["empty", v4, [""], null],
    ["another text", v4, ["v=spf1 -all"], null],
    ["a number that is none", v4, ["64500x | 192.0.2.0/24 | US"], null],
    ["no number", v4, ["NA | 192.0.2.0/24 | US"], null],
    ["AS 0", v4, ["0 | 192.0.2.0/24 | US"], null],
    ["a number beyond 32 bits", v4, ["4294967296 | 192.0.2.0/24 | US"], null],
    ["one number of two is none", v4, ["64500 foo | 192.0.2.0/24 | US"], null],
    ["no prefix", v4, ["64500 | 192.0.2.10 | US"], null],
    ["a prefix of another network", v4, ["64500 | 198.51.100.0/24 | US"], null],
    ["a prefix of the other family", v4, ["64500 | 2001:db8::/32 | US"], null],
    ["a prefix of everything", v4, ["64500 | 0.0.0.0/0 | US"], null],
    ["a prefix too long", v4, ["64500 | 192.0.2.0/33 | US"], null],
  ])("%s", (_, ip, records, origin) => {
    expect(parseOrigin(ip, records)).toEqual(origin);
  });

  const ipv4 = fc.ipV4();
  const ipv6 = fc.ipV6().map((text) => ipaddr.parse(text).toString());

  test("does not depend on the order of the records", () => {
    const line = fc
      .tuple(fc.integer({ min: 1, max: 9 }), fc.integer({ min: 1, max: 32 }), fc.constantFrom("US", "DE", "", "EU"))
      .map(([asn, bits, country]) => `${asn} | ${networkOf("192.0.2.10", bits)} | ${country} | arin |`);
    fc.assert(
      fc.property(fc.array(line, { maxLength: 8 }), (lines) => {
        expect(parseOrigin("192.0.2.10", lines.toReversed())).toEqual(parseOrigin("192.0.2.10", lines));
      }),
    );
  });

  test("is a prefix that holds the address, a valid number and a country or null, whatever the records say", () => {
    const field = fc.oneof(
      fc.string(),
      fc.constantFrom(
        "64500",
        "64500 64501",
        "0",
        "NA",
        "US",
        "192.0.2.0/24",
        "0.0.0.0/1",
        "128.0.0.0/1",
        "::/1",
        "8000::/1",
      ),
    );
    const record = fc.oneof(
      fc.string({ unit: "binary" }),
      fc.array(field, { maxLength: 6 }).map((fields) => fields.join("|")),
    );
    fc.assert(
      fc.property(fc.oneof(ipv4, ipv6), fc.array(record, { maxLength: 5 }), (ip, records) => {
        const origin = parseOrigin(ip, records);
        if (origin === null) return;
        const network = parseCidr(origin.prefix);
        if (!network.ok) throw new Error(origin.prefix);
        expect(networkOf(ip, Number(origin.prefix.split("/")[1]))).toBe(origin.prefix);
        expect(readAsn(String(origin.asn))).toBe(origin.asn);
        expect(origin.country === null || readCountry(origin.country) === origin.country).toBe(true);
      }),
    );
  });

  test("is found by what was written about it", () => {
    fc.assert(
      fc.property(
        ipv4,
        fc.integer({ min: 1, max: 32 }),
        fc.integer({ min: 1, max: 4_294_967_295 }),
        (ip, bits, asn) => {
          const prefix = networkOf(ip, bits);
          expect(parseOrigin(ip, [`${asn} | ${prefix} | US | arin | 2000-01-01`])).toEqual({
            asn,
            country: "US",
            prefix,
          });
        },
      ),
    );
  });
});

describe("the name of an AS", () => {
  test.each<[string, readonly string[], string | null | undefined]>([
    ["a name", ["64500 | US | arin | 2000-03-30 | EXAMPLE, US"], "EXAMPLE"],
    [
      "a name with a description",
      ["64500 | US | arin | 2000-03-30 | EXAMPLE-02 - Example, Inc., US"],
      "EXAMPLE-02 - Example, Inc.",
    ],
    ["a name with a bar", ["64500 | US | arin | 2000-03-30 | A | B, US"], "A | B"],
    ["in quotes", ['"64500 | US | arin | 2000-03-30 | EXAMPLE, US"'], "EXAMPLE"],
    ["without a country", ["64500 | | | | EXAMPLE"], "EXAMPLE"],
    ["control and format characters", ["64500 | US | arin | | EX\u0000AM\u202ePLE\n1, US"], "EX AM PLE 1"],
    ["beyond ASCII", ["64500 | BR | lacnic | | Telefônica, BR"], "Telefônica"],
    ["overlong", [`64500 | US | arin | | ${"x".repeat(5_000)}`], "x".repeat(120)],
    ["astral characters are not cut in half", [`64500 | US | arin | | ${"😀".repeat(200)}`], "😀".repeat(120)],
    ["no name", ["64500 | US | arin | 2000-03-30 | "], null],
    ["only a country", ["64500 | US | arin | 2000-03-30 | , US"], null],
    ["another AS", ["64501 | US | arin | 2000-03-30 | OTHER, US"], undefined],
    ["another AS first", ["64501 | US | arin | | OTHER, US", "64500 | US | arin | | EXAMPLE, US"], "EXAMPLE"],
    ["garbage", ["hello"], undefined],
    ["nothing", [], undefined],
  ])("%s", (_, records, name) => {
    expect(parseAsName(64_500, records)?.name).toBe(name);
  });

  test("is one line of 120 characters at most, whatever the record says", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 400 }), (text) => {
        const name = parseAsName(64_500, [`64500 | US | arin | | ${text}`])?.name ?? null;
        if (name === null) return;
        expect([...name].length).toBeLessThanOrEqual(120);
        expect(name).not.toMatch(/[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029]/u);
        expect(name).toBe(name.trim());
      }),
    );
  });
});
