import type { DomainEvidence, Evidence, ProbeFinding } from "./evidence.ts";
import { RETRYABLE } from "./findings.ts";
import { subStatusOf } from "./replies.ts";
import {
  type Signal,
  type Signals,
  type SubStatus,
  VERDICT_OF,
  type Verdict,
  type VerificationResult,
} from "./result.ts";
import { confidenceScore, qualityScore } from "./scores.ts";

/** What the evidence amounts to. */
export interface DecidedVerdict {
  readonly verdict: Verdict;
  readonly sub_status: SubStatus;
  readonly quality_score: number;
  readonly confidence: number;
  readonly signals: Signals;
  /** One sentence for people: which evidence decided. */
  readonly because: string;
  /** False where the mail server was never heard: such a check is free of charge. */
  readonly chargeable: boolean;
}

interface Decision {
  readonly subStatus: SubStatus;
  readonly because: string;
}

/** What DNS says when it says no: neither mail hosts, nor that they could not be found out. */
type Undecided = "mail_hosts" | "dns_error" | "local_failure";

const isDomainNo = (domain: DomainEvidence | null): domain is DomainEvidence & { outcome: keyof typeof DOMAIN_NO } =>
  domain !== null && Object.hasOwn(DOMAIN_NO, domain.outcome);

const DOMAIN_NO: Readonly<Record<Exclude<DomainEvidence["outcome"], Undecided>, Decision>> = {
  nxdomain: { subStatus: "domain_not_found", because: "The domain does not exist (NXDOMAIN)." },
  no_mail_server: {
    subStatus: "no_mail_server",
    because: "The domain exists, but has neither MX nor A nor AAAA records.",
  },
  null_mx: { subStatus: "null_mx", because: "The domain says that it takes no mail (null MX, RFC 7505)." },
  unroutable: {
    subStatus: "unroutable_mx",
    because: "Every mail host of the domain resolves to nothing, or only to addresses that are not public.",
  },
};

/** What nobody said, beside what a reply can mean. */
const UNSAID = { unreachable: "smtp_unreachable", timeout: "smtp_timeout", internal: "internal_error" } as const;

const subStatusOfFinding = ({ reading }: ProbeFinding): SubStatus =>
  reading === "unreachable" || reading === "timeout" || reading === "internal" ? UNSAID[reading] : subStatusOf(reading);

/** A definite no about the mailbox. A provider that refuses every recipient alike cannot give one. */
const isHardNo = ({ domain }: Evidence, finding: ProbeFinding | null): finding is ProbeFinding =>
  finding !== null &&
  domain?.unverifiable_provider == null &&
  VERDICT_OF[subStatusOfFinding(finding)] === "undeliverable";

/** After these the question is settled: the recipient was accepted, or is there and takes nothing more. */
const SETTLED: ReadonlySet<SubStatus> = new Set(["mailbox_exists", "mailbox_full"]);

const UNSETTLED_WORDS: Partial<Readonly<Record<SubStatus, string>>> = {
  greylisted: "It was still greylisting us when the retries were used up.",
  rate_limited: "It limits how much we may ask, and still did when the retries were used up.",
  smtp_blocked: "The refusal is about us or about policy, not about the mailbox.",
  sender_rejected: "It refused our sender address, so the recipient was never judged.",
  tls_required: "It demands TLS, which could not be had.",
  smtp_temporary_error: "It only ever refused for the time being.",
  smtp_protocol_error:
    "The mail host broke the protocol or dropped the connection before it said anything of the recipient.",
  smtp_unreachable: "No mail host took the connection.",
  smtp_timeout: "No mail host replied in time.",
  internal_error: "The check failed on our side.",
};

/** Why it was our fault that no probe was sent, by what stopped us: with the egress and the setting it comes from. */
const ourFault = ({ attempts }: Evidence, { rule }: ProbeFinding): string | null => {
  const dialogues = attempts.at(-1)?.dialogues ?? [];
  const exit = dialogues.findLast(({ failure }) => failure?.kind === rule)?.exit ?? "direct";
  switch (rule) {
    case "local_failure":
      return exit === "direct"
        ? "This machine could not open a connection; no probe was sent."
        : `This machine cannot connect from ${exit} (POSTWARDEN_SOURCE_ADDRESSES): is it one of its addresses? No probe was sent.`;
    case "proxy_failed":
      return `The proxy ${exit} (POSTWARDEN_SOCKS_PROXIES) cannot be used; no probe was sent.`;
    case "no_exit":
      return "No source address (POSTWARDEN_SOURCE_ADDRESSES) is of the mail host's IP version; no probe was sent.";
    default:
      return null;
  }
};

const quoted = ({ host, reply }: ProbeFinding): string =>
  reply === null
    ? `${host ?? "The mail host"} gave no reply about it`
    : `${host ?? "The mail host"} answered "${reply}"`;

