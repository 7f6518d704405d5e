import type { DomainEvidence, Evidence, ProbeFinding, PlannedRetry } from "./evidence.ts";
import { subStatusOf, isRetriedOnce } from "./replies.ts";
import {
  type Signal,
  type Signals,
  type SubStatus,
  VERDICT_OF,
  type Verdict,
  type VerificationResult,
  confidenceScore,
  qualityScore,
} from "./result.ts";
import { isoTime } from "../foundation/base/clock.ts";
import { bounceDecision } from "./bounces/bounce.ts";
import type { Channel } from "./smtp/outages.ts";

/** What the evidence concludes. */
export interface DecidedVerdict {
  readonly verdict: Verdict;
  readonly sub_status: SubStatus;
  readonly quality_score: number;
  readonly confidence: number;
  readonly signals: Signals;
  /** Which evidence decided, in one sentence. */
  readonly because: string;
  /** False when no mail server responded: such a verification is not charged. */
  readonly chargeable: boolean;
}

interface Decision {
  readonly subStatus: SubStatus;
  readonly because: string;
}

/** DNS outcomes that are not a definite no. */
type Undecided = "mail_hosts" | "dns_error" | "local_failure";

const isDomainNo = (domain: DomainEvidence | null): domain is DomainEvidence & { outcome: keyof typeof DOMAIN_NO } =>
  domain !== null && Object.hasOwn(DOMAIN_NO, domain.outcome);

const DOMAIN_NO: Readonly<Record<Exclude<DomainEvidence["outcome"], Undecided>, Decision>> = {
  nxdomain: { subStatus: "domain_not_found", because: "The domain does not exist (NXDOMAIN)." },
  no_mail_server: {
    subStatus: "no_mail_server",
    because: "The domain exists but has no MX, A or AAAA records.",
  },
  null_mx: { subStatus: "null_mx", because: "The domain accepts no mail (null MX, RFC 7505)." },
  unroutable: {
    subStatus: "unroutable_mx",
    because: "No mail host of the domain resolves to a public address.",
  },
};

/** Outcomes without a reply, in addition to what a reply can mean. */
const UNSAID = { unreachable: "smtp_unreachable", timeout: "smtp_timeout", internal: "internal_error" } as const;

const subStatusOfFinding = ({ reading }: ProbeFinding): SubStatus =>
  reading === "unreachable" || reading === "timeout" || reading === "internal" ? UNSAID[reading] : subStatusOf(reading);

/** A definite no about the mailbox. A provider that refuses every recipient cannot give one. */
const isHardNo = ({ domain }: Evidence, finding: ProbeFinding | null): finding is ProbeFinding =>
  finding !== null &&
  domain?.unverifiable_provider == null &&
  VERDICT_OF[subStatusOfFinding(finding)] === "undeliverable";

/** Results that settle an attempt: the recipient was accepted, or exists and its mailbox is full. */
const SETTLED: ReadonlySet<SubStatus> = new Set(["mailbox_exists", "mailbox_full"]);

const OPEN_WORDS = "The refusal does not say whether the mailbox exists.";
const UNSETTLED_WORDS: Partial<Readonly<Record<SubStatus, string>>> = {
  greylisted: "The server was still greylisting us when the retries were used up.",
  rate_limited: "The server was still limiting our rate when the retries were used up.",
  smtp_blocked: "The refusal is about this service or a policy, not about the mailbox.",
  sender_rejected: "The server refused our sender address, so it did not check the recipient.",
  tls_required: "The server requires TLS, which could not be negotiated.",
  smtp_temporary_error: "The server gave only temporary errors.",
  smtp_protocol_error: "The mail host violated the protocol or closed the connection before it replied to RCPT.",
  smtp_unreachable: "No mail host accepted the connection.",
  smtp_timeout: "No mail host responded in time.",
  internal_error: "The verification failed on our side.",
};

