import type { OnBehalfOf } from "../foundation/base/on-behalf-of.ts";
import type { Address } from "../foundation/mail/address.ts";
import type { SmtpReply } from "../foundation/net/smtp-reply.ts";
import type { Egress, EgressPool } from "./smtp/open.ts";
import type { ProbeTarget, ProbeResult } from "./smtp/host-queue.ts";
import type { ProbePool } from "./smtp/pool.ts";
import {
  type CachedCatchAll,
  type CatchAllCache,
  type AcceptancePlace,
  postmasterOf,
  type RecentAcceptances,
  findingOfFailure,
  findingOfReplies,
  needsControl,
  noFinding,
} from "./findings.ts";
import type { ProbeFinding, ReplyEvidence, SessionEvidence } from "./evidence.ts";
import { isRetriedOnce, pausesHost, readReply, type ReplyHints } from "./replies.ts";
import { pauseMsOf } from "./verdict.ts";
import { isoTime } from "../foundation/base/clock.ts";

export interface HostProberDeps {
  readonly pool: Pick<ProbePool, "probe" | "notePace" | "fullEgresses">;
  readonly egresses: EgressPool;
  readonly catchAllCache: CatchAllCache;
  readonly acceptances: RecentAcceptances;
  readonly heloName: string;
  /** The envelope sender; empty for the null sender. */
  readonly mailFrom: string;
  /** Waits before the retries, in seconds: a host that has shut us out is left alone for the first. */
  readonly retryWaitsS: readonly number[];
}

export interface HostProbe {
  readonly address: Address;
  /** The recipient that does not exist, with its domain. */
  readonly randomRecipient: string;
  /** The egress of the attempt before: greylisting recognizes us by it. */
  readonly previousEgress: string | null;
  readonly onBehalfOf: OnBehalfOf;
}

/** An address of a mail host, before an egress is chosen. */
export type HostAddress = Omit<ProbeTarget, "egress">;

export interface HostResult {
  readonly sessions: readonly SessionEvidence[];
  readonly tookMs: number;
  readonly finding: ProbeFinding;
  /** No other host needs to be probed. */
  readonly settled: boolean;
}

interface ProbedSession {
  readonly session: SessionEvidence;
  readonly result: ProbeResult;
}

/** Egresses tried at one host in one attempt, when it blocks the first. */
const EGRESSES_TRIED_MAX = 3;

/** How a session ends when the mail host, or a proxy on the way to it, is at fault: without a reply that says more. */
const ENDS_WITHOUT_REPLY: ReadonlySet<string | null> = new Set([
  "refused_or_unreachable",
  "connect_timeout",
  "closed",
  "timeout",
  "deadline",
]);

/** The attempts at one host. */
interface HostTrial {
  readonly tried: Set<string>;
  /** Egresses that the host blocks, or whose proxy may be at fault, if another one gets a reply. */
  readonly suspects: string[];
  readonly results: HostResult[];
  isRepeated: boolean;
}

/**
 * Probes one host for the submitted recipient and for a random one. Where it blocks an egress, another one is tried at
 * once; the blocked one is then on cooldown at the provider. A session through a proxy that ends without a reply is
 * repeated once, because the proxy may be at fault. Whether the host accepts random recipients is cached for the next
 * addresses of the domain.
 */
export class HostProber {
  readonly #pool: HostProberDeps["pool"];
  readonly #egresses: EgressPool;
  readonly #catchAllCache: CatchAllCache;
  readonly #acceptances: RecentAcceptances;
  readonly #retryWaitsS: readonly number[];
  readonly #envelope: { readonly heloName: string; readonly mailFrom: string };

  constructor({ pool, egresses, catchAllCache, acceptances, retryWaitsS, heloName, mailFrom }: HostProberDeps) {
    this.#pool = pool;
    this.#egresses = egresses;
    this.#catchAllCache = catchAllCache;
    this.#acceptances = acceptances;
    this.#retryWaitsS = retryWaitsS;
    this.#envelope = { heloName, mailFrom };
  }

