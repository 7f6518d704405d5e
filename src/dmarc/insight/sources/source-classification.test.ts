import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { findService, knownServices } from "../../records/services/services.ts";
import { CLASSIFICATIONS, type Classification } from "./rollup-store.ts";
import { classifySource, type SourceFacts } from "./source-classification.ts";

/** A hundred messages of an organization that nothing is known of; all fail. */
const STRANGER: SourceFacts = {
  identity: { kind: "organization", service: null },
  messages: 100,
  aligned: 0,
  forwarded: 0,
  authenticated: 0,
  relayed: 0,
  isVouched: true,
  isList: false,
  isUnrelated: false,
};
const OWN = { identity: { kind: "own", service: null } } as const;
const NETWORK = { identity: { kind: "network", service: null } } as const;
const service = (name: string) => ({ identity: { kind: "service", service: findService(name) } }) as const;
const SENDGRID = service("sendgrid.net");
const ZENDESK = service("zendesk.com");
const GOOGLE = service("google.com");
const FORWARDING = {
  identity: { kind: "service", service: knownServices().find(({ forwards }) => forwards) ?? null },
} as const;
const GATEWAY = service("pphosted.com");

describe("a source is", () => {
  test.each<[string, Partial<SourceFacts>, Classification]>([
    ["authorized: own servers, aligned", { ...OWN, aligned: 100 }, "authorized"],
    ["authorized: own servers without mail", { ...OWN, messages: 0 }, "authorized"],
    ["misconfigured: own servers, half aligned", { ...OWN, aligned: 50 }, "misconfigured"],
    ["misconfigured: own servers, not aligned", { ...OWN }, "misconfigured"],
    ["misconfigured: own servers, whatever receivers say", { ...OWN, forwarded: 60 }, "misconfigured"],
    ["authorized: a service, nearly all aligned", { ...SENDGRID, aligned: 90 }, "authorized"],
    ["misconfigured: a service, less aligned", { ...SENDGRID, aligned: 89 }, "misconfigured"],
    ["misconfigured: a service that proves its own name", { ...SENDGRID, authenticated: 100 }, "misconfigured"],
    ["misconfigured: another kind of service", { ...ZENDESK, authenticated: 50 }, "misconfigured"],
    ["unknown: a service that proves nothing", { ...SENDGRID, authenticated: 49 }, "unknown"],
    [
      "misconfigured: a service that sends for customers forwards nothing",
      { ...SENDGRID, authenticated: 90, forwarded: 50, relayed: 9 },
      "misconfigured",
    ],
    ["authorized: an organization, nearly all aligned", { aligned: 95 }, "authorized"],
    ["authorized: a network, nearly all aligned", { ...NETWORK, aligned: 95 }, "authorized"],
    ["unknown: an organization that only untrusted reports name", { aligned: 100, isVouched: false }, "unknown"],
    ["unknown: a network that only untrusted reports name", { ...NETWORK, aligned: 100, isVouched: false }, "unknown"],
    ["authorized: a service, trusted or not", { ...SENDGRID, aligned: 100, isVouched: false }, "authorized"],
    ["misconfigured: an organization, some aligned", { aligned: 10 }, "misconfigured"],
    ["unknown: an organization, hardly any aligned", { aligned: 9, authenticated: 91 }, "unknown"],
    ["unknown: an organization that proves its own name", { authenticated: 100 }, "unknown"],
    ["unknown: nothing at all", {}, "unknown"],
    ["unknown: no mail", { messages: 0 }, "unknown"],
    ["forwarder: receivers say so of a tenth of what fails", { aligned: 50, forwarded: 5 }, "forwarder"],
    ["unknown: receivers say so of less", { aligned: 5, forwarded: 9 }, "unknown"],
    ["authorized: nearly all aligned, a little forwarded", { aligned: 95, forwarded: 5 }, "authorized"],
    ["forwarder: half of what is aligned was signed elsewhere", { aligned: 80, relayed: 40 }, "forwarder"],
    ["misconfigured: less was signed elsewhere", { aligned: 80, relayed: 39 }, "misconfigured"],
    ["forwarder: all aligned, all signed elsewhere", { aligned: 100, relayed: 100 }, "forwarder"],
    ["misconfigured: the domain's account at a mailbox provider", { ...GOOGLE, authenticated: 100 }, "misconfigured"],
    ["unknown: another account there", { ...GOOGLE, authenticated: 100, isUnrelated: true }, "unknown"],
    [
      "forwarder: another account there, as receivers say",
      { ...GOOGLE, authenticated: 100, forwarded: 30, isUnrelated: true },
      "forwarder",
    ],
    [
      "forwarder: a gateway that hands on what was signed",
      { ...GATEWAY, aligned: 70, relayed: 70, isUnrelated: true },
      "forwarder",
    ],
    ["forwarder: a mailing list by its envelope", { authenticated: 100, isList: true }, "forwarder"],
    ["unknown: a name of a mailing list that proves nothing", { isList: true }, "unknown"],
    [
      "misconfigured: a service that sends for customers is no list",
      { ...SENDGRID, authenticated: 100, isList: true },
      "misconfigured",
    ],
    ["forwarder: a service that does nothing but forward", { ...FORWARDING, aligned: 100 }, "forwarder"],
    ["authorized: the domain's own gateway", { ...GATEWAY, aligned: 100 }, "authorized"],
  ])("%s", (_, facts, classification) => {
    expect(classifySource({ ...STRANGER, ...facts })).toBe(classification);
  });

  test("never a threat, and never anything else than one of five", () => {
    const count = fc.integer({ min: 0, max: 1000 });
    const identities = [OWN, NETWORK, SENDGRID, GOOGLE, GATEWAY, { identity: STRANGER.identity }];
    fc.assert(
      fc.property(
        fc.constantFrom(...identities),
        fc.tuple(count, count, count, count, count),
        fc.boolean(),
        fc.boolean(),
        (identity, [aligned, forwarded, authenticated, other, relayed], isVouched, isUnrelated) => {
          const messages = aligned + forwarded + authenticated + other;
          const facts = {
            ...identity,
            messages,
            aligned,
            forwarded,
            authenticated,
            relayed,
            isVouched,
            isList: false,
            isUnrelated,
          };
          const classification = classifySource(facts);
          expect(CLASSIFICATIONS).toContain(classification);
          expect(classification).not.toBe("threat");
        },
      ),
    );
  });
});