/** Why no probe could be sent, with the egress and its setting; null when the cause is not known. */
const ourFault = ({ attempts }: Evidence, { rule }: ProbeFinding): string | null => {
  const sessions = attempts.at(-1)?.sessions ?? [];
  const egress = sessions.findLast(({ failure }) => failure?.kind === rule)?.egress ?? "direct";
  switch (rule) {
    case "local_failure":
      return egress === "direct"
        ? "This machine could not open a connection; no probe was sent."
        : `This machine cannot connect from ${egress} (POSTWARDEN_SOURCE_ADDRESSES); no probe was sent.`;
    case "proxy_failed":
      return `The proxy ${egress} (POSTWARDEN_SOCKS_PROXIES) does not work; no probe was sent.`;
    case "no_egress":
      return "No source address (POSTWARDEN_SOURCE_ADDRESSES) has the IP version of the mail host; no probe was sent.";
    default:
      return null;
  }
};

const quoted = ({ host, reply }: ProbeFinding): string =>
  reply === null ? `${host ?? "The mail host"} gave no reply` : `${host ?? "The mail host"} replied "${reply}"`;

/** What shows that a refusal with a policy code is about the mailbox. */
const controlWords = ({ positive_control: control }: ProbeFinding): string => {
  if (control === null) return "";
  return control.recipient === "postmaster"
    ? ", and accepts postmaster at the domain"
    : ", and accepted another recipient of the domain shortly before";
};

const hardNo = (evidence: Evidence, finding: ProbeFinding | null): Decision | null => {
  const { address, domain } = evidence;
  if (address.problem !== null) return { subStatus: "invalid_syntax", because: address.problem };
  if (isDomainNo(domain)) return DOMAIN_NO[domain.outcome];
  if (!isHardNo(evidence, finding)) return null;
  const subStatus = subStatusOfFinding(finding);
  if (finding.reply !== null) return { subStatus, because: `${quoted(finding)}${controlWords(finding)}.` };
  return { subStatus, because: `${finding.host} does not offer SMTPUTF8, which the address needs.` };
};

const dnsErrorWords = ({ hosts }: DomainEvidence): string =>
  hosts.length === 0
    ? "DNS gave no usable response for the domain."
    : "No mail host with a public address was found, and the lookup of at least one failed.";

const unsettled = (evidence: Evidence, finding: ProbeFinding | null): Decision | null => {
  const { domain } = evidence;
  if (domain === null || finding === null) {
    return domain?.outcome === "dns_error"
      ? { subStatus: "dns_error", because: dnsErrorWords(domain) }
      : domain?.outcome === "local_failure"
        ? { subStatus: "internal_error", because: "This machine could not send its DNS queries." }
        : { subStatus: "internal_error", because: "The verification failed on our side." };
  }
  const subStatus = subStatusOfFinding(finding);
  if (VERDICT_OF[subStatus] === "risky" && !SETTLED.has(subStatus)) {
    const ours = finding.reading === "internal" ? ourFault(evidence, finding) : null;
    const words = ours ?? (finding.reading === "ambiguous" ? OPEN_WORDS : UNSETTLED_WORDS[subStatus]) ?? "";
    return { subStatus, because: finding.reply === null ? words : `${quoted(finding)}. ${words}` };
  }
  if (domain.unverifiable_provider === null) return null;
  const because = `${domain.unverifiable_provider} gives the same reply for every recipient, whether the mailbox exists or not.`;
  return { subStatus: "unverifiable_provider", because };
};

