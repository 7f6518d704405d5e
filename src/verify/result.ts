import { z } from "zod";
import { textField, timeField } from "../foundation/http/schema-fields.ts";

export const VERDICTS = ["deliverable", "risky", "undeliverable"] as const;
export type Verdict = (typeof VERDICTS)[number];

interface SubStatusScores {
  readonly verdict: Verdict;
  /** `quality_score` before deductions: how good it is to mail such an address. */
  readonly quality: number;
  /**
   * How certain the verdict is. 95 and more: the server, or DNS, said so about this recipient or domain; 50: a catch-all; 20
   * to 30: no response settles it.
   */
  readonly confidence: number;
  /** The reason in a sentence, for the manual. */
  readonly meaning: string;
}

/** Every sub_status with its one verdict and its scores (contract §4). */
export const SUB_STATUS_SCORES = {
  mailbox_exists: {
    verdict: "deliverable",
    quality: 100,
    confidence: 98,
    meaning: "The server accepts the recipient. Where it could be tested, it refuses a random one.",
  },
  invalid_syntax: {
    verdict: "undeliverable",
    quality: 0,
    confidence: 100,
    meaning: "The text is not an email address (RFC 5321, RFC 6531).",
  },
  domain_not_found: { verdict: "undeliverable", quality: 0, confidence: 99, meaning: "The domain does not exist." },
  no_mail_server: {
    verdict: "undeliverable",
    quality: 0,
    confidence: 98,
    meaning: "The domain exists but has no MX, A or AAAA records.",
  },
  null_mx: {
    verdict: "undeliverable",
    quality: 0,
    confidence: 100,
    meaning: "The domain says that it accepts no mail (null MX).",
  },
  unroutable_mx: {
    verdict: "undeliverable",
    quality: 2,
    confidence: 95,
    meaning: "No mail host of the domain resolves to a public address.",
  },
  mailbox_not_found: {
    verdict: "undeliverable",
    quality: 0,
    confidence: 97,
    meaning: "The server says that this recipient does not exist.",
  },
  mailbox_disabled: {
    verdict: "undeliverable",
    quality: 5,
    confidence: 97,
    meaning: "The server says that this mailbox is disabled.",
  },
  smtputf8_unsupported: {
    verdict: "undeliverable",
    quality: 15,
    confidence: 95,
    meaning: "The address needs SMTPUTF8, which the server does not offer.",
  },
  catch_all: {
    verdict: "risky",
    quality: 65,
    confidence: 50,
    meaning: "The server also accepts a random recipient of the domain.",
  },
  disposable: {
    verdict: "risky",
    quality: 35,
    confidence: 95,
    meaning: "The domain is on the list of disposable domains.",
  },
  role_account: {
    verdict: "risky",
    quality: 75,
    confidence: 95,
    meaning: "The server accepts the recipient, but the address belongs to a role, not to a person.",
  },
  toxic: {
    verdict: "risky",
    quality: 30,
    confidence: 95,
    meaning: "The address is on the operator's suppression list.",
  },
  mailbox_full: { verdict: "risky", quality: 45, confidence: 90, meaning: "The mailbox exists but is full." },
  dnsbl_listed: {
    verdict: "risky",
    quality: 55,
    confidence: 80,
    meaning: "The server accepts the recipient, but the domain or a mail host is on a DNS blocklist.",
  },
  greylisted: {
    verdict: "risky",
    quality: 60,
    confidence: 30,
    meaning: "The server was still greylisting you when the retries were used up.",
  },
  rate_limited: {
    verdict: "risky",
    quality: 55,
    confidence: 30,
    meaning: "The server was still limiting your rate when the retries were used up.",
  },
  smtp_blocked: {
    verdict: "risky",
    quality: 50,
    confidence: 30,
    meaning:
      "The server refuses your IP address or applies a policy, or its refusal does not say whether the mailbox exists.",
  },
  sender_rejected: {
    verdict: "risky",
    quality: 50,
    confidence: 30,
    meaning: "The server refuses your sender address, so nothing is known about the mailbox.",
  },
  tls_required: {
    verdict: "risky",
    quality: 50,
    confidence: 30,
    meaning: "The server requires TLS, which could not be negotiated, so nothing is known about the mailbox.",
  },
  smtp_unreachable: {
    verdict: "risky",
    quality: 35,
    confidence: 25,
    meaning: "No mail host accepted the connection. Not charged.",
  },
  smtp_timeout: {
    verdict: "risky",
    quality: 35,
    confidence: 20,
    meaning: "No mail host responded in time. Not charged.",
  },
  smtp_temporary_error: {
    verdict: "risky",
    quality: 45,
    confidence: 30,
    meaning: "The server gave only temporary errors until the retries were used up.",
  },
  smtp_protocol_error: {
    verdict: "risky",
    quality: 40,
    confidence: 25,
    meaning: "The server violated the protocol or closed the connection before it replied about the recipient.",
  },
  unverifiable_provider: {
    verdict: "risky",
    quality: 60,
    confidence: 30,
    meaning: "The provider gives the same reply for every recipient, whether the mailbox exists or not.",
  },
  dns_error: {
    verdict: "risky",
    quality: 40,
    confidence: 20,
    meaning: "DNS gave no usable response for the domain or its mail hosts. Not charged.",
  },
  internal_error: {
    verdict: "risky",
    quality: 40,
    confidence: 20,
    meaning:
      "The verification failed on this machine, for example because it could not open a connection. Not charged.",
  },
} as const satisfies Record<string, SubStatusScores>;