  async probe(host: HostAddress, probe: HostProbe): Promise<HostResult> {
    const trial: HostTrial = { tried: new Set(), suspects: [], results: [], isRepeated: false };
    const sessions: SessionEvidence[] = [];
    let tookMs = 0;
    let egress = this.#firstEgress(host, probe.previousEgress);
    while (egress !== null && trial.tried.size < EGRESSES_TRIED_MAX) {
      const result = await this.#probeFrom({ ...host, egress: egress.name }, probe);
      sessions.push(...result.sessions);
      tookMs += result.tookMs;
      egress = this.#judge(host, trial, { egress, result });
    }
    return { ...trial.results.reduce(better, noEgress(host.host)), sessions, tookMs };
  }

  /** The egress of the attempt before, where it can be used; else one that has a connection to spare. */
  #firstEgress(host: HostAddress, previous: string | null): Egress | null {
    const full = new Set([...this.#pool.fullEgresses()].filter((name) => name !== previous));
    return (
      this.#egresses.choose(host, previous, full) ??
      this.#egresses.choose(host, previous) ??
      this.#egresses.chooseAny(host)
    );
  }

  /** Notes what a session shows about its egress, and returns the one to try next; null when the result counts. */
  #judge(
    host: HostAddress,
    trial: HostTrial,
    { egress, result }: { readonly egress: Egress; readonly result: HostResult },
  ): Egress | null {
    const { reading, heard, rule } = result.finding;
    this.#notePace({ ...host, egress: egress.name }, result);
    const isProxyInDoubt = egress.isProxy && ENDS_WITHOUT_REPLY.has(rule);
    if (isProxyInDoubt && !trial.isRepeated) {
      trial.isRepeated = true;
      trial.tried.add(egress.name);
      const other = this.#egresses.choose(host, null, trial.tried);
      if (other !== null) trial.suspects.push(egress.name);
      // A session that broke off may be the proxy's end: only the repetition counts, if need be through the same proxy.
      if (rule === "closed") return other ?? egress;
      trial.results.push(result);
      return other;
    }
    trial.results.push(result);
    // The refusal, or the failure, is due to the egress: another one may fare better.
    const isEgressAtFault = reading === "blocked" || reading === "internal";
    if (reading === "internal") this.#egresses.markBroken(egress.name);
    if (reading === "blocked") trial.suspects.push(egress.name);
    if (!isEgressAtFault && heard && !isProxyInDoubt) {
      for (const name of trial.suspects) this.#egresses.block(name, host.provider);
      this.#egresses.markWorking(egress.name, host.provider);
    }
    // After a block, a timeout from the next egress may be the same block.
    if (!isEgressAtFault && (heard || trial.suspects.length === 0 || trial.isRepeated)) return null;
    trial.tried.add(egress.name);
    return this.#egresses.choose(host, null, trial.tried);
  }

