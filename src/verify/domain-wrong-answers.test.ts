import { afterEach, describe, expect, test } from "bun:test";
import { parseAddress } from "../foundation/mail/address.ts";
import { createDnsResolver } from "../foundation/net/dns-resolver.ts";
import { createAddressPolicy } from "../foundation/net/public-address.ts";
import { createTestClock } from "../testing/clock.ts";
import { type DnsScript, startDnsServer } from "../testing/dns-server.ts";
import {
  bareNxdomain,
  emptyAnswer,
  serveZone,
  UNUSUAL,
  type Wrong,
  WORTHLESS,
  type WrongAnswers,
  withoutSoa,
} from "../testing/dns-wrong.ts";
import type { Zone } from "../testing/dns-zone.ts";

import { createDomainLookup } from "./domain-evidence.ts";
import { beginEvidence } from "./address-evidence.ts";
import { decideVerdict } from "./verdict.ts";

const stops: Array<() => void> = [];
afterEach(() => {
  for (const stop of stops.splice(0)) stop();
});

/** What becomes of two addresses of the domain, one after the other: the second is answered out of the cache. */
const inquireTwice = async (...scripts: DnsScript[]) => {
  const clock = createTestClock();
  const servers = await Promise.all(scripts.map((script) => startDnsServer(script)));
  const resolver = createDnsResolver({ servers: servers.map(({ server }) => server), clock });
  stops.push(() => resolver.close(), ...servers.map(({ stop }) => stop));
  const inquire = createDomainLookup({
    resolver,
    policy: createAddressPolicy([]),
    random: { integer: () => 0 },
    clock,
  });
  const found = [];
  for (const email of ["ada@x.example", "bob@x.example"]) {
    const address = parseAddress(email);
    if (!address.ok) throw new Error(address.error);
    const domain = await inquire(address.value);
    const { verdict, chargeable, because } = decideVerdict({ ...beginEvidence(email), domain });
    found.push({ domain, verdict, chargeable, because });
  }
  return found;
};

const outcomesOf = async (...scripts: DnsScript[]) =>
  (await inquireTwice(...scripts)).map(({ domain }) => domain.outcome);

const PUBLIC = "203.0.114.25";
const WITH_MX: Zone = { "x.example": { MX: [[10, "mx.x.example"]], A: [PUBLIC] }, "mx.x.example": { A: [PUBLIC] } };
const WITHOUT_MX: Zone = { "x.example": { A: [PUBLIC] } };
const PRIVATE: Zone = { "x.example": { MX: [[10, "mx.x.example"]] }, "mx.x.example": { A: ["10.0.0.1"] } };

/** Of a domain that takes mail: the questions that a server gets wrong. */
const places: ReadonlyArray<readonly [string, Zone, (wrong: Wrong) => WrongAnswers]> = [
  ["everything", WITH_MX, (wrong) => ({ "*": wrong })],
  ["the MX", WITH_MX, (wrong) => ({ "MX x.example": wrong })],
  ["the addresses of the mail host", WITH_MX, (wrong) => ({ "A mx.x.example": wrong, "AAAA mx.x.example": wrong })],
  ["the IPv4 addresses of the mail host", WITH_MX, (wrong) => ({ "A mx.x.example": wrong })],
  ["the addresses of a domain without MX", WITHOUT_MX, (wrong) => ({ "A x.example": wrong, "AAAA x.example": wrong })],
  ["the IPv4 addresses of a domain without MX", WITHOUT_MX, (wrong) => ({ "A x.example": wrong })],
  // Nothing public is known, so what was got wrong may have been it.
  ["the IPv6 addresses of a host with a private one", PRIVATE, (wrong) => ({ "AAAA mx.x.example": wrong })],
];

describe("a server that gets it wrong leaves it open, and free of charge", () => {
  for (const [name, wrong] of Object.entries(WORTHLESS))
    test.each(places)(`${name}: %s`, async (_, zone, wrongAt) => {
      for (const { domain, verdict, chargeable } of await inquireTwice(serveZone(zone, wrongAt(wrong))))
        expect([domain.outcome, verdict, chargeable]).toEqual(["dns_error", "risky", false]);
    });
});

