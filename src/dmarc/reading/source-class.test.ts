import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { Classification } from "./reading-store.ts";
import { findService, type Service } from "../services/services.ts";
import { classifySource, type ReverseFinding, type SourceFacts } from "./source-class.ts";

/** A hundred messages of a network without a name, that nothing speaks for. It was a burst. */
const STRANGER: SourceFacts = {
  kind: "network",
  messages: 100,
  aligned: 0,
  forwarded: 0,
  authenticated: 0,
  service: null,
  isOwn: false,
  isNearOwn: false,
  isSpokenFor: false,
  isBurst: true,
  reverse: "absent",
};
const SENDGRID = findService("sendgrid.net");
const GOOGLE = findService("google.com");
const TENANT = findService("evil.onmicrosoft.com");
const HOSTER = findService("amazonaws.com");
const WEB_HOSTER = findService("p3plcpnl0123.prod.phx3.secureserver.net");
const HOME_LINES = findService("abo.wanadoo.fr");
const OWN = { isOwn: true } as const;

describe("authorized is", () => {
  test.each<[string, Partial<SourceFacts>, Classification]>([
    ["a signature of the domain's own", { kind: "dkim", ...OWN, aligned: 100 }, "authorized"],
    ["one that quietened", { kind: "dkim", ...OWN, messages: 0 }, "authorized"],
    ["one of which half is aligned", { kind: "dkim", ...OWN, aligned: 50 }, "authorized"],
    ["not one that is aligned, but for a strict policy", { kind: "dkim", ...OWN, authenticated: 100 }, "misconfigured"],
    ["not a stranger's signature, whatever a reporter says", { kind: "dkim", aligned: 100 }, "unknown"],
    ["an envelope of the domain's own", { kind: "spf", ...OWN, aligned: 100 }, "authorized"],
    ["one of its own that quietened", { kind: "spf", ...OWN, messages: 0 }, "authorized"],
    ["not a stranger's envelope, whatever a reporter says", { kind: "spf", aligned: 100 }, "unknown"],
    ["not one beside the domain's own", { kind: "spf", aligned: 100, isNearOwn: true }, "unknown"],
    ["not one of a tenant at a mailbox provider", { kind: "spf", aligned: 100, service: TENANT }, "unknown"],
    ["not one of a customer of a hoster", { kind: "spf", aligned: 100, service: WEB_HOSTER }, "unknown"],
    ["a sending service of which nearly all is aligned", { kind: "spf", aligned: 90, service: SENDGRID }, "authorized"],
    [
      "the domain's own hosts, nearly all aligned",
      { kind: "reverse", ...OWN, reverse: "named", aligned: 90 },
      "authorized",
    ],
    ["hosts beside the domain's own, nearly all aligned", { isNearOwn: true, aligned: 90 }, "authorized"],
    ["a mailbox provider's hosts, nearly all aligned", { kind: "reverse", service: GOOGLE, aligned: 90 }, "authorized"],
    ["not rented hosts, whatever a reporter says", { kind: "reverse", service: HOSTER, aligned: 100 }, "unknown"],
    ["not what only weak signs speak for", { isSpokenFor: true, aligned: 100 }, "unknown"],
    ["not strangers' hosts, whatever a reporter says", { kind: "reverse", reverse: "named", aligned: 100 }, "unknown"],
  ])("%s", (_, facts, classification) => {
    expect(classifySource({ ...STRANGER, ...facts })).toBe(classification);
  });
});

describe("forwarder is", () => {
  test.each<[string, Partial<SourceFacts>, Classification]>([
    ["who passed on most, by the receivers' word", { forwarded: 60 }, "forwarder"],
    [
      "who passed on most of what is not aligned",
      { kind: "spf", aligned: 50, forwarded: 30, authenticated: 50 },
      "forwarder",
    ],
    [
      "a mailbox provider that passed on most",
      { kind: "spf", service: GOOGLE, forwarded: 60, authenticated: 100 },
      "forwarder",
    ],
    ["not who passed on half", { forwarded: 50 }, "unknown"],
    ["not a mailbox provider without proof", { kind: "reverse", service: GOOGLE, reverse: "named" }, "unknown"],
    ["not a mailbox provider's own envelope", { kind: "spf", service: GOOGLE, authenticated: 100 }, "unknown"],
    ["not a tenant of a mailbox provider", { kind: "spf", service: TENANT, authenticated: 100 }, "unknown"],
    ["not a web hoster's machine", { kind: "spf", service: WEB_HOSTER, authenticated: 100 }, "unknown"],
    ["not a hoster, even by the receivers' word", { kind: "spf", service: WEB_HOSTER, forwarded: 60 }, "unknown"],
    [
      "not the domain's own host, even by the receivers' word",
      { kind: "reverse", ...OWN, forwarded: 60 },
      "misconfigured",
    ],
    [
      "not a home line of a mailbox provider",
      { kind: "reverse", service: HOME_LINES, reverse: "generic", isBurst: false },
      "unknown",
    ],
  ])("%s", (_, facts, classification) => {
    expect(classifySource({ ...STRANGER, ...facts })).toBe(classification);
  });
});