/** The first that applies decides, in the order of contract §4. */
const decide = (evidence: Evidence, finding: ProbeFinding | null): Decision => {
  const reported = hardNo(evidence, finding) ?? bounceDecision(evidence, finding);
  if (reported !== null) return reported;
  const { disposable, role_account: role } = evidence.address;
  const toxic = evidence.toxic?.entry ?? null;
  if (toxic !== null) return { subStatus: "toxic", because: `The address is on the suppression list (${toxic}).` };
  if (disposable !== null)
    return { subStatus: "disposable", because: `The domain is on the list of disposable domains (${disposable}).` };
  if (finding?.reading === "mailbox_full")
    return { subStatus: "mailbox_full", because: `${quoted(finding)}: the mailbox is full.` };
  if (finding?.reading === "accepted" && finding.catch_all === "yes" && !evidence.domain?.unverifiable_provider)
    return { subStatus: "catch_all", because: `${finding.host} also accepts a random recipient of the domain.` };
  const open = unsettled(evidence, finding);
  if (open !== null) return open;
  const [listing] = evidence.dnsbl?.listings ?? [];
  if (listing !== undefined)
    return { subStatus: "dnsbl_listed", because: `${listing.subject} is on the blocklist ${listing.listing}.` };
  if (role !== null) return { subStatus: "role_account", because: `"${role}" is a role, not a person.` };
  const proof = finding?.catch_all === "no" ? " and refuses a random one" : "";
  return { subStatus: "mailbox_exists", because: `${finding?.host ?? "The mail host"} accepts the recipient${proof}.` };
};

const DOMAIN_SIGNAL: Readonly<Record<DomainEvidence["outcome"], { domain: Signal; mx: Signal }>> = {
  mail_hosts: { domain: "pass", mx: "pass" },
  nxdomain: { domain: "fail", mx: "skipped" },
  no_mail_server: { domain: "pass", mx: "fail" },
  null_mx: { domain: "pass", mx: "fail" },
  unroutable: { domain: "pass", mx: "fail" },
  dns_error: { domain: "unknown", mx: "unknown" },
  local_failure: { domain: "unknown", mx: "unknown" },
};

const domainSignals = (domain: DomainEvidence | null): { domain: Signal; mx: Signal } => {
  if (domain === null) return { domain: "skipped", mx: "skipped" };
  const signals = DOMAIN_SIGNAL[domain.outcome];
  return domain.implicit_mx && signals.mx === "pass" ? { ...signals, mx: "warn" } : signals;
};

const smtpSignal = (finding: ProbeFinding | null, unverifiable: boolean): Signal => {
  if (finding === null) return "skipped";
  if (unverifiable) return "unknown";
  if (finding.reading === "accepted") return "pass";
  if (finding.reading === "mailbox_full") return "warn";
  return VERDICT_OF[subStatusOfFinding(finding)] === "undeliverable" ? "fail" : "unknown";
};

const catchAllSignal = (finding: ProbeFinding | null, unverifiable: boolean): Signal => {
  if (finding === null) return "skipped";
  if (unverifiable) return "unknown";
  return ({ yes: "warn", no: "pass", unknown: "unknown", skipped: "skipped" } as const)[finding.catch_all];
};

const greylistingSignal = (finding: ProbeFinding | null): Signal => {
  if (finding === null || !finding.heard) return "skipped";
  return finding.reading === "greylisted" ? "warn" : "pass";
};

const DNSBL_SIGNAL = { clean: "pass", listed: "warn", unknown: "unknown" } as const;

const signalsOf = (evidence: Evidence, finding: ProbeFinding | null): Signals => {
  const { address, domain } = evidence;
  const isAddress = address.problem === null;
  const unverifiable = domain?.unverifiable_provider != null;
  const listed = (entry: string | null, hit: Signal): Signal =>
    isAddress ? (entry === null ? "pass" : hit) : "skipped";
  return {
    syntax: isAddress ? "pass" : "fail",
    ...domainSignals(domain),
    smtp: smtpSignal(finding, unverifiable),
    catch_all: catchAllSignal(finding, unverifiable),
    role_account: listed(address.role_account, "warn"),
    disposable: listed(address.disposable, "fail"),
    dnsbl: evidence.dnsbl === null ? "skipped" : DNSBL_SIGNAL[evidence.dnsbl.outcome],
    toxic: evidence.toxic === null ? "skipped" : evidence.toxic.entry === null ? "pass" : "fail",
    greylisting: greylistingSignal(finding),
  };
};

/** Readings that are not charged: no server responded, or it was our fault. */
const FREE_READINGS: ReadonlySet<ProbeFinding["reading"]> = new Set(["unreachable", "timeout", "internal"]);

