import { describe, expect, test } from "bun:test";
import { createAddressPolicy } from "../../foundation/net/public-address.ts";
import type { ListResponse, ListClient } from "./list-client.ts";
import type { Blocklist, Category, TargetKind } from "./blocklist.ts";
import { readEmbeddedCatalogue } from "./catalogue.ts";
import type { DecodedResponse } from "./decode.ts";
import { canaryPrefix, halfOf, randomPublicTarget, sampleList, unlistableTargets } from "./list-sample.ts";

const [SOME_LIST] = readEmbeddedCatalogue().lists;
if (SOME_LIST === undefined) throw new Error("an empty catalogue");
const LIST: Blocklist = { ...SOME_LIST, id: "some", budget: { queriesPerDay: null, spacingMs: null } };

/** The generator of Park and Miller: the same numbers in each run. */
const randomFrom = (seed: number) => {
  let state = seed;
  return {
    integer(below: number): number {
      state = (state * 48_271) % 2_147_483_647;
      return Math.floor((state / 2_147_483_647) * below);
    },
  };
};

const NOT_LISTED: DecodedResponse = { outcome: "not_listed", ignored: [] };
const listedAs = (category: Category): DecodedResponse => ({
  outcome: "listed",
  listings: [{ id: "some", name: "Some", meanings: [], category, severity: "low", returnCodes: ["127.0.0.2"] }],
});

const clientOf = (answerTo: (prefix: string) => DecodedResponse) => {
  const asked: string[] = [];
  const client: Pick<ListClient, "query"> = {
    async query(_, prefix): Promise<ListResponse> {
      asked.push(prefix);
      return { queryName: prefix, returnCodes: ["127.0.0.2"], decoded: answerTo(prefix), ttlS: 0 };
    },
  };
  return { asked, client };
};

const sampleOf = (answerTo: (prefix: string) => DecodedResponse, kind: TargetKind = "ipv4", seed = 7, list = LIST) =>
  sampleList({ client: clientOf(answerTo).client, random: randomFrom(seed) }, list, kind);

const octets = (prefix: string): readonly number[] => prefix.split(".").toReversed().map(Number);
/** RFC 5737. */
const isDocumentation = (prefix: string): boolean => {
  const [a, b, c] = octets(prefix);
  return (a === 192 && b === 0 && c === 2) || (a === 198 && b === 51) || (a === 203 && b === 0);
};