  /** Probes from one egress: both recipients in one mail, and further ones alone where that is not conclusive. */
  async #probeFrom(target: ProbeTarget, probe: HostProbe): Promise<HostResult> {
    const { address, randomRecipient } = probe;
    const place = { domain: address.domain, host: target.host, egress: target.egress };
    const cached = this.#catchAllCache.find(address.domain, target.host);
    const recipients = cached === null ? [address.mailbox, randomRecipient] : [address.mailbox];
    const first = await this.#runSession(target, recipients, probe, "submitted");
    const probed = [first];
    const replies = [...first.session.replies];
    const probeAlone = async (recipient: string, about: "random" | "control") => {
      const further = await this.#runSession(target, [recipient], probe, about);
      probed.push(further);
      replies.push(...further.session.replies);
    };
    if (needsRandomAlone(replies, cached)) await probeAlone(randomRecipient, "random");
    const earlier = this.#acceptances.find(place, address.normalized);
    if (earlier === null && needsPostmaster(replies, address))
      await probeAlone(postmasterOf(address.domain), "control");
    const sessions = probed.map(({ session }) => session);
    const tookMs = probed.reduce((sum, { result }) => sum + result.tookMs, 0);
    this.#noteAcceptances(place, address, replies);
    const settled = findingOfReplies(target.host, replies, earlier);
    if (settled === null) {
      const finding = findingOfFailure(target.host, replies, first.result.failure);
      return { sessions, tookMs, finding, settled: false };
    }
    const finding = this.#withCatchAll(settled, address.domain, cached);
    return { sessions, tookMs, finding, settled: true };
  }

  /** One MAIL in one session. `about`: which recipient is the first; a second one is the random one. */
  async #runSession(
    target: ProbeTarget,
    recipients: readonly string[],
    { address, onBehalfOf }: HostProbe,
    first: "submitted" | "random" | "control",
  ): Promise<ProbedSession> {
    const smtputf8 = first === "submitted" && address.needsSmtputf8;
    const recipient = recipients[0] ?? "";
    const { heloName, mailFrom } = this.#envelope;
    const hints = { heloName, mailFrom, recipient, mxHost: target.host, smtputf8Sent: smtputf8 };
    const stopAfter = (_index: number, reply: SmtpReply) =>
      !wantsRandom(reply, readReply(reply, "rcpt", hints).reading);
    const result = await this.#pool.probe(target, { mailFrom, recipients, smtputf8, stopAfter }, onBehalfOf);
    const about = (index: number) => (index > 0 ? "random" : first);
    return { session: sessionEvidence(target, result, { about, hints }), result };
  }

  /** What the host accepted shows later that it does not refuse us, until it does. */
  #noteAcceptances(place: AcceptancePlace, { domain, normalized }: Address, replies: readonly ReplyEvidence[]): void {
    if (replies.some(({ reading }) => REFUSES_US.has(reading))) this.#acceptances.noteRefused(place);
    for (const { about, reading } of replies) {
      if (reading !== "accepted") continue;
      if (about === "submitted") this.#acceptances.noteAccepted(place, normalized);
      if (about === "control") this.#acceptances.noteAccepted(place, postmasterOf(domain));
    }
  }

  /** Caches what the host just replied about random recipients, or completes the finding from the cache. */
  #withCatchAll(finding: ProbeFinding, domain: string, cached: CachedCatchAll | null): ProbeFinding {
    const { catch_all: state, host, reading } = finding;
    const isNews = reading === "accepted" && (state === "yes" || state === "no");
    if (isNews) this.#catchAllCache.set(domain, host ?? "", state);
    if (cached === null || state !== "unknown") return finding;
    return { ...finding, catch_all: cached.state, catch_all_age_s: Math.round(cached.ageMs / 1000) };
  }

  #notePace(target: ProbeTarget, { sessions, finding }: HostResult): void {
    const { reading, heard, retryable, rule } = finding;
    const shutOut = sessions.flatMap(({ replies }) => replies).find((reply) => pausesHost(reply.rule));
    const pauseMs = shutOut === undefined ? 0 : pauseMsOf(shutOut.retry_after_s, this.#retryWaitsS);
    if (pauseMs > 0) this.#pool.notePace(target, { kind: "shut_out", pauseMs });
    else if (reading === "rate_limited" || shutOut !== undefined || (retryable && isRetriedOnce(rule)))
      this.#pool.notePace(target, { kind: "rate_limited" });
    else if (heard) this.#pool.notePace(target, { kind: "answered" });
  }
}

/** A response counts more than none, a failure at the host more than one on our side, and of two alike the later one. */
const better = (before: HostResult, next: HostResult): HostResult => {
  if (next.finding.heard || before.finding.reading === "internal") return next;
  return before.finding.heard || next.finding.reading === "internal" ? before : next;
};

/** No egress leads to the host: every source address is of the other IP version. */
const noEgress = (host: string): HostResult => ({
  sessions: [],
  tookMs: 0,
  finding: { ...noFinding(host), reading: "internal", stage: "connect", rule: "no_egress" },
  settled: false,
});

/** Replies after which earlier acceptances prove nothing. */
const REFUSES_US: ReadonlySet<ReplyEvidence["reading"]> = new Set(["blocked", "rate_limited", "sender_rejected"]);

/** Readings after which the random recipient is worth a probe. */
const WANTS_RANDOM: ReadonlySet<ReplyEvidence["reading"]> = new Set([
  ...(["accepted", "ambiguous", "greylisted"] as const),
]);
/** Temporary refusals may be greylisting in other words; then the random recipient must have been seen, too. */
const MAY_BE_GREYLISTING: ReadonlySet<ReplyEvidence["reading"]> = new Set(["blocked", "temporary", "sender_rejected"]);

/** Without pipelining: whether the random recipient is probed after this reply to the submitted one. */
const wantsRandom = ({ code }: SmtpReply, reading: ReplyEvidence["reading"]): boolean =>
  WANTS_RANDOM.has(reading) || (code < 500 && code !== 421 && MAY_BE_GREYLISTING.has(reading));

