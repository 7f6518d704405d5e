import type { Signals, SubStatus, Verdict } from "./result.ts";

/** The range of `quality_score` by verdict (contract §4). */
const QUALITY_RANGE: Readonly<Record<Verdict, readonly [number, number]>> = {
  deliverable: [80, 100],
  risky: [30, 79],
  undeliverable: [0, 20],
};

/** `quality_score` of a sub_status before the deductions: how good it is to mail such an address. */
const QUALITY: Readonly<Record<SubStatus, number>> = {
  mailbox_exists: 100,
  invalid_syntax: 0,
  domain_not_found: 0,
  no_mail_server: 0,
  null_mx: 0,
  unroutable_mx: 2,
  mailbox_not_found: 0,
  mailbox_disabled: 5,
  smtputf8_unsupported: 15,
  catch_all: 65,
  role_account: 75,
  disposable: 35,
  toxic: 30,
  mailbox_full: 45,
  dnsbl_listed: 55,
  greylisted: 60,
  rate_limited: 55,
  smtp_blocked: 50,
  sender_rejected: 50,
  tls_required: 50,
  smtp_unreachable: 35,
  smtp_timeout: 35,
  smtp_temporary_error: 45,
  smtp_protocol_error: 40,
  unverifiable_provider: 60,
  dns_error: 40,
  internal_error: 40,
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

/**
 * `confidence` of a sub_status: how certain the verdict is. 95 and more: the server, or DNS, said so about this recipient
 * or domain; 50: a catch-all; 20 to 30: no response settles it.
 */
const CONFIDENCE: Readonly<Record<SubStatus, number>> = {
  mailbox_exists: 98,
  invalid_syntax: 100,
  domain_not_found: 99,
  no_mail_server: 98,
  null_mx: 100,
  unroutable_mx: 95,
  mailbox_not_found: 97,
  mailbox_disabled: 97,
  smtputf8_unsupported: 95,
  catch_all: 50,
  role_account: 95,
  disposable: 95,
  toxic: 95,
  mailbox_full: 90,
  dnsbl_listed: 80,
  greylisted: 30,
  rate_limited: 30,
  smtp_blocked: 30,
  sender_rejected: 30,
  tls_required: 30,
  smtp_unreachable: 25,
  smtp_timeout: 20,
  smtp_temporary_error: 30,
  smtp_protocol_error: 25,
  unverifiable_provider: 30,
  dns_error: 20,
  internal_error: 20,
};

/** An acceptance is one-sided as long as the reply to a random recipient is unknown. */
const ONE_SIDED_CONFIDENCE = 70;
const NEEDS_CATCH_ALL: ReadonlySet<SubStatus> = new Set(["mailbox_exists", "role_account"]);

export const qualityScore = (verdict: Verdict, subStatus: SubStatus, signals: Signals): number => {
  const off = DEDUCTIONS.filter(({ signal, value }) => signals[signal] === value);
  const score = QUALITY[subStatus] - off.reduce((sum, { points }) => sum + points, 0);
  const [lowest, highest] = QUALITY_RANGE[verdict];
  return Math.min(highest, Math.max(lowest, score));
};

/** How certain a sub_status is. A no that only follows from a random recipient being accepted is one-sided, too. */
export const confidenceScore = (subStatus: SubStatus, signals: Signals): number => {
  const isOneSided = NEEDS_CATCH_ALL.has(subStatus) && signals.catch_all !== "pass";
  const isByContrast = subStatus === "mailbox_not_found" && signals.catch_all === "warn";
  return isOneSided || isByContrast ? ONE_SIDED_CONFIDENCE : CONFIDENCE[subStatus];
};
