import { describe, expect, test } from "bun:test";
import { atOnce } from "../../../foundation/base/in-steps.ts";
import type { SourceAddress } from "./rollup-rows.ts";
import { knownServices } from "../../records/services/services.ts";
import {
  SourceIdentities,
  isSourceKey,
  organisationUnder,
  reverseNameKindOf,
  withEvidence,
} from "./source-identity.ts";

const NOTHING = { isConfirmed: true, isAsked: true, asn: null, asName: null, country: null };
/** `key` of each stored source, and the confirmed reverse name of each address. */
const identify = (
  keys: readonly string[],
  names: Readonly<Record<string, string>> = {},
  domain = "example.com",
  declaredSuffix: string | null = null,
) => {
  const organisation = organisationUnder(domain, declaredSuffix);
  const facts = new Map<string, SourceAddress>(
    Object.entries(names).map(([ip, name]) => [ip, { ip, name, ...NOTHING }]),
  );
  const sources = keys.map((key, number) =>
    withEvidence({ number, key, firstDay: 1, lastDay: 1, firstSeenAtMs: 1, isVouched: true }, organisation),
  );
  const identities = atOnce(SourceIdentities.of({ domain, organisation, sources, addresses: facts }));
  return sources.map((source) => identities.identityOf(source).key);
};

const IP = "192.0.2.1";

describe("an address is", () => {
  test.each<[string, readonly string[], Readonly<Record<string, string>>, string]>([
    ["own, by its reverse name", [`${IP} -/- - -`], { [IP]: "mail.example.com" }, "own"],
    [
      "own, by its reverse name, whatever its envelope",
      [`${IP} -/- em.sendgrid.net -`],
      { [IP]: "mx.example.com" },
      "own",
    ],
    [
      "a service that lets customers name its addresses",
      [`${IP} example.com/s1 em.example.com sendgrid.info`],
      { [IP]: "o1.em.example.com" },
      "service:sendgrid",
    ],
    [
      "own, although it hands on what a service signed",
      [`${IP} -/- - sendgrid.info`],
      { [IP]: "mx.example.com" },
      "own",
    ],
    [
      "a service, by its reverse name",
      [`${IP} example.com/s1 em.example.com -`],
      { [IP]: "o1.ptr9.sendgrid.net" },
      "service:sendgrid",
    ],
    [
      "a mailbox provider, by its reverse name",
      [`${IP} example.com/google example.com -`],
      { [IP]: "mail-ej1-f41.google.com" },
      "service:google-workspace",
    ],
    ["a service, by its envelope", [`${IP} -/- mail15.atl11.rsgsv.net -`], {}, "service:mailchimp"],
    [
      "a service by its envelope, on another one's servers",
      [`${IP} -/- mail15.atl11.rsgsv.net -`],
      { [IP]: "o1.sendgrid.net" },
      "service:mailchimp",
    ],
    ["own, by SPF, without a name", [`${IP} -/- example.com -`], {}, "own"],
    [
      "own, by SPF, on a rented server",
      [`${IP} -/- example.com -`],
      { [IP]: "ec2-192-0-2-1.compute-1.amazonaws.com" },
      "own",
    ],
    ["own, by SPF, on a line to the home", [`${IP} -/- example.com -`], { [IP]: "pool-192-0-2-1.isp.example" }, "own"],
    [
      "an organization, by its name, although SPF passes",
      [`${IP} -/- example.com -`],
      { [IP]: "relay.hoster.example" },
      "org:hoster.example",
    ],
    ["an organization, by its name", [`${IP} -/- - -`], { [IP]: "mx.university.example" }, "org:university.example"],
    ["an organization, by its envelope", [`${IP} -/- bounce.shop.example -`], {}, "org:shop.example"],
    [
      "an organization, by its envelope, on a rented server",
      [`${IP} -/- bounce.shop.example -`],
      { [IP]: "ec2-192-0-2-1.compute-1.amazonaws.com" },
      "org:shop.example",
    ],
    ["own, by a signature that nobody else uses", [`${IP} example.com/mail - -`], {}, "own"],
    ["a service, by its own signature only", [`${IP} -/- - sendgrid.net`], {}, "service:sendgrid"],
    ["an organization, by its own signature only", [`${IP} -/- - news.example.org`], {}, "org:example.org"],
    ["its network", [`${IP} -/- - -`], {}, "net:192.0.2.0/24"],
    [
      "its network, on a rented server",
      [`${IP} -/- - -`],
      { [IP]: "ec2-192-0-2-1.compute-1.amazonaws.com" },
      "net:192.0.2.0/24",
    ],
    [
      "its network, on a line of a mailbox provider",
      [`${IP} -/- - -`],
      { [IP]: "lfbn-par-1-2.w192-0.abo.wanadoo.fr" },
      "net:192.0.2.0/24",
    ],
    ["unknown, with its messages of no address", ["* -/- - -"], {}, "other"],
    ["a service without an address", ["* -/- em.sendgrid.net -"], {}, "service:sendgrid"],
    ["own without an address", ["* example.com/s - -"], {}, "own"],
  ])("%s", (_, keys, names, key) => {
    expect(identify(keys, names)[0]).toBe(key);
  });

  test("one sender, whatever authenticates: mail with and without a valid signature is not told apart", () => {
    const keys = [`${IP} example.com/s1 em.example.com -`, `${IP} -/- em.example.com -`, `${IP} -/- - -`];
    expect(identify(keys, { [IP]: "o1.ptr9.sendgrid.net" })).toEqual(Array(3).fill("service:sendgrid"));
    expect(identify([`${IP} -/- em.sendgrid.net -`, `${IP} -/- - -`])).toEqual(Array(2).fill("service:sendgrid"));
  });

  test("told apart although all sign alike: own servers, Google Workspace and SendGrid", () => {
    const keys = ["192.0.2.1", "192.0.2.2", "192.0.2.3"].map((ip) => `${ip} example.com/s example.com -`);
    const names = {
      "192.0.2.1": "mx.example.com",
      "192.0.2.2": "mail-wr1-f1.google.com",
      "192.0.2.3": "o1.sendgrid.net",
    };
    expect(identify(keys, names)).toEqual(["own", "service:google-workspace", "service:sendgrid"]);
  });

  test("one although the envelope names a host: ten hosts of Mailchimp", () => {
    const keys = Array.from({ length: 10 }, (_unused, n) => `192.0.2.${n} -/- mail${n}.atl${n}.mcsv.net mcsv.net`);
    expect(new Set(identify(keys))).toEqual(new Set(["service:mailchimp"]));
  });

  test("own for a signature of the domain's own servers", () => {
    const keys = ["192.0.2.1 example.com/mail example.com -", "198.51.100.1 example.com/mail - -"];
    expect(identify(keys, { "192.0.2.1": "mx.example.com" })).toEqual(["own", "own"]);
  });

  test("not a service for its AS number, when its name is one of a line to the home", () => {
    const asn = knownServices().find((service) => service.asn !== undefined)?.asn?.[0] ?? 0;
    const stored = { number: 1, key: `${IP} -/- - -`, firstDay: 1, lastDay: 1, firstSeenAtMs: 1, isVouched: true };
    const domain = { domain: "example.com", organisation: "example.com" };
    const source = withEvidence(stored, domain.organisation);
    const kindOf = (name: string | null) => {
      const facts = new Map([[IP, { ...NOTHING, ip: IP, name, asn }]]);
      return atOnce(SourceIdentities.of({ ...domain, sources: [source], addresses: facts })).identityOf(source).kind;
    };
    expect([kindOf(null), kindOf("pool-192-0-2-1.isp.example")]).toEqual(["service", "network"]);
  });

  test("not own for a signature that a service makes: it survived being forwarded", () => {
    const keys = ["192.0.2.1 example.com/k1 - -", "198.51.100.1 example.com/k1 - -"];
    expect(identify(keys, { "192.0.2.1": "mail1.rsgsv.net" })).toEqual(["service:mailchimp", "net:198.51.100.0/24"]);
  });
});

