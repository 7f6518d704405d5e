import { z } from "zod";

export const VERDICTS = ["deliverable", "risky", "undeliverable"] as const;
export type Verdict = (typeof VERDICTS)[number];

/** Every sub_status with its one verdict (contract §4). */
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
 * `pass`: checked, fine; `warn`: checked, lowers the quality; `fail`: checked, counts against the address; `unknown`:
 * checked, no usable response; `skipped`: not checked.
 */
export const SIGNAL_VALUES = ["pass", "warn", "fail", "unknown", "skipped"] as const;
export type Signal = (typeof SIGNAL_VALUES)[number];

const signal = (description: string) => z.enum(SIGNAL_VALUES).meta({ description });

export const signalsSchema = z.object({
  syntax: signal("Whether the text is an address."),
  domain: signal("Whether the domain exists."),
  mx: signal("Whether the domain has mail hosts; `warn`: only by its A or AAAA records."),
  smtp: signal("Whether the mail host accepts the recipient."),
  catch_all: signal("`warn`: the mail host accepts every recipient."),
  role_account: signal("`warn`: the address stands for a role, not for a person."),
  disposable: signal("`fail`: the domain is a disposable one."),
  dnsbl: signal("`warn`: the domain or a mail host is on a DNS blocklist."),
  toxic: signal("`fail`: the address is on the operator's suppression list."),
  greylisting: signal("`warn`: the mail host greylists us."),
});
export type Signals = z.infer<typeof signalsSchema>;

/** The result object of the specification: these fields and never more. */
export const resultSchema = z.object({
  email: z.string().meta({ description: "The address as it was submitted." }),
  normalized_email: z.string().meta({ description: "The address in normal form." }),
  verdict: z.enum(VERDICTS).meta({ description: "Whether mail to the address will be delivered." }),
  sub_status: z.enum(SUB_STATUSES).meta({ description: "The reason for the verdict." }),
  quality_score: z.int().min(0).max(100).meta({ description: "How good the address is to mail." }),
  confidence: z.int().min(0).max(100).meta({ description: "How certain the verdict is." }),
  signals: signalsSchema.meta({ description: "What was checked, and how it turned out." }),
  verified_at: z.iso.datetime({ precision: 3 }).meta({ description: "When the verification finished." }),
});
export type VerificationResult = z.infer<typeof resultSchema>;

const allSignals = (value: Signal): Signals =>
  signalsSchema.parse(Object.fromEntries(Object.keys(signalsSchema.shape).map((name) => [name, value])));

/** The result of a verification that a bug of ours ended, when not even its evidence can be trusted. */
export const INTERNAL_ERROR: Omit<VerificationResult, "email" | "normalized_email" | "verified_at"> = {
  ...{ verdict: "risky", sub_status: "internal_error", quality_score: 40, confidence: 20 },
  signals: allSignals("skipped"),
};

/** Results that may be different another day. Retrying a job verifies these addresses again. */
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

/** The result of an address that exists, for the OpenAPI document. */
export const RESULT_EXAMPLE: VerificationResult = {
  email: "someone@example.com",
  normalized_email: "someone@example.com",
  verdict: "deliverable",
  sub_status: "mailbox_exists",
  quality_score: 100,
  confidence: 98,
  signals: allSignals("pass"),
  verified_at: "2026-01-01T00:00:00.000Z",
};
