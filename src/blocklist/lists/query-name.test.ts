import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import ipaddr from "ipaddr.js";
import type { Blocklist, TargetKind } from "./blocklist.ts";
import { readEmbeddedCatalogue } from "./catalogue.ts";
import { formQueries, literalName } from "./query-name.ts";

const { lists } = readEmbeddedCatalogue();
const listOf = (id: string): Blocklist => {
  const list = lists.find((candidate) => candidate.id === id);
  if (!list) throw new Error(`no list ${id}`);
  return list;
};
const registrableDomain = (domain: string): string | null =>
  domain.includes(".") ? domain.split(".").slice(-2).join(".") : null;
const form = (id: string, kind: TargetKind, value: string) =>
  formQueries({ kind, value }, listOf(id), registrableDomain);
const prefixes = (id: string, kind: TargetKind, value: string): readonly string[] | string => {
  const formed = form(id, kind, value);
  return formed.ok ? formed.value.prefixes : formed.error.kind;
};

const IPV6_NIBBLES = "1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2";

/** Without `::1.2.3.4`, which ipaddr.js reads as the mapped form. */
const ipv6 = fc.ipV6().filter((value) => !/^::\d+\./.test(value));

describe("the query name", () => {
  test.each<[id: string, kind: TargetKind, value: string, expected: readonly string[]]>([
    ["spamcop", "ipv4", "192.0.2.99", ["99.2.0.192"]],
    ["spamhaus-zen", "ipv6", "2001:db8::1", [IPV6_NIBBLES]],
    ["spamhaus-zen", "ipv6", "2001:0DB8:0:0:0:0:0:1", [IPV6_NIBBLES]],
    ["spamhaus-zen", "ipv6", "::ffff:192.0.2.99", ["99.2.0.192"]],
    ["spamcop", "ipv6", "::FFFF:c000:263", ["99.2.0.192"]],
    ["spamhaus-dbl", "domain", "Mail.Example.ORG.", ["mail.example.org"]],
    ["uribl-multi", "domain", "mail.example.org", ["example.org"]],
    ["spfbl", "domain", "mail.example.org", ["mail.example.org", "example.org"]],
    ["spfbl", "domain", "example.org", ["example.org"]],
    ["spfbl", "domain", "localhost", ["localhost"]],
  ])("%s, %s %s", (id, kind, value, expected) => {
    expect(prefixes(id, kind, value)).toEqual(expected);
  });

  test("an IPv4-mapped address is of the kind IPv4", () => {
    const formed = form("spamhaus-zen", "ipv6", "::ffff:192.0.2.99");
    expect(formed.ok && formed.value.kind).toBe("ipv4");
  });

  test.each<[id: string, kind: TargetKind, value: string, why: string]>([
    ["spamcop", "ipv6", "2001:db8::1", "kind_not_listed"],
    ["spamhaus-dbl", "ipv4", "192.0.2.1", "kind_not_listed"],
    ["sem-ipv6", "ipv6", "::ffff:192.0.2.99", "kind_not_listed"],
    ["spamhaus-authbl", "ipv4", "192.0.2.1", "key_missing"],
    ["uribl-multi", "domain", "localhost", "no_registrable_domain"],
    ["spamcop", "ipv4", "192.0.2", "invalid_target"],
    ["spamcop", "ipv4", "192.0.2.01", "invalid_target"],
    ["spamhaus-zen", "ipv6", "fe80::1%eth0", "invalid_target"],
    ["spamhaus-dbl", "domain", "192.0.2.1", "invalid_target"],
    ["spamhaus-dbl", "domain", "bücher.example", "invalid_target"],
    ["spamhaus-dbl", "domain", "a..example", "invalid_target"],
    ["spamhaus-dbl", "domain", ".", "invalid_target"],
    [
      "spamhaus-dbl",
      "domain",
      `${"a".repeat(63)}.${"b".repeat(63)}.${"c".repeat(63)}.${"d".repeat(50)}`,
      "name_too_long",
    ],
  ])("%s is not queried for %s %s: %s", (id, kind, value, why) => {
    expect(prefixes(id, kind, value)).toBe(why);
  });

  test("the whole name may have 253 octets and not one more", () => {
    const host = (length: number) => `${"a.".repeat(Math.floor((length - 1) / 2))}${length % 2 === 0 ? "bb" : "b"}`;
    const room = 253 - ".dbl.spamhaus.org".length;
    expect([
      prefixes("spamhaus-dbl", "domain", host(room)),
      prefixes("spamhaus-dbl", "domain", host(room + 1)),
    ]).toEqual([[host(room)], "name_too_long"]);
  });

  test("of two names, the one that is short enough is queried", () => {
    const host = `${"a.".repeat(117)}example.org`;
    expect(prefixes("spfbl", "domain", host)).toEqual(["example.org"]);
  });

  test("a test point of IPv6 lists keeps its nibbles, though it is an IPv4-mapped address", () => {
    expect(literalName({ kind: "ipv6", value: "::ffff:7f00:2" })).toBe(
      "2.0.0.0.0.0.f.7.f.f.f.f.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0",
    );
  });

  test("a deprecated IPv4-compatible address stays what it is", () => {
    expect(literalName({ kind: "ipv6", value: "::1.2.3.4" })).toStartWith("4.0.3.0.2.0.1.0.0.0.0.0");
    const formed = form("spamhaus-zen", "ipv6", "::1.2.3.4");
    expect(formed.ok && formed.value.kind).toBe("ipv6");
  });

  test("any IPv6 address becomes 32 nibbles that spell it backwards", () => {
    fc.assert(
      fc.property(ipv6, (value) => {
        const name = literalName({ kind: "ipv6", value });
        expect(name).toMatch(/^([0-9a-f]\.){31}[0-9a-f]$/);
        const nibbles = ipaddr
          .parse(value)
          .toByteArray()
          .map((byte) => byte.toString(16).padStart(2, "0"));
        expect(name?.split(".").toReversed().join("")).toBe(nibbles.join(""));
      }),
    );
  });

  test("any text results in query names or is skipped", () => {
    fc.assert(
      fc.property(
        fc.constantFrom<TargetKind>("ipv4", "ipv6", "domain"),
        fc.string(),
        fc.nat(lists.length - 1),
        (kind, value, at) => {
          const list = lists[at] ?? listOf("spamcop");
          const formed = formQueries({ kind, value }, list, registrableDomain);
          expect(formed.ok ? formed.value.prefixes.length : formed.error.problem.length).toBeGreaterThan(0);
        },
      ),
    );
  });
});
