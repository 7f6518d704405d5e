import fc from "fast-check";
import { expect, test } from "bun:test";
import { readAsn, readCountry } from "./asn-lookup.ts";
import { readGeoipRecord } from "./geoip-files.ts";

const GOOGLE = { asn: 64_500, asName: "Example LLC", country: null };

test.each<[string, unknown, ReturnType<typeof readGeoipRecord>]>([
  [
    "GeoLite2-ASN, DB-IP ASN",
    { autonomous_system_number: 64_500, autonomous_system_organization: "Example LLC" },
    GOOGLE,
  ],
  [
    "GeoIP2-ISP",
    {
      autonomous_system_number: 64_500,
      autonomous_system_organization: "Example LLC",
      isp: "Example",
      organization: "E",
    },
    GOOGLE,
  ],
  [
    "GeoIP2-Enterprise",
    {
      country: { iso_code: "US", confidence: 99 },
      traits: { autonomous_system_number: 64_500, autonomous_system_organization: "Example LLC" },
    },
    { ...GOOGLE, country: "US" },
  ],
  [
    "GeoLite2-Country, GeoLite2-City, DB-IP",
    {
      continent: { code: "EU", names: { en: "Europe" } },
      country: { geoname_id: 2_921_044, is_in_european_union: true, iso_code: "DE", names: { en: "Germany" } },
      registered_country: { iso_code: "US" },
      city: { names: { en: "Berlin" } },
    },
    { asn: null, asName: null, country: "DE" },
  ],
  [
    "GeoLite2-Country of a network that is nowhere",
    { registered_country: { iso_code: "US" } },
    { asn: null, asName: null, country: "US" },
  ],
  [
    "IPinfo Lite",
    {
      asn: "AS64500",
      as_name: "Example LLC",
      as_domain: "example.com",
      country: "United States",
      country_code: "US",
      continent: "North America",
      continent_code: "NA",
    },
    { ...GOOGLE, country: "US" },
  ],
  [
    "IPinfo Country + ASN",
    { asn: "AS64500", as_name: "Example LLC", as_domain: "example.com", country: "US", country_name: "United States" },
    { ...GOOGLE, country: "US" },
  ],
  ["IPinfo ASN", { asn: "AS64500", name: "Example LLC", domain: "example.com", type: "hosting" }, GOOGLE],
  [
    "IPinfo Lite of a network that nobody announces",
    { asn: "", as_name: "", country_code: "DE", country: "Germany" },
    { asn: null, asName: null, country: "DE" },
  ],
  ["a country alone", { country_code: "de" }, { asn: null, asName: null, country: "DE" }],
  ["a name that is no AS's", { name: "Berlin" }, { asn: null, asName: null, country: null }],
  ["a number without a name", { autonomous_system_number: 64_500 }, { ...GOOGLE, asName: null }],
  ["a country's name where no code is", { country: "Germany" }, { asn: null, asName: null, country: null }],
  ["numbers that are none", { autonomous_system_number: -1, asn: "AS0" }, { asn: null, asName: null, country: null }],
  [
    "fields of other types",
    { autonomous_system_number: [1], country: 5, as_name: {}, traits: "x", asn: true },
    { asn: null, asName: null, country: null },
  ],
  ["no record at all", "text", { asn: null, asName: null, country: null }],
  ["nothing", null, { asn: null, asName: null, country: null }],
])("%s", (_, record, read) => {
  expect(readGeoipRecord(record)).toEqual(read);
});

test("whatever a record holds, a valid number, a short line and a code are read, or null", () => {
  const keys = [
    "asn",
    "as_name",
    "name",
    "country",
    "country_code",
    "registered_country",
    "traits",
    "iso_code",
    "autonomous_system_number",
    "autonomous_system_organization",
  ];
  const record = fc.dictionary(
    fc.constantFrom(...keys),
    fc.oneof(fc.anything(), fc.constantFrom("AS64500", "US", 64_500)),
  );
  fc.assert(
    fc.property(record, (value) => {
      const { asn, asName, country } = readGeoipRecord(value);
      expect(asn === null || readAsn(String(asn)) === asn).toBe(true);
      expect(asName === null || (asn !== null && asName.length <= 240 && asName.trim() === asName)).toBe(true);
      expect(country === null || readCountry(country) === country).toBe(true);
    }),
  );
});
