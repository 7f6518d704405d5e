import { z } from "zod";

export const VERDICTS = ["deliverable", "risky", "undeliverable"] as const;
export type Verdict = (typeof VERDICTS)[number];

/** Every sub_status with the verdict it belongs to (contract §4). A sub_status never stands under another verdict. */
export const VERDICT_OF = {
  mailbox_exists: "deliverable",
  invalid_syntax: "undeliverable",
  domain_not_found: "undeliverable",
  no_mail_server: "undeliverable",
  null_mx: "undeliverable",
  unroutable_mx: "undeliverable",
  mailbox_not_found: "undeliverable",
  mailbox_disabled: "undeliverable",
  smtputf8_unsupported: "undeliverable",
  catch_all: "risky",
  disposable: "risky",
  role_account: "risky",
  toxic: "risky",
  mailbox_full: "risky",
  dnsbl_listed: "risky",
  greylisted: "risky",
  rate_limited: "risky",
  smtp_blocked: "risky",
  sender_rejected: "risky",
  tls_required: "risky",
  smtp_unreachable: "risky",
  smtp_timeout: "risky",
  smtp_temporary_error: "risky",
  smtp_protocol_error: "risky",
  unverifiable_provider: "risky",
  dns_error: "risky",
  internal_error: "risky",
} as const satisfies Record<string, Verdict>;

export type SubStatus = keyof typeof VERDICT_OF;
export const SUB_STATUSES = Object.keys(VERDICT_OF) as [SubStatus, ...SubStatus[]];

/**
 * `pass` asked, fine; `warn` asked, lowers the quality; `fail` asked, speaks against the address; `unknown` asked, no
 * usable answer; `skipped` not asked.
 */
export const SIGNAL_VALUES = ["pass", "warn", "fail", "unknown", "skipped"] as const;
export type Signal = (typeof SIGNAL_VALUES)[number];

const signal = z.enum(SIGNAL_VALUES);

export const signalsSchema = z.object({
  syntax: signal,
  domain: signal,
  mx: signal,
  smtp: signal,
  catch_all: signal,
  role_account: signal,
  disposable: signal,
  dnsbl: signal,
  toxic: signal,
  greylisting: signal,
});
export type Signals = z.infer<typeof signalsSchema>;

/** The result object of the specification: these fields and never more. */
export const resultSchema = z.object({
  email: z.string(),
  normalized_email: z.string(),
  verdict: z.enum(VERDICTS),
  sub_status: z.enum(SUB_STATUSES),
  quality_score: z.int().min(0).max(100),
  confidence: z.int().min(0).max(100),
  signals: signalsSchema,
  verified_at: z.iso.datetime({ precision: 3 }),
});
export type VerificationResult = z.infer<typeof resultSchema>;

/** What a check comes to that a bug of ours ended, when not even its evidence can be trusted. */
export const INTERNAL_ERROR: Omit<VerificationResult, "email" | "normalized_email" | "verified_at"> = {
  verdict: "risky",
  sub_status: "internal_error",
  quality_score: 40,
  confidence: 20,
  signals: {
    syntax: "skipped",
    domain: "skipped",
    mx: "skipped",
    smtp: "skipped",
    catch_all: "skipped",
    role_account: "skipped",
    disposable: "skipped",
    dnsbl: "skipped",
    toxic: "skipped",
    greylisting: "skipped",
  },
};

/** What nobody has settled: another day the answer may be another. `retry` of a list checks these again. */
export const UNSETTLED = [
  "dns_error",
  "internal_error",
  "smtp_unreachable",
  "smtp_timeout",
  "smtp_temporary_error",
  "smtp_protocol_error",
  "greylisted",
  "rate_limited",
  "smtp_blocked",
] as const satisfies readonly SubStatus[];