/** Refusals of the random recipient that may be due to the other recipient in the same mail. */
const MAY_BE_DUE_TO_THE_OTHER: ReadonlySet<ReplyEvidence["reading"]> = new Set([
  ...(["rate_limited", "protocol_error", "temporary", "ambiguous", "blocked"] as const),
]);

/**
 * Whether the random recipient must be probed alone: the recipient is accepted, and the random one beside it was refused,
 * perhaps because of the other, or got no reply because the session ended; or the reply can only be understood by
 * comparison, and the random one was skipped because of the cache.
 */
const needsRandomAlone = (replies: readonly ReplyEvidence[], cached: CachedCatchAll | null): boolean => {
  const submitted = replies.find(({ about }) => about === "submitted");
  const random = replies.find(({ about }) => about === "random");
  if (cached !== null) return submitted?.reading === "ambiguous";
  return submitted?.reading === "accepted" && (random === undefined || MAY_BE_DUE_TO_THE_OTHER.has(random.reading));
};

/** Whether an accepted postmaster would show that the refusal is about the mailbox. */
const needsPostmaster = (replies: readonly ReplyEvidence[], { domain, normalized }: Address): boolean => {
  const submitted = replies.find(({ about }) => about === "submitted");
  if (submitted === undefined || !needsControl(submitted) || normalized === postmasterOf(domain)) return false;
  return !replies.some(({ about, reading }) => about === "random" && reading === "accepted");
};

/** Transcript lines kept of one session; an ordinary one has some twenty. The last ones are the most useful. */
const TRANSCRIPT_FIRST_LINES_MAX = 20;
const TRANSCRIPT_LAST_LINES_MAX = 40;

const shortened = <T>(lines: readonly T[]): readonly T[] =>
  lines.length <= TRANSCRIPT_FIRST_LINES_MAX + TRANSCRIPT_LAST_LINES_MAX
    ? lines
    : [...lines.slice(0, TRANSCRIPT_FIRST_LINES_MAX), ...lines.slice(-TRANSCRIPT_LAST_LINES_MAX)];

/** Which recipient a reply to RCPT is about, by its position. */
type About = (index: number) => "submitted" | "random" | "control";

const replyEvidence = (
  reply: SmtpReply,
  stage: ReplyEvidence["stage"],
  about: ReplyEvidence["about"],
  hints: ReplyHints,
): ReplyEvidence => {
  const { reading, rule, retryAfterS } = readReply(reply, stage, hints);
  const { code, enhanced, text } = reply;
  return { stage, about, code, enhanced, text, reading, rule, retry_after_s: retryAfterS ?? null };
};

const repliesOf = ({ failure, mail, rcpts }: ProbeResult, about: About, hints: ReplyHints): ReplyEvidence[] => {
  const replies: ReplyEvidence[] = [];
  if (failure?.reply != null && failure.stage !== "mail" && failure.stage !== "rcpt") {
    const stage = failure.stage === "connect" ? "banner" : failure.stage;
    replies.push(replyEvidence(failure.reply, stage, "us", hints));
  }
  if (mail !== null) replies.push(replyEvidence(mail, "mail", "us", hints));
  for (const [index, reply] of rcpts.entries())
    if (reply !== null) replies.push(replyEvidence(reply, "rcpt", about(index), hints));
  return replies;
};

/** A session as evidence. `hints` are our own names: a reply that quotes them is not about the mailbox. */
const sessionEvidence = (
  target: ProbeTarget,
  result: ProbeResult,
  { about, hints }: { readonly about: About; readonly hints: ReplyHints },
): SessionEvidence => ({
  host: target.host,
  address: target.address,
  port: target.port,
  started_at: isoTime(result.startedAtMs),
  egress: target.egress,
  connection: result.connection,
  cooldown_since: result.cooldownSinceMs === undefined ? null : isoTime(result.cooldownSinceMs),
  tls: result.tls,
  failure: result.failure === null ? null : { stage: result.failure.stage, kind: result.failure.kind },
  replies: repliesOf(result, about, hints),
  transcript: shortened(result.transcript).map(({ atMs, from, text }) => ({ at_ms: atMs, from, text })),
});
