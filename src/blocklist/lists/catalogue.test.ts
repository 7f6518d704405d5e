import { describe, expect, test } from "bun:test";
import embedded from "../../../fixtures/blocklists.json" with { type: "json" };
import { isEnabled, severityOf, zoneOf } from "./blocklist.ts";
import { parseCatalogue, readEmbeddedCatalogue } from "./catalogue.ts";
import { EMBEDDED_CATALOGUE } from "./embedded-catalogue.ts";

const GOOD = {
  id: "one",
  name: "One",
  operator: "Somebody",
  kinds: ["ipv4"],
  zone: "bl.example.org",
  codes: [
    { match: ["127.0.0.2"], id: "one", name: "One", meaning: "Sent spam.", category: "spam", severity: "high" },
    { match: ["127.0.0.3"], id: "one-more", name: "More", meaning: "Worse.", category: "spam", severity: "critical" },
  ],
  test_points: { ipv4: { positive: [{ value: "127.0.0.2" }], negative: ["127.0.0.1"] } },
  default_enabled: true,
  delist_url: null,
  confidence: "A",
};
const [FIRST_CODE, SECOND_CODE] = GOOD.codes;
const catalogueOf = (...lists: unknown[]) => ({
  version: "1",
  lists,
  excluded: [{ name: "Gone", zones: ["dead.example.org", "*.gone.example"], reason: "It lists everybody." }],
});
const problemsOf = (json: unknown): string => {
  const parsed = parseCatalogue(json);
  return parsed.ok ? "" : parsed.error.join("\n");
};

describe("a catalogue", () => {
  test("with the required fields only gets defaults", () => {
    const parsed = parseCatalogue(catalogueOf(GOOD));
    const list = parsed.ok ? parsed.value.lists[0] : undefined;
    expect(list).toMatchObject({ scope: "single", domainForm: "both", keyedZone: null, key: null, refusals: [] });
    expect(list?.budget).toEqual({ queriesPerDay: null, spacingMs: null });
    expect(list && severityOf(list)).toBe("critical");
  });

  test.each<[claim: string, json: unknown, sentence: string]>([
    ["nothing", null, "The catalogue: "],
    ["no lists", { version: "1", lists: [], excluded: [] }, "The catalogue, lists: "],
    ["an unknown field", catalogueOf({ ...GOOD, zones: "x" }), 'List "one": Unrecognized key: "zones".'],
    ["a missing field", catalogueOf({ ...GOOD, operator: undefined }), 'List "one", operator: '],
    ["a zone that is no name", catalogueOf({ ...GOOD, zone: "bl.example.org." }), 'List "one", zone: must be a name'],
    ["a zone with a space", catalogueOf({ ...GOOD, zone: "bl example.org" }), 'List "one", zone: must be a name'],
    ["an id with capitals", catalogueOf({ ...GOOD, id: "One" }), 'List "One", id: must be lower-case'],
    [
      "a keyed zone without key",
      catalogueOf({ ...GOOD, keyed_zone: "k.example.org" }),
      "keyed_zone: must be a name that",
    ],
    [
      "a code that is none",
      catalogueOf({ ...GOOD, codes: [{ ...FIRST_CODE, match: ["127.0.0"] }] }),
      'List "one", codes.0.match.0: "127.0.0" is not an address',
    ],
    [
      "a code outside 127/8",
      catalogueOf({ ...GOOD, codes: [{ ...FIRST_CODE, match: ["10.0.0.2"] }] }),
      'codes.0.match.0: "10.0.0.2" is outside 127.0.0.0/8.',
    ],
    [
      "a refusal of nothing",
      catalogueOf({ ...GOOD, refusals: [{ reason: "No.", remedy: "Ask." }] }),
      "refusals.0: must have match or outcomes.",
    ],
    ["a list twice", catalogueOf(GOOD, GOOD), 'List "one" is in the catalogue twice.'],
    ["a zone twice", catalogueOf(GOOD, { ...GOOD, id: "two" }), "The zone bl.example.org belongs to two lists."],
    ["a listing id twice", catalogueOf(GOOD, { ...GOOD, id: "two" }), 'The listing id "one" is used by two lists.'],
    [
      "overlapping codes",
      catalogueOf({ ...GOOD, codes: [FIRST_CODE, { ...SECOND_CODE, match: ["127.0.0.2-127.0.0.9"] }] }),
      'List "one": the codes 127.0.0.2 (code one) and 127.0.0.2-127.0.0.9 (code one-more) overlap.',
    ],
    [
      "an answer both code and refusal",
      catalogueOf({ ...GOOD, refusals: [{ match: ["127.0.0.3"], reason: "No.", remedy: "Ask." }] }),
      "127.0.0.3 (code one-more) and 127.0.0.3 (a refusal) overlap.",
    ],
    [
      "bits beside addresses",
      catalogueOf({ ...GOOD, codes: [FIRST_CODE, { ...SECOND_CODE, match: ["bit 8"] }] }),
      "127.0.0.2 (code one) and bit 8 (code one-more) overlap.",
    ],
    [
      "an error answer as code",
      catalogueOf({ ...GOOD, codes: [{ ...FIRST_CODE, match: ["127.255.255.254"] }] }),
      "127.255.255.254 (code one) overlaps 127.255.255.0/24",
    ],
    [
      "127.0.0.1 inside a range",
      catalogueOf({ ...GOOD, codes: [{ ...FIRST_CODE, match: ["127.0.0.0-127.0.0.255"] }] }),
      "includes 127.0.0.1",
    ],
    ["no zone at all", catalogueOf({ ...GOOD, zone: null }), "it has neither a zone nor a keyed_zone."],
    [
      "a default list that needs a key",
      catalogueOf({ ...GOOD, zone: null, keyed_zone: "{key}.bl.example.org" }),
      "it needs a key, so it cannot be enabled by default.",
    ],
    [
      "an excluded zone",
      catalogueOf({ ...GOOD, zone: "dead.example.org" }),
      "the zone dead.example.org is excluded (Gone): It lists everybody.",
    ],
    ["a zone below an excluded one", catalogueOf({ ...GOOD, zone: "bl.gone.example" }), "is excluded (Gone)"],
    ["a default list without test point", catalogueOf({ ...GOOD, test_points: {} }), "without a positive test point"],
    [
      "a test point of a foreign kind",
      catalogueOf({ ...GOOD, test_points: { ...GOOD.test_points, domain: { positive: [], negative: [] } } }),
      "it has test points for domain, which it does not list.",
    ],
    [
      "a test point that is no address",
      catalogueOf({ ...GOOD, test_points: { ipv4: { positive: [{ value: "test" }], negative: [] } } }),
      'the test point "test" is not a valid ipv4 value.',
    ],
    [
      "a test point with a foreign answer",
      catalogueOf({
        ...GOOD,
        test_points: { ipv4: { positive: [{ value: "127.0.0.2", answers: ["127.0.0.9"] }], negative: [] } },
      }),
      "a test point expects 127.0.0.9, which is not a code of the list.",
    ],
  ])("with %s is refused with a sentence", (_, json, sentence) => {
    expect(problemsOf(json)).toContain(sentence);
  });

  test("of the wrong shape gives a bounded number of sentences", () => {
    const parsed = parseCatalogue({ version: "1", lists: Array.from({ length: 100 }, () => ({})), excluded: [] });
    expect(parsed.ok ? 0 : parsed.error.length).toBe(50);
    expect(problemsOf({ version: "1", lists: [{}], excluded: [] })).toContain("List number 1, id: ");
  });
});