describe("a list", () => {
  test.each<[claim: string, kind: TargetKind, answerTo: (prefix: string) => DecodedResponse]>([
    ["of the world", "ipv4", () => listedAs("spam")],
    [
      "of the world but for the documentation ranges",
      "ipv4",
      (p) => (isDocumentation(p) ? NOT_LISTED : listedAs("spam")),
    ],
    ["of the lower half", "ipv4", (p) => ((octets(p)[0] ?? 0) < 128 ? listedAs("spam") : NOT_LISTED)],
    [
      "of the upper half, documentation excepted",
      "ipv4",
      (p) => ((octets(p)[0] ?? 0) >= 128 && !isDocumentation(p) ? listedAs("spam") : NOT_LISTED),
    ],
    ["of the lower half by policy", "ipv4", (p) => ((octets(p)[0] ?? 0) < 128 ? listedAs("policy") : NOT_LISTED)],
    ["of all networks", "ipv4", () => listedAs("asn")],
    ["of all IPv6", "ipv6", () => listedAs("spam")],
    [
      "of IPv6 but for the documentation range",
      "ipv6",
      (p) => (p.endsWith("8.b.d.0.1.0.0.2") ? NOT_LISTED : listedAs("policy")),
    ],
    ["of all names", "domain", () => listedAs("spam")],
    ["of all names below com", "domain", (p) => (p.endsWith(".com") ? listedAs("spam") : NOT_LISTED)],
    [
      "that answers everything with a strange code",
      "ipv4",
      () => ({ outcome: "failed", cause: "unrecognised", reason: "" }),
    ],
  ])("%s lists everything", async (_, kind, answerTo) => {
    for (let seed = 1; seed <= 50; seed += 1) {
      expect((await sampleOf(answerTo, kind, seed)).everything).not.toBeNull();
    }
  });

  test.each<[claim: string, share: number, category: Category]>([
    ["of nobody", 0, "spam"],
    ["of 1 % of all addresses", 0.01, "spam"],
    ["of 5 % of all addresses", 0.05, "spam"],
    ["of networks with 10 % of all addresses", 0.1, "asn"],
    ["of a third of all addresses by policy", 0.35, "policy"],
  ])("%s does not", async (_, share, category) => {
    const draw = randomFrom(99);
    const isOn = () => draw.integer(10_000) < share * 10_000;
    const answerTo = (prefix: string) => (!isDocumentation(prefix) && isOn() ? listedAs(category) : NOT_LISTED);
    for (let seed = 1; seed <= 500; seed += 1) {
      expect((await sampleOf(answerTo, "ipv4", seed)).everything).toBeNull();
    }
  });

  test("that responds for its test points only is reported as failing, after three queries", async () => {
    const { client, asked } = clientOf(() => ({ outcome: "failed", cause: "unreachable", reason: "" }));
    const sample = await sampleList({ client, random: randomFrom(3) }, LIST, "ipv4");
    expect(sample.failure).not.toBeNull();
    expect(asked).toHaveLength(3);
  });

  test("of domains is sampled by names only, one of addresses by addresses", async () => {
    for (const [kind, form] of [
      ["domain", /[a-z]/],
      ["ipv4", /^(?:\d{1,3}\.){3}\d{1,3}$/],
    ] as const) {
      const { client, asked } = clientOf(() => NOT_LISTED);
      await sampleList({ client, random: randomFrom(3) }, LIST, kind);
      const random = asked.slice(unlistableTargets(kind, randomFrom(3)).length);
      expect(random.filter((prefix) => !form.test(prefix))).toEqual([]);
      expect(random.length > 0).toBe(kind === "ipv4");
    }
  });

  test("cannot contain the canary: a random label, below invalid for names (RFC 6761 §6.4)", () => {
    expect(canaryPrefix("domain", randomFrom(3))).toMatch(/^[a-z0-9]{16}\.invalid$/);
    expect(canaryPrefix("ipv4", randomFrom(3))).toMatch(/^[a-z0-9]{16}$/);
  });

  test("with a small budget gets fewer queries; one that got none is not judged", async () => {
    const { client, asked } = clientOf(() => NOT_LISTED);
    const small = { ...LIST, budget: { queriesPerDay: 300, spacingMs: null } };
    await sampleList({ client, random: randomFrom(3) }, small, "ipv4");
    expect(asked).toHaveLength(5);
    const spent = await sampleOf(() => ({ outcome: "failed", cause: "not_sent", reason: "" }));
    expect(spent).toMatchObject({ everything: null, failure: null, isComplete: false });
  });
});

test("random addresses are public, in the requested half, and different each time", () => {
  const random = randomFrom(5);
  const { isAllowed } = createAddressPolicy([]);
  const seen = new Set<string>();
  for (let n = 0; n < 500; n += 1) {
    for (const kind of ["ipv4", "ipv6"] as const) {
      for (const half of [0, 1] as const) {
        const target = randomPublicTarget(kind, half, random);
        seen.add(target.value);
        expect(isAllowed(target.value)).toBe(true);
        expect(halfOf(kind, target.prefix)).toBe(half);
      }
    }
  }
  expect(seen.size).toBe(2000);
  // Random numbers that give private and multicast addresses only: then there is a fixed one in each half.
  const isFixed = (half: 0 | 1, first: number) => {
    const { value } = randomPublicTarget("ipv4", half, { integer: (below) => (below === 126 ? first : 0) });
    return isAllowed(value) ? value : null;
  };
  expect([isFixed(0, 9), isFixed(1, 110)]).toEqual(["8.0.0.1", "185.0.0.1"]);
  expect(unlistableTargets("ipv4", random).every(({ value }) => !isAllowed(value))).toBe(true);
  expect(unlistableTargets("ipv6", random).every(({ value }) => !isAllowed(value))).toBe(true);
});