const isChargeable = ({ address, domain }: Evidence, finding: ProbeFinding | null): boolean => {
  if (address.problem !== null) return true;
  if (isDomainNo(domain)) return true;
  if (domain?.outcome !== "mail_hosts") return false;
  return finding?.heard === true && !FREE_READINGS.has(finding.reading);
};

/** Readings that say nothing about what the server would have replied. */
const INTERRUPTIONS: ReadonlySet<ProbeFinding["reading"]> = new Set([...FREE_READINGS, "protocol_error"]);

const isAcceptance = ({ reading }: ProbeFinding): boolean => reading === "accepted";

const isTemporary = (finding: ProbeFinding): boolean =>
  finding.retryable && VERDICT_OF[subStatusOfFinding(finding)] === "risky";

/**
 * What the evidence says about the mailbox: the finding of the latest attempt or, where that says nothing, an earlier
 * acceptance; where it was cut short, the temporary refusal of an earlier one. Null when no mail host was probed.
 */
export const latestFinding = ({ attempts }: Evidence): ProbeFinding | null => {
  const latest = attempts.at(-1)?.finding ?? null;
  if (latest === null) return null;
  const findings = attempts.map(({ finding }) => finding);
  const isCutShort = INTERRUPTIONS.has(latest.reading);
  const accepted = isCutShort || isTemporary(latest) ? findings.findLast(isAcceptance) : undefined;
  return accepted ?? (isCutShort ? findings.findLast(isTemporary) : undefined) ?? latest;
};

/** From evidence to verdict, sub_status, scores and signals (contract §4). Pure: the same evidence, the same verdict. */
export const decideVerdict = (evidence: Evidence): DecidedVerdict => {
  const finding = latestFinding(evidence);
  const { subStatus, because } = decide(evidence, finding);
  const verdict = VERDICT_OF[subStatus];
  const signals = signalsOf(evidence, finding);
  return {
    verdict,
    sub_status: subStatus,
    quality_score: qualityScore(verdict, subStatus, signals),
    confidence: confidenceScore(subStatus, signals),
    signals,
    because,
    chargeable: isChargeable(evidence, finding),
  };
};

export interface ConcludedVerification {
  readonly result: VerificationResult;
  /** The evidence with its conclusion written in. */
  readonly evidence: Evidence;
  /** False when no mail server responded: such a verification is not charged. */
  readonly chargeable: boolean;
}

/** The result object of the evidence; `verifiedAt` is ISO 8601 in UTC with milliseconds. */
export const concludeVerification = (evidence: Evidence, verifiedAt: string): ConcludedVerification => {
  const decided = decideVerdict(evidence);
  const { verdict, sub_status, quality_score, confidence, signals, because } = decided;
  const { submitted: email, normalized_email } = evidence.address;
  return {
    result: {
      email,
      normalized_email,
      verdict,
      sub_status,
      quality_score,
      confidence,
      signals,
      verified_at: verifiedAt,
    },
    evidence: { ...evidence, conclusion: { verdict, sub_status, quality_score, confidence, because } },
    chargeable: decided.chargeable,
  };
};

/** A server's retry hint is followed up to this; longer ones are not worth a pending verification. */
const HINT_S_MAX = 7_200;
/** Greylisting compares whole seconds: a retry at exactly the hinted time can be too early. */
const HINT_MARGIN_S = 1;
/** No host is left alone longer than this: other accounts wait for it, too. */
const PAUSE_MS_MAX = 10 * 60_000;

/** DNS outcomes that may change within a moment; what is wrong with the domain's own records stays. */
const DNS_FAILURES: ReadonlySet<string> = new Set([
  "servfail",
  "refused",
  "timeout",
  "malformed",
  "network_error",
  "unconfirmed",
]);
/** Local reasons for not connecting that may be over at the next attempt. */
const LOCAL_RULES: ReadonlySet<string> = new Set(["local_failure", "proxy_failed"]);

/**
 * The channel on which the latest attempt got no response, so that an outage may be the cause; null when it got one, or
 * when it failed because of a bug.
 */
