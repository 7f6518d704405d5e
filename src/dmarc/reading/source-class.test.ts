import { expect, test } from "bun:test";
import fc from "fast-check";
import type { Classification } from "./reading-store.ts";
import { findService } from "./services.ts";
import { classifySource, type ReverseFinding, type SourceFacts } from "./source-class.ts";

/** A hundred messages of a network without a name, that nothing speaks for. */
const STRANGER: SourceFacts = {
  kind: "network",
  messages: 100,
  aligned: 0,
  forwarded: 0,
  authenticated: 0,
  service: null,
  isOwn: false,
  isNearAligned: false,
  reverse: "absent",
};
const SENDGRID = findService("sendgrid.net");
const GOOGLE = findService("google.com");
const HOSTER = findService("amazonaws.com");

test.each<[string, Partial<SourceFacts>, Classification]>([
  ["an aligned signature", { kind: "dkim", aligned: 100 }, "authorized"],
  ["an aligned signature that quietened", { kind: "dkim", messages: 0 }, "authorized"],
  ["an aligned signature of which half is aligned", { kind: "dkim", aligned: 50, isOwn: true }, "authorized"],
  [
    "a signature that is aligned, but for a strict policy",
    { kind: "dkim", isOwn: true, authenticated: 100 },
    "misconfigured",
  ],
  ["SPF aligned", { kind: "spf", aligned: 100 }, "authorized"],
  ["nearly all aligned", { kind: "reverse", reverse: "named", aligned: 90 }, "authorized"],
  ["some aligned", { kind: "spf", aligned: 50, authenticated: 50 }, "misconfigured"],
  ["some aligned, the rest passed on", { kind: "spf", aligned: 50, forwarded: 30, authenticated: 50 }, "forwarder"],
  ["passed on, by the receivers' word", { forwarded: 60 }, "forwarder"],
  ["a little passed on", { forwarded: 20 }, "unknown"],
  ["a mailbox provider without proof", { kind: "reverse", service: GOOGLE, reverse: "named" }, "forwarder"],
  ["a mailbox provider's own envelope", { kind: "spf", service: GOOGLE, authenticated: 100 }, "forwarder"],
  [
    "a mailbox provider that signs for itself",
    { kind: "reverse", service: GOOGLE, authenticated: 100, reverse: "named" },
    "misconfigured",
  ],
  ["a service that proves its own name", { kind: "spf", service: SENDGRID, authenticated: 100 }, "misconfigured"],
  ["a service that proves nothing", { kind: "reverse", service: SENDGRID, reverse: "named" }, "unknown"],
  ["a stranger that proves its own name", { kind: "spf", authenticated: 100 }, "unknown"],
  ["the domain's own host", { kind: "reverse", isOwn: true, reverse: "named" }, "misconfigured"],
  ["hosts without names", {}, "threat"],
  ["hosts of customers at home", { kind: "reverse", reverse: "generic" }, "threat"],
  ["hosts not yet asked about", { reverse: "unasked" }, "unknown"],
  ["hosts with names of their own", { kind: "reverse", reverse: "named" }, "unknown"],
  ["rented hosts with their address for a name", { kind: "reverse", reverse: "generic", service: HOSTER }, "unknown"],
  ["hosts beside those that send aligned mail", { isNearAligned: true }, "unknown"],
  ["one aligned message", { aligned: 1 }, "unknown"],
  ["one authenticated message", { authenticated: 1 }, "unknown"],
  ["nothing in this range", { messages: 0 }, "unknown"],
])("%s: see the row", (_, facts, classification) => {
  expect(classifySource({ ...STRANGER, ...facts })).toBe(classification);
});

test("no threat is called so while anything speaks for it", () => {
  const share = fc.integer({ min: 0, max: 10 });
  fc.assert(
    fc.property(
      fc.record({
        kind: fc.constantFrom<SourceFacts["kind"]>("dkim", "spf", "reverse", "network"),
        aligned: share,
        forwarded: share,
        authenticated: share,
        service: fc.constantFrom(null, SENDGRID, GOOGLE, HOSTER),
        isOwn: fc.boolean(),
        isNearAligned: fc.boolean(),
        reverse: fc.constantFrom<ReverseFinding>("unasked", "absent", "generic", "named"),
      }),
      (made) => {
        const facts = { ...made, messages: 30 };
        if (classifySource(facts) !== "threat") return;
        expect(facts).toMatchObject({ aligned: 0, forwarded: 0, authenticated: 0, service: null, isOwn: false });
        expect(["absent", "generic"]).toContain(facts.reverse);
      },
    ),
  );
});