describe("the embedded catalogue", () => {
  const { lists, excluded } = readEmbeddedCatalogue();
  const enabled = lists.filter(isEnabled);

  test("enables only verified lists by default, for IPv4, IPv6 and domains", () => {
    expect(enabled.filter(({ confidence }) => confidence === "C")).toEqual([]);
    const count = (kind: "ipv4" | "ipv6" | "domain") => enabled.filter(({ kinds }) => kinds.includes(kind)).length;
    expect([count("ipv4"), count("ipv6"), count("domain")]).toEqual([19, 11, 6]);
  });

  test("enables no list by default that lists networks, new domains or whole providers", () => {
    expect(enabled.filter(({ scope }) => scope !== "single")).toEqual([]);
    expect(enabled.filter((list) => severityOf(list) === "info")).toEqual([]);
  });

  test("has a public zone and a positive and a negative way to test every default list", () => {
    for (const list of enabled) {
      expect(zoneOf(list)).toBe(list.zone);
      expect(Object.values(list.testPoints).some(({ positive }) => positive.length > 0)).toBe(true);
    }
  });

  test("never enables a list and a part of it", () => {
    const zones = lists.flatMap(({ zone }) => zone ?? []);
    expect(zones.filter((zone) => zones.some((other) => zone.endsWith(`.${other}`)))).toEqual([]);
    for (const part of ["sbl.spamhaus.org", "cbl.abuseat.org", "black.uribl.com"]) {
      expect(excluded.some((group) => group.zones.includes(part))).toBe(true);
    }
  });

  test.each([
    ["dnsbl.sorbs.net"],
    ["ix.dnsbl.manitu.net"],
    ["bl.spamcannibal.org"],
    ["list.dnswl.org"],
    ["red.uribl.com"],
    ["x.invaluement.com"],
  ])("excludes %s", (zone) => {
    const [first, ...rest] = embedded.lists;
    expect(problemsOf({ ...embedded, lists: [{ ...first, zone }, ...rest] })).toContain(`the zone ${zone} is excluded`);
  });

  test("has a delisting page for every default list, or says that there is none", () => {
    expect(enabled.filter(({ delistUrl }) => delistUrl === null).map(({ id }) => id)).toEqual(["gbudb-truncate"]);
  });
});

test("the embedded catalogue equals the file", () => {
  expect(EMBEDDED_CATALOGUE).toEqual(readEmbeddedCatalogue());
});