describe("a second server that responds correctly counts", () => {
  for (const [name, wrong] of Object.entries({ ...WORTHLESS, NXDOMAIN: bareNxdomain })) {
    // Aliases in a circle are a statement, of which no second opinion is asked.
    if (name === "an alias in a circle") continue;
    test.each(places.slice(0, -1))(`${name}: %s`, async (_, zone, wrongAt) => {
      const outcomes = await outcomesOf(serveZone(zone, wrongAt(wrong)), serveZone(zone));
      expect(outcomes).toEqual(["mail_hosts", "mail_hosts"]);
    });
  }
});

describe("a server that is wrong once and then right", () => {
  for (const [name, wrong] of Object.entries({ ...WORTHLESS, NXDOMAIN: bareNxdomain }))
    test.each(places)(`never gives a no: ${name}, %s`, async (place, zone, wrongAt) => {
      const once = Object.fromEntries(
        Object.entries(wrongAt(wrong)).map(([question, one]) => [question, [one].flat()]),
      );
      for (const { domain } of await inquireTwice(serveZone(zone, once))) {
        const expected = place.startsWith("the IPv6") ? ["dns_error", "unroutable"] : ["dns_error", "mail_hosts"];
        expect(expected).toContain(domain.outcome);
      }
    });
});

describe("an unusual server is as good as any", () => {
  for (const [name, unusual] of Object.entries(UNUSUAL))
    test(name, async () => {
      const ask = (zone: Zone) => outcomesOf(serveZone(zone, { "*": unusual }));
      expect(await ask(WITH_MX)).toEqual(["mail_hosts", "mail_hosts"]);
      expect(await ask(WITHOUT_MX)).toEqual(["mail_hosts", "mail_hosts"]);
      expect(await ask({})).toEqual(["nxdomain", "nxdomain"]);
      expect(await ask({ "x.example": { TXT: ["hello"] } })).toEqual(["no_mail_server", "no_mail_server"]);
      expect(await ask({ "x.example": { MX: [[0, "."]] } })).toEqual(["null_mx", "null_mx"]);
      expect(await ask(PRIVATE)).toEqual(["unroutable", "unroutable"]);
      expect(await ask({ "x.example": { MX: [[10, "gone.example"]] } })).toEqual(["unroutable", "unroutable"]);
    });
});

test("the sentence says whether the domain or its mail hosts could not be looked up", async () => {
  const domain = await inquireTwice(serveZone(WITH_MX, { "MX x.example": emptyAnswer }));
  expect(domain[0]?.because).toBe("DNS gave no usable response for the domain.");
  const hosts = await inquireTwice(serveZone(PRIVATE, { "AAAA mx.x.example": emptyAnswer }));
  expect(hosts[0]?.because).toMatch(/^No mail host with a public address was found, and the lookup/);
});

/** Zones, and what a forwarder that strips every SOA leaves of each: alone, and with a second one that agrees. */
describe("a forwarder that sends no SOA", () => {
  test.each<[string, Zone, string, string]>([
    ["a domain that does not exist", {}, "nxdomain", "nxdomain"],
    ["a domain without MX and address", { "x.example": { TXT: ["hello"] } }, "dns_error", "no_mail_server"],
    ["a domain without MX", WITHOUT_MX, "dns_error", "mail_hosts"],
    ["a domain with MX", WITH_MX, "mail_hosts", "mail_hosts"],
    ["a null MX", { "x.example": { MX: [[0, "."]] } }, "null_mx", "null_mx"],
    ["a mail host that does not exist", { "x.example": { MX: [[10, "gone.example"]] } }, "unroutable", "unroutable"],
    ["a mail host with a private address", PRIVATE, "dns_error", "unroutable"],
    ["an alias of nothing", { "x.example": { CNAME: "gone.example" } }, "nxdomain", "nxdomain"],
  ])("%s", async (_, zone, alone, agreed) => {
    const stripped = () => serveZone(zone, { "*": withoutSoa });
    expect(await outcomesOf(stripped())).toEqual([alone, alone] as never);
    expect(await outcomesOf(stripped(), stripped())).toEqual([agreed, agreed] as never);
  });

  test("an MX that is empty without an SOA does not make the domain its own mail host", async () => {
    const outcomes = await outcomesOf(serveZone(WITH_MX, { "MX x.example": emptyAnswer }));
    expect(outcomes).toEqual(["dns_error", "dns_error"]);
  });
});