describe("misconfigured is", () => {
  test.each<[string, Partial<SourceFacts>, Classification]>([
    [
      "a sending service that proves its own name",
      { kind: "spf", service: SENDGRID, authenticated: 100 },
      "misconfigured",
    ],
    ["one of which some is aligned", { kind: "spf", service: SENDGRID, aligned: 50 }, "misconfigured"],
    ["hosts beside the domain's own of which some is aligned", { isNearOwn: true, aligned: 50 }, "misconfigured"],
    ["the domain's own host", { kind: "reverse", ...OWN, reverse: "named" }, "misconfigured"],
    ["not a service that proves nothing", { kind: "reverse", service: SENDGRID, reverse: "named" }, "unknown"],
    ["not a stranger that proves its own name", { kind: "spf", authenticated: 100 }, "unknown"],
  ])("%s", (_, facts, classification) => {
    expect(classifySource({ ...STRANGER, ...facts })).toBe(classification);
  });
});

describe("a threat is", () => {
  test.each<[string, Partial<SourceFacts>, Classification]>([
    ["a burst of hosts without names", {}, "threat"],
    ["a burst of home lines", { kind: "reverse", reverse: "generic" }, "threat"],
    ["also one of a mailbox provider's", { kind: "reverse", reverse: "generic", service: HOME_LINES }, "threat"],
    ["not what comes again and again, as an own server without a name does", { isBurst: false }, "unknown"],
    ["not hosts not yet asked about", { reverse: "unasked" }, "unknown"],
    ["not hosts with names of their own", { kind: "reverse", reverse: "named" }, "unknown"],
    [
      "not rented hosts with their address for a name",
      { kind: "reverse", reverse: "generic", service: HOSTER },
      "unknown",
    ],
    [
      "not a sending service's with their address for a name",
      { kind: "reverse", reverse: "generic", service: SENDGRID },
      "unknown",
    ],
    ["not hosts beside the domain's own", { isNearOwn: true }, "unknown"],
    ["not hosts that anything speaks for", { isSpokenFor: true }, "unknown"],
    ["not with one aligned message", { aligned: 1 }, "unknown"],
    ["not with one authenticated message", { authenticated: 1 }, "unknown"],
    ["not with one that was passed on", { forwarded: 1 }, "unknown"],
    ["not when there was nothing in this range", { messages: 0 }, "unknown"],
  ])("%s", (_, facts, classification) => {
    expect(classifySource({ ...STRANGER, ...facts })).toBe(classification);
  });
});

const share = fc.integer({ min: 0, max: 10 });
const anyFacts: fc.Arbitrary<SourceFacts> = fc.record({
  kind: fc.constantFrom<SourceFacts["kind"]>("dkim", "spf", "reverse", "network"),
  messages: fc.constant(30),
  aligned: fc.oneof(share, fc.constantFrom(15, 29, 30)),
  forwarded: share,
  authenticated: share,
  service: fc.constantFrom(null, SENDGRID, GOOGLE, HOSTER, HOME_LINES),
  isOwn: fc.boolean(),
  isNearOwn: fc.boolean(),
  isSpokenFor: fc.boolean(),
  isBurst: fc.boolean(),
  reverse: fc.constantFrom<ReverseFinding>("unasked", "absent", "generic", "named"),
});

test("no threat is called so while anything speaks for it", () => {
  fc.assert(
    fc.property(anyFacts, (facts) => {
      if (classifySource(facts) !== "threat") return;
      const nothing = {
        aligned: 0,
        forwarded: 0,
        authenticated: 0,
        isOwn: false,
        isNearOwn: false,
        isSpokenFor: false,
      };
      expect(facts).toMatchObject({ ...nothing, isBurst: true });
      expect(["absent", "generic"]).toContain(facts.reverse);
      expect<(Service | null)[]>([null, HOME_LINES, GOOGLE]).toContain(facts.service);
    }),
  );
});

test("no forwarder is called so without the receivers' word for most of what is not aligned", () => {
  fc.assert(
    fc.property(anyFacts, (facts) => {
      if (classifySource(facts) !== "forwarder") return;
      expect(facts.forwarded * 2).toBeGreaterThan(facts.messages - facts.aligned);
      expect(facts.isOwn || facts.service === HOSTER).toBe(false);
    }),
  );
});
