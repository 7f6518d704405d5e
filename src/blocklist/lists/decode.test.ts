import fc from "fast-check";
import { describe, expect, test } from "bun:test";
import type { CodeMatch, Blocklist } from "./blocklist.ts";
import { readEmbeddedCatalogue } from "./catalogue.ts";
import { decodeResponse } from "./decode.ts";

const { lists } = readEmbeddedCatalogue();
const listOf = (id: string): Blocklist => {
  const list = lists.find((candidate) => candidate.id === id);
  if (!list) throw new Error(`no list ${id}`);
  return list;
};
const decode = (list: Blocklist, records: readonly string[]) => decodeResponse(list, { outcome: "response", records });
/** `listed` ids, or the outcome with the cause of a failure. */
const read = (list: Blocklist, records: readonly string[]): string => {
  const decoded = decode(list, records);
  if (decoded.outcome === "listed") return decoded.listings.map(({ id }) => id).join(" ");
  return decoded.outcome === "failed" ? `failed: ${decoded.cause}` : decoded.outcome;
};
const dotted = (address: number): string => [24, 16, 8, 0].map((shift) => (address >>> shift) & 0xff).join(".");
const endsOf = (match: CodeMatch): readonly string[] =>
  match.kind === "bit" ? [`127.0.0.${match.bit}`] : [dotted(match.from), dotted(match.to)];

describe.each(lists.map((list) => [list.id, list] as const))("%s", (_, list) => {
  test("decodes each of its codes as the right listing", () => {
    for (const code of list.codes) {
      for (const answer of code.matches.flatMap(endsOf)) {
        const decoded = decode(list, [answer]);
        expect(decoded.outcome === "listed" && decoded.listings.map(({ id }) => id)).toEqual([code.id]);
        expect(decoded.outcome === "listed" && decoded.listings[0]?.meanings).toEqual([code.meaning]);
      }
    }
  });

  test("decodes its refusals and the error codes of all lists as refusals with a remedy", () => {
    const answers = [
      ...list.refusals.flatMap(({ matches }) => matches.flatMap(endsOf)),
      "127.255.255.0",
      "127.255.255.255",
    ];
    for (const answer of answers) {
      const decoded = decode(list, [answer]);
      expect(decoded.outcome === "refused" && decoded.reason.length > 0 && decoded.remedy.length > 0).toBe(true);
      expect(read(list, ["127.0.0.2", answer])).toBe("refused");
    }
  });

  test("decodes its ignored codes as not listed", () => {
    for (const { matches, meaning } of list.ignores) {
      for (const answer of matches.flatMap(endsOf)) {
        expect(decode(list, [answer])).toEqual({ outcome: "not_listed", ignored: [meaning] });
      }
    }
  });

  test("decodes the codes of its own test points", () => {
    for (const { positive } of Object.values(list.testPoints)) {
      for (const answer of positive.flatMap(({ answers }) => answers)) {
        expect(["listed", "not_listed"]).toContain(decode(list, [answer]).outcome);
      }
    }
  });

  test("has no listing for codes outside 127.0.0.0/8 and undocumented codes", () => {
    expect(read(list, ["127.0.0.2", "91.195.240.117"])).toBe("failed: outside_loopback");
    expect(read(list, ["127.77.77.77"])).toBe("failed: unrecognised");
    const decoded = decode(list, ["127.77.77.77"]);
    expect(decoded.outcome === "failed" && decoded.reason).toContain("127.77.77.77");
  });
});