export type SubStatus = keyof typeof SUB_STATUS_SCORES;
export const SUB_STATUSES = Object.keys(SUB_STATUS_SCORES) as [SubStatus, ...SubStatus[]];

/** The verdict of each sub_status. */
export const VERDICT_OF = Object.fromEntries(
  SUB_STATUSES.map((subStatus) => [subStatus, SUB_STATUS_SCORES[subStatus].verdict]),
) as Readonly<Record<SubStatus, Verdict>>;

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
  role_account: signal("`warn`: the address belongs to a role, not to a person."),
  disposable: signal("`fail`: the domain is on the list of disposable domains."),
  dnsbl: signal("`warn`: the domain or a mail host is on a DNS blocklist."),
  toxic: signal("`fail`: the address is on the operator's suppression list."),
  greylisting: signal("`warn`: the mail host uses greylisting."),
});
export type Signals = z.infer<typeof signalsSchema>;

/** The result object of the specification: these fields and never more. */
export const resultSchema = z.object({
  email: textField("The address as it was submitted."),
  normalized_email: textField("The address in normal form."),
  verdict: z.enum(VERDICTS).meta({ description: "Whether the server accepts mail for the address." }),
  sub_status: z.enum(SUB_STATUSES).meta({ description: "The reason for the verdict." }),
  quality_score: z.int().min(0).max(100).meta({ description: "How good the address is to mail." }),
  confidence: z.int().min(0).max(100).meta({ description: "How certain the verdict is." }),
  signals: signalsSchema.meta({ description: "What was checked, and how it turned out." }),
  verified_at: timeField("When the verification finished."),
});
export type VerificationResult = z.infer<typeof resultSchema>;

const allSignals = (value: Signal): Signals =>
  signalsSchema.parse(Object.fromEntries(Object.keys(signalsSchema.shape).map((name) => [name, value])));

/** The result of a verification that a bug of ours ended, when not even its evidence can be trusted. */
export const INTERNAL_ERROR: Omit<VerificationResult, "email" | "normalized_email" | "verified_at"> = {
  verdict: "risky",
  sub_status: "internal_error",
  quality_score: 40,
  confidence: 20,
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

/** The range of `quality_score` by verdict (contract §4). */
const QUALITY_RANGE: Readonly<Record<Verdict, readonly [number, number]>> = {
  deliverable: [80, 100],
  risky: [30, 79],
  undeliverable: [0, 20],
};

/** What a signal deducts, in addition to the sub_status that it may have decided. */
const DEDUCTIONS: ReadonlyArray<{ signal: keyof Signals; value: Signals[keyof Signals]; points: number }> = [
  { signal: "mx", value: "warn", points: 5 },
  { signal: "catch_all", value: "warn", points: 5 },
  { signal: "catch_all", value: "unknown", points: 8 },
  { signal: "role_account", value: "warn", points: 5 },
  { signal: "disposable", value: "fail", points: 5 },
  { signal: "toxic", value: "fail", points: 5 },
  { signal: "dnsbl", value: "warn", points: 5 },
  { signal: "greylisting", value: "warn", points: 2 },
];

/** An acceptance is one-sided as long as the reply to a random recipient is unknown. */
const ONE_SIDED_CONFIDENCE = 70;
const NEEDS_CATCH_ALL: ReadonlySet<SubStatus> = new Set(["mailbox_exists", "role_account"]);

/** How a quality score comes about. */
interface QualityParts {
  /** The points of the sub_status. */
  readonly base: number;
  /** What signals take from it. */
  readonly deductions: ReadonlyArray<{ readonly signal: keyof Signals; readonly points: number }>;
  /** Within the range of the verdict. */
  readonly score: number;
  readonly range: readonly [lowest: number, highest: number];
}

export const qualityParts = (verdict: Verdict, subStatus: SubStatus, signals: Signals): QualityParts => {
  const deductions = DEDUCTIONS.filter(({ signal, value }) => signals[signal] === value);
  const { quality: base } = SUB_STATUS_SCORES[subStatus];
  const range = QUALITY_RANGE[verdict];
  const sum = base - deductions.reduce((points, deduction) => points + deduction.points, 0);
  return { base, deductions, range, score: Math.min(range[1], Math.max(range[0], sum)) };
};

export const qualityScore = (verdict: Verdict, subStatus: SubStatus, signals: Signals): number =>
  qualityParts(verdict, subStatus, signals).score;

/** Why `confidenceScore` is lower than that of the sub_status; null when it is not. */
export const confidenceReason = (subStatus: SubStatus, signals: Signals): string | null => {
  if (NEEDS_CATCH_ALL.has(subStatus) && signals.catch_all !== "pass")
    return "It is not known whether the server accepts every recipient.";
  if (subStatus === "mailbox_not_found" && signals.catch_all === "warn")
    return "The server accepts other recipients that do not exist.";
  return null;
};

export const confidenceScore = (subStatus: SubStatus, signals: Signals): number => {
  const isLowered = confidenceReason(subStatus, signals) !== null;
  return isLowered ? ONE_SIDED_CONFIDENCE : SUB_STATUS_SCORES[subStatus].confidence;
};
