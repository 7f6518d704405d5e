import type { VerificationResult } from "./result.ts";

/** The result object of an address that exists, as the OpenAPI document shows it. */
export const RESULT_EXAMPLE: VerificationResult = {
  email: "someone@example.com",
  normalized_email: "someone@example.com",
  verdict: "deliverable",
  sub_status: "mailbox_exists",
  quality_score: 100,
  confidence: 98,
  signals: {
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
  },
  verified_at: "2026-01-01T00:00:00.000Z",
};