describe("an answer", () => {
  test.each<[id: string, records: readonly string[], expected: string]>([
    ["spamhaus-zen", ["127.0.0.2", "127.0.0.4", "127.0.0.10"], "spamhaus-sbl spamhaus-xbl spamhaus-pbl"],
    ["spamhaus-zen", ["127.0.0.2", "127.0.0.9"], "spamhaus-sbl spamhaus-drop"],
    ["spamhaus-zen", ["127.0.0.5"], "spamhaus-xbl"],
    ["spamhaus-zen", ["127.0.0.1"], "refused"],
    ["spamhaus-zen", ["127.0.0.8"], "failed: unrecognised"],
    ["spamhaus-zen", ["127.0.0.2", "127.0.0.8"], "spamhaus-sbl"],
    ["spamhaus-zen", ["127.255.255.254"], "refused"],
    ["spamhaus-dbl", ["127.0.1.255"], "refused"],
    ["spamhaus-dbl", ["127.0.1.104"], "spamhaus-dbl-abused"],
    ["spamhaus-zrd", ["127.0.2.24"], "spamhaus-zrd"],
    ["spamhaus-zrd", ["127.0.2.255"], "refused"],
    ["barracuda-brbl", ["127.0.0.3"], "failed: unrecognised"],
    ["surbl-multi", ["127.0.0.80"], "surbl-mw surbl-abuse"],
    ["surbl-multi", ["127.0.0.254"], "surbl-dm surbl-ph surbl-mw surbl-ct surbl-abuse surbl-cr"],
    ["surbl-multi", ["127.0.0.1"], "refused"],
    ["surbl-multi", ["127.0.0.65"], "refused"],
    ["surbl-multi", ["127.0.0.2"], "failed: unrecognised"],
    ["surbl-multi", ["127.0.1.8"], "failed: unrecognised"],
    ["uribl-multi", ["127.0.0.14"], "uribl-black uribl-grey uribl-red"],
    ["uribl-multi", ["127.0.0.255"], "refused"],
    ["validity-rpbl", ["127.0.0.1"], "validity-rpbl"],
    ["validity-rpbl", ["127.0.0.3"], "validity-rpbl validity-noauth"],
    ["efnetrbl", ["127.0.0.1"], "efnetrbl"],
    ["hostkarma", ["127.0.0.1"], "not_listed"],
    ["hostkarma", ["127.0.0.1", "127.0.1.1"], "not_listed"],
    ["hostkarma", ["127.0.0.3", "127.0.0.2"], "hostkarma-black"],
    ["dronebl", ["127.0.0.2"], "not_listed"],
    ["dronebl", ["127.0.0.3", "127.0.0.255"], "dronebl"],
    ["blocklist-de", ["127.0.0.1"], "refused"],
    ["blocklist-de", ["127.0.0.15"], "blocklist-de"],
    ["mailspike-bl", ["127.0.0.14"], "not_listed"],
    ["spfbl", ["127.0.0.3"], "not_listed"],
    ["spamcop", ["8.8.8.8", "127.255.255.254"], "failed: outside_loopback"],
    ["spamcop", ["not an address"], "failed: outside_loopback"],
    ["spamcop", [], "not_listed"],
  ])("%s %p means %s", (id, records, expected) => {
    expect(read(listOf(id), records)).toBe(expected);
  });

  test("of several codes of one listing is one listing of the worst severity", () => {
    const decoded = decode(listOf("spamhaus-dbl"), ["127.0.1.2", "127.0.1.4", "127.0.1.4"]);
    expect(decoded).toMatchObject({
      outcome: "listed",
      listings: [{ id: "spamhaus-dbl", severity: "critical", returnCodes: ["127.0.1.2", "127.0.1.4"] }],
    });
    expect(decoded.outcome === "listed" && decoded.listings[0]?.meanings.length).toBe(2);
  });

  test.each([[["127.0.0.2", "127.0.0.3"]], [["127.0.0.3", "127.0.0.2"]]])(
    "of codes that differ in severity counts as the worse, in whatever order they come: %p",
    (records) => {
      const [code] = listOf("psbl").codes;
      if (!code) throw new Error("a list without codes");
      const worse = {
        ...code,
        severity: "high",
        category: "phish",
        matches: [{ kind: "range", from: 0x7f000003, to: 0x7f000003 }],
      } as const;
      const decoded = decode({ ...listOf("psbl"), codes: [code, worse] }, records);
      expect(decoded).toMatchObject({ listings: [{ id: "psbl", severity: "high", category: "phish" }] });
    },
  );

  test.each([
    ["spamcop", "nxdomain", "not_listed"],
    ["spamcop", "no_data", "not_listed"],
    ["spamcop", "servfail", "failed: unreachable"],
    ["spamcop", "refused", "failed: unreachable"],
    ["spamcop", "unconfirmed", "failed: unreachable"],
    ["spamcop", "timeout", "failed: unreachable"],
    ["spamcop", "network_error", "failed: unreachable"],
    ["spamcop", "overloaded", "failed: not_sent"],
    ["spamcop", "aborted", "failed: not_sent"],
    ["barracuda-brbl", "servfail", "refused"],
    ["barracuda-brbl", "network_error", "failed: unreachable"],
  ] as const)("%s that ends in %s is %s", (id, outcome, expected) => {
    const decoded = decodeResponse(listOf(id), { outcome, records: [] });
    expect(decoded.outcome === "failed" ? `failed: ${decoded.cause}` : decoded.outcome).toBe(expected);
  });
});

describe("whatever a list returns", () => {
  const record = fc.oneof(
    fc.integer({ min: 0, max: 255 }).map((octet) => `127.0.0.${octet}`),
    fc.tuple(fc.nat(255), fc.nat(255), fc.nat(255)).map((octets) => `127.${octets.join(".")}`),
    fc.ipV4(),
    fc.string(),
  );

  test("it is never a listing without a documented code, and decoding never throws", () => {
    fc.assert(
      fc.property(fc.constantFrom(...lists), fc.array(record, { maxLength: 5 }), (list, records) => {
        const decoded = decode(list, records);
        if (decoded.outcome !== "listed") return;
        for (const listing of decoded.listings) {
          const codes = list.codes.filter(({ id }) => id === listing.id).flatMap(({ matches }) => matches);
          expect(listing.returnCodes.length).toBeGreaterThan(0);
          for (const answer of listing.returnCodes) {
            expect(records).toContain(answer);
            expect(codes.some((match) => isDocumented(match, answer))).toBe(true);
          }
        }
      }),
      { numRuns: 1000 },
    );
  });

  test("one error code invalidates the whole response", () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...lists),
        fc.array(fc.nat(255), { maxLength: 4 }),
        fc.nat(255),
        (list, octets, code) => {
          const records = [...octets.map((octet) => `127.0.0.${octet}`), `127.255.255.${code}`];
          expect(decode(list, records).outcome).toBe("refused");
        },
      ),
    );
  });
});

/** Written out by hand, apart from the code under test. */
const isDocumented = (match: CodeMatch, answer: string): boolean => {
  const octets = answer.split(".").map(Number);
  const value = octets.reduce((sum, octet) => sum * 256 + octet, 0);
  if (match.kind === "range") return value >= match.from && value <= match.to;
  return answer.startsWith("127.0.0.") && Math.floor((octets[3] ?? 0) / match.bit) % 2 === 1;
};