export const unansweredChannel = ({ domain, attempts }: Evidence): Channel | null => {
  if (domain?.outcome === "local_failure") return "dns_sockets";
  if (domain?.outcome === "dns_error")
    return domain.dns_queries.some(({ outcome }) => DNS_FAILURES.has(outcome)) ? "dns" : null;
  const latest = attempts.at(-1)?.finding;
  if (domain?.outcome !== "mail_hosts" || latest === undefined) return null;
  if (latest.reading === "unreachable") return "smtp";
  return latest.reading === "internal" && LOCAL_RULES.has(latest.rule ?? "") ? "egress" : null;
};

/** A host that names a blocklist at the retry as well is left alone. */
const wasRetriedOnce = ({ attempts }: Evidence): boolean =>
  attempts.filter(({ finding }) => isRetriedOnce(finding.rule)).length > 1 &&
  isRetriedOnce(attempts.at(-1)?.finding.rule ?? null);

/** Why the evidence calls for another attempt, with the server's own hint when; null when it does not. */
const reasonToRetry = (evidence: Evidence, isOutage: boolean): { reason: string; hintS: number | null } | null => {
  const channel = unansweredChannel(evidence);
  const finding = latestFinding(evidence);
  if (finding?.retryable) {
    if (evidence.domain?.outcome !== "mail_hosts" || evidence.domain.unverifiable_provider !== null) return null;
    const firstAccepted = evidence.attempts.findIndex((attempt) => isAcceptance(attempt.finding));
    // For the random recipient, one retry is enough.
    if (firstAccepted !== -1 && firstAccepted < evidence.attempts.length - 1) return null;
    if (finding.retry_hint_s === null && wasRetriedOnce(evidence)) return null;
    return { reason: isAcceptance(finding) ? "greylisted" : finding.reading, hintS: finding.retry_hint_s };
  }
  if (channel === "dns") return { reason: "dns_error", hintS: null };
  if (channel === "dns_sockets" || channel === "egress") return { reason: "local_failure", hintS: null };
  return channel === "smtp" && isOutage ? { reason: "smtp_unreachable", hintS: null } : null;
};

export interface RetryPolicy {
  readonly nowMs: number;
  /** Waits before the retries, in seconds; as many retries as there are waits. */
  readonly retryWaitsS: readonly number[];
  /** In an outage, an unreachable mail host is tried again as well. */
  readonly isOutage: boolean;
}

const isFollowed = (hintS: number | null): hintS is number => hintS !== null && hintS <= HINT_S_MAX;

/** How long a host is left alone that has shut us out: until the first retry is due. Zero when nothing is retried. */
export const pauseMsOf = (hintS: number | null, [firstS = 0]: readonly number[]): number => {
  const waitS = firstS > 0 && isFollowed(hintS) ? hintS + HINT_MARGIN_S : firstS;
  return Math.min(waitS * 1000, PAUSE_MS_MAX);
};

/** The next attempt that the evidence calls for; null when it is conclusive or the retries are used up. */
export const planRetry = (evidence: Evidence, { nowMs, retryWaitsS, isOutage }: RetryPolicy): PlannedRetry | null => {
  const wanted = reasonToRetry(evidence, isOutage);
  const scheduledS = retryWaitsS[evidence.retries.length];
  if (wanted === null || scheduledS === undefined) return null;
  const { reason, hintS } = wanted;
  const isHinted = isFollowed(hintS);
  const waitS = isHinted ? hintS + HINT_MARGIN_S : scheduledS;
  return {
    reason,
    planned_at: isoTime(nowMs),
    due_at: isoTime(nowMs + waitS * 1000),
    waited_for: isHinted ? "server_hint" : "schedule",
  };
};

/** How long a planned retry waits. */
export const waitMsOf = ({ planned_at, due_at }: PlannedRetry): number => Date.parse(due_at) - Date.parse(planned_at);

/** No retry is planned for later than this from now, in milliseconds. */
export const longestRetryWaitMs = (retryWaitsS: readonly number[]): number =>
  Math.max(HINT_S_MAX + HINT_MARGIN_S, ...retryWaitsS) * 1000;