test("the parent of a domain that declares itself a public suffix is another organization", () => {
  const domain = "town.county.example";
  const keys = ["192.0.2.1 county.example/c1 - -", "192.0.2.2 -/- - -", `192.0.2.3 ${domain}/t1 ${domain} -`];
  const names = {
    "192.0.2.1": "mx.county.example",
    "192.0.2.2": "mx.village.county.example",
    "192.0.2.3": `mx.${domain}`,
  };
  expect(identify(keys, names, domain)).toEqual(["own", "own", "own"]);
  const others = ["org:county.example", "org:county.example", "own"];
  expect(identify(keys, names, domain, "county.example")).toEqual(others);
  expect(identify(keys.slice(0, 1), {}, domain, "county.example")).toEqual(["org:county.example"]);
  expect(identify(keys, names, domain, "elsewhere.example")).toEqual(["own", "own", "own"]);
});

test.each([
  [undefined, "pending"],
  [{ name: null, isAsked: false }, "pending"],
  [{ name: null }, "absent"],
  [{ name: "mail.example.net", isConfirmed: false }, "absent"],
  [{ name: "mail.example.net" }, "named"],
  [{ name: "pool-192-0-2-1.isp.example" }, "generic"],
  [{ name: "ec2-192-0-2-1.compute-1.amazonaws.com" }, "generic"],
  [{ name: "srv.your-server.de" }, "hosting"],
  [{ name: "mail-wr1-f1.google.com" }, "named"],
  [{ name: "abo-1.wanadoo.fr" }, "generic"],
])("what a reverse name tells: %p is %s", (facts, finding) => {
  expect(reverseNameKindOf(facts === undefined ? undefined : { ip: IP, ...NOTHING, ...facts })).toBe(finding as never);
});

test.each([
  ["own", true],
  ["other", true],
  ["unauthenticated", true],
  ["pending", true],
  ["service:google-workspace", true],
  ["service:google-workspace/others", true],
  ["org:example.net", true],
  ["net:2001:db8::/48", true],
  ["net:", false],
  ["dkim:example.com", false],
  ["owner", false],
  ["org:a b", false],
  ["", false],
])("%p has the form of a key: %p", (key, isKey) => {
  expect(isSourceKey(key)).toBe(isKey);
});
