import { describe, expect, test } from "bun:test";
import { SUB_STATUSES, type Signals, type SubStatus, VERDICT_OF, confidenceScore, qualityScore } from "./result.ts";

const CLEAN: Signals = {
  syntax: "pass",
  domain: "pass",
  mx: "pass",
  smtp: "pass",
  catch_all: "pass",
  role_account: "pass",
  disposable: "pass",
  dnsbl: "pass",
  toxic: "pass",
  greylisting: "pass",
};
const WORST: Signals = {
  ...CLEAN,
  mx: "warn",
  catch_all: "unknown",
  role_account: "warn",
  disposable: "fail",
  toxic: "fail",
  dnsbl: "warn",
  greylisting: "warn",
};
const quality = (subStatus: SubStatus, signals: Signals) => qualityScore(VERDICT_OF[subStatus], subStatus, signals);
const RANGE = { deliverable: [80, 100], risky: [30, 79], undeliverable: [0, 20] } as const;

test.each(SUB_STATUSES)("the quality of %s stays in the range of its verdict, at best and at worst", (subStatus) => {
  const [lowest, highest] = RANGE[VERDICT_OF[subStatus]];
  const [best, worst] = [quality(subStatus, CLEAN), quality(subStatus, WORST)];
  expect(worst).toBeGreaterThanOrEqual(lowest);
  expect(best).toBeLessThanOrEqual(highest);
  expect(worst).toBeLessThanOrEqual(best);
});

test("every bad signal takes something off", () => {
  for (const signals of [
    { mx: "warn" },
    { catch_all: "unknown" },
    { role_account: "warn" },
    { dnsbl: "warn" },
    { greylisting: "warn" },
  ] as const)
    expect(quality("mailbox_exists", { ...CLEAN, ...signals })).toBeLessThan(quality("mailbox_exists", CLEAN));
});

describe("confidence (contract §4)", () => {
  const certain = SUB_STATUSES.filter((subStatus) => VERDICT_OF[subStatus] !== "risky");
  test.each(certain)("%s is about this recipient or domain: 95 and more", (subStatus) => {
    expect(confidenceScore(subStatus, CLEAN)).toBeGreaterThanOrEqual(95);
  });

  test.each(["smtp_unreachable", "smtp_timeout", "dns_error", "internal_error", "smtp_blocked", "greylisted"] as const)(
    "%s settles nothing: 20 to 30",
    (subStatus) => {
      expect(confidenceScore(subStatus, CLEAN)).toBeWithin(20, 31);
    },
  );

  test("a catch-all is 50, an acceptance without the catch-all answer 70", () => {
    expect(confidenceScore("catch_all", { ...CLEAN, catch_all: "warn" })).toBe(50);
    for (const value of ["unknown", "skipped"] as const)
      expect(confidenceScore("mailbox_exists", { ...CLEAN, catch_all: value })).toBe(70);
  });
});