const hardNo = (evidence: Evidence, finding: ProbeFinding | null): Decision | null => {
  const { address, domain } = evidence;
  if (address.problem !== null) return { subStatus: "invalid_syntax", because: address.problem };
  if (isDomainNo(domain)) return DOMAIN_NO[domain.outcome];
  if (!isHardNo(evidence, finding)) return null;
  const subStatus = subStatusOfFinding(finding);
  if (finding.reply !== null) return { subStatus, because: `${quoted(finding)}.` };
  return { subStatus, because: `${finding.host} does not offer SMTPUTF8, which the address needs.` };
};

const dnsErrorWords = ({ hosts }: DomainEvidence): string =>
  hosts.length === 0
    ? "DNS gave no usable answer about the domain."
    : "No mail host with a public address was found, and DNS gave no usable answer about all of them.";

const unsettled = (evidence: Evidence, finding: ProbeFinding | null): Decision | null => {
  const { domain } = evidence;
  if (domain === null || finding === null) {
    return domain?.outcome === "dns_error"
      ? { subStatus: "dns_error", because: dnsErrorWords(domain) }
      : domain?.outcome === "local_failure"
        ? { subStatus: "internal_error", because: "This machine could not send its DNS queries." }
        : { subStatus: "internal_error", because: "The check failed on our side." };
  }
  const subStatus = subStatusOfFinding(finding);
  if (VERDICT_OF[subStatus] === "risky" && !SETTLED.has(subStatus)) {
    const ours = finding.reading === "internal" ? ourFault(evidence, finding) : null;
    const words = ours ?? UNSETTLED_WORDS[subStatus] ?? "";
    return { subStatus, because: finding.reply === null ? words : `${quoted(finding)}. ${words}` };
  }
  if (domain.unverifiable_provider === null) return null;
  const because = `${domain.unverifiable_provider} accepts or refuses every recipient alike, whatever the mailbox.`;
  return { subStatus: "unverifiable_provider", because };
};

/** The order of contract §4: the first that applies decides. */
const decide = (evidence: Evidence, finding: ProbeFinding | null): Decision => {
  const no = hardNo(evidence, finding);
  if (no !== null) return no;
  const { disposable, role_account: role } = evidence.address;
  const toxic = evidence.toxic?.entry ?? null;
  if (toxic !== null)
    return { subStatus: "toxic", because: `It is on the list of addresses not to be mailed (${toxic}).` };
  if (disposable !== null)
    return { subStatus: "disposable", because: `The domain is on the list of disposable ones (${disposable}).` };
  if (finding?.reading === "mailbox_full")
    return { subStatus: "mailbox_full", because: `${quoted(finding)}: the mailbox is full.` };
  if (finding?.reading === "accepted" && finding.catch_all === "yes" && !evidence.domain?.unverifiable_provider)
    return { subStatus: "catch_all", because: `${finding.host} accepts a random recipient of the domain as well.` };
  const open = unsettled(evidence, finding);
  if (open !== null) return open;
  const [listing] = evidence.dnsbl?.listings ?? [];
  if (listing !== undefined)
    return { subStatus: "dnsbl_listed", because: `${listing.subject} is on a blocklist (${listing.listing}).` };
  if (role !== null) return { subStatus: "role_account", because: `"${role}" stands for a role, not for a person.` };
  const proof = finding?.catch_all === "no" ? ", and refuses a random recipient" : "";
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

/** Readings after which nothing is charged: nobody was heard, or it was our fault. */
const FREE_READINGS: ReadonlySet<ProbeFinding["reading"]> = new Set(["unreachable", "timeout", "internal"]);

const isChargeable = ({ address, domain }: Evidence, finding: ProbeFinding | null): boolean => {
  if (address.problem !== null) return true;
  if (isDomainNo(domain)) return true;
  if (domain?.outcome !== "mail_hosts") return false;
  return finding?.heard === true && !FREE_READINGS.has(finding.reading);
};

/** What may come between two tries: it says nothing about what the server would have said. */
const INTERRUPTIONS: ReadonlySet<ProbeFinding["reading"]> = new Set([
  "unreachable",
  "timeout",
  "internal",
  "protocol_error",
]);

/**
 * What the evidence says about the mailbox: the finding of the latest attempt or, where that was cut short, what a server
 * that asked us to come back had said before. Null when nothing was asked.
 */
export const latestFinding = ({ attempts }: Evidence): ProbeFinding | null => {
  const latest = attempts.at(-1)?.finding ?? null;
  if (latest === null || !INTERRUPTIONS.has(latest.reading)) return latest;
  return attempts.findLast(({ finding: { reading } }) => RETRYABLE.has(reading))?.finding ?? latest;
};

/** From evidence to verdict, sub_status, scores and signals (contract §4). Pure: the same evidence, the same answer. */
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
  /** False where no mail server responded: such a check is not charged. */
  readonly chargeable: boolean;
}

/** Draws the result object from the evidence; `verifiedAt` is ISO 8601 in UTC with milliseconds. */
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
