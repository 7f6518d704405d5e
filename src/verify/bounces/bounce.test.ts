import { expect, test } from "bun:test";
import { domainWith, evidenceWith, findingWith } from "../../testing/evidence.ts";
import { bounceDecision } from "./bounce.ts";

const BOUNCE = { source: "ses", status: "5.1.1", diagnostic: null, bounced_at: "2026-01-01T00:00:00.000Z" } as const;

test.each([
  ["a mailbox that the server proves", findingWith(), null, false],
  ["a mailbox that is full", findingWith({ reading: "mailbox_full" }), null, false],
  ["a server that accepts everybody", findingWith({ catch_all: "yes" }), null, true],
  ["a server about which that is not known", findingWith({ catch_all: "unknown" }), null, true],
  ["a provider that accepts everybody first", findingWith(), "a provider", true],
  ["no server that responds", findingWith({ reading: "timeout" }), null, true],
  ["no server that was asked", null, null, true],
] as const)("a bounce and %s", (_, finding, provider, decides) => {
  const evidence = evidenceWith({ domain: domainWith({ unverifiable_provider: provider }), bounce: BOUNCE });
  expect(bounceDecision(evidence, finding)?.subStatus).toBe(decides ? "mailbox_not_found" : undefined);
});

test("without a bounce nothing is decided", () => {
  expect(bounceDecision(evidenceWith(), null)).toBeNull();
});
