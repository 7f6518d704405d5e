import type { PublishedPolicy } from "../dmarc/reports/report/report.ts";

/** The policy that a report says it found, `p=reject` of example.com by default. */
export const publishedPolicy = (change: Partial<PublishedPolicy> = {}): PublishedPolicy => ({
  domain: "example.com",
  p: "reject",
  sp: null,
  np: null,
  adkim: null,
  aspf: null,
  pct: null,
  fo: null,
  testing: null,
  discoveryMethod: null,
  ...change,
});
