import { isoTime } from "../base/clock.ts";
import type { OnBehalfOf } from "../base/on-behalf-of.ts";
import type { Address } from "../mail/address.ts";
import type { SmtpReply } from "../net/smtp-reply.ts";
import type { EgressPool } from "../probe/egress.ts";
import type { ProbeTarget } from "../probe/host-queue.ts";
import type { ProbePool } from "../probe/pool.ts";
import type { ProbeResult } from "../probe/smtp-probe.ts";
import type { CachedCatchAll, CatchAllCache } from "./catch-all-cache.ts";
import type { ProbeFinding, ReplyEvidence, SessionEvidence } from "./evidence.ts";
import { findingOfFailure, findingOfReplies, noFinding } from "./findings.ts";
import { type ReplyHints, readReply } from "./replies.ts";

export interface HostProberDeps {
  readonly pool: Pick<ProbePool, "probe" | "notePace">;
  readonly egresses: EgressPool;
  readonly catchAllCache: CatchAllCache;
  readonly heloName: string;
  /** The envelope sender; empty for the null sender. */
  readonly mailFrom: string;
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
  readonly dialogues: readonly SessionEvidence[];
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

/**
 * Probes one host for the submitted recipient and for a random one. Where it blocks an egress, another one is tried at
 * once; the blocked one is then on cooldown at the provider. Whether the host accepts random recipients is cached for the
 * next addresses of the domain.
 */
export class HostProber {
  readonly #pool: HostProberDeps["pool"];
  readonly #egresses: EgressPool;
  readonly #catchAllCache: CatchAllCache;
  readonly #envelope: { readonly heloName: string; readonly mailFrom: string };

  constructor({ pool, egresses, catchAllCache, heloName, mailFrom }: HostProberDeps) {
    this.#pool = pool;
    this.#egresses = egresses;
    this.#catchAllCache = catchAllCache;
    this.#envelope = { heloName, mailFrom };
  }

  async probe(host: HostAddress, probe: HostProbe): Promise<HostResult> {
    const tried = new Set<string>();
    const blocked: string[] = [];
    const results: HostResult[] = [];
    let egress = this.#egresses.choose(host, probe.previousEgress) ?? this.#egresses.chooseAny(host);
    while (egress !== null && tried.size < EGRESSES_TRIED_MAX) {
      const target: ProbeTarget = { ...host, egress: egress.name };
      const result = await this.#probeFrom(target, probe);
      results.push(result);
      const { reading, heard } = result.finding;
      this.#notePace(target, result.finding);
      // The refusal, or the failure, is due to the egress: another one may fare better.
      const isEgressAtFault = reading === "blocked" || reading === "internal";
      if (reading === "internal") this.#egresses.markBroken(egress.name);
      if (reading === "blocked") blocked.push(egress.name);
      if (!isEgressAtFault && heard) {
        for (const name of blocked) this.#egresses.block(name, host.provider);
        this.#egresses.markWorking(egress.name, host.provider);
      }
      // After a block, a timeout from the next egress may be the same block.
      if (!isEgressAtFault && (heard || blocked.length === 0)) break;
      tried.add(egress.name);
      egress = this.#egresses.choose(host, null, tried);
    }
    const dialogues = results.flatMap((result) => result.dialogues);
    const tookMs = results.reduce((sum, result) => sum + result.tookMs, 0);
    return { ...results.reduce(better, noEgress(host.host)), dialogues, tookMs };
  }

  /** Probes from one egress: both recipients in one mail, and the random one alone where that is not conclusive. */
  async #probeFrom(target: ProbeTarget, probe: HostProbe): Promise<HostResult> {
    const { address, randomRecipient } = probe;
    const cached = this.#catchAllCache.find(address.domain, target.host);
    const recipients = cached === null ? [address.mailbox, randomRecipient] : [address.mailbox];
    const first = await this.#runSession(target, recipients, probe);
    const again = needsRandomAlone(first.session.replies, cached);
    const probed = again ? [first, await this.#runSession(target, [randomRecipient], probe, true)] : [first];
    const dialogues = probed.map(({ session }) => session);
    const tookMs = probed.reduce((sum, { result }) => sum + result.tookMs, 0);
    const replies = dialogues.flatMap((session) => session.replies);
    const settled = findingOfReplies(target.host, replies);
    if (settled === null) {
      const finding = findingOfFailure(target.host, replies, first.result.failure);
      return { dialogues, tookMs, finding, settled: false };
    }
    const finding = this.#withCatchAll(settled, address.domain, cached);
    return { dialogues, tookMs, finding, settled: true };
  }

  /** One MAIL in one session. `isRandom`: for the random recipient alone. */
  async #runSession(
    target: ProbeTarget,
    recipients: readonly string[],
    { address, onBehalfOf }: HostProbe,
    isRandom = false,
  ): Promise<ProbedSession> {
    const smtputf8 = !isRandom && address.needsSmtputf8;
    const recipient = recipients[0] ?? "";
    const { heloName, mailFrom } = this.#envelope;
    const hints = { heloName, mailFrom, recipient, mxHost: target.host, smtputf8Sent: smtputf8 };
    const stopAfter = (_index: number, reply: SmtpReply) => !WANTS_RANDOM.has(readReply(reply, "rcpt", hints).reading);
    const result = await this.#pool.probe(target, { mailFrom, recipients, smtputf8, stopAfter }, onBehalfOf);
    const about = (index: number) => (isRandom || index > 0 ? "random" : "submitted");
    return { session: sessionEvidence(target, result, { about, hints }), result };
  }

  /** Caches what the host just replied about random recipients, or completes the finding from the cache. */
  #withCatchAll(finding: ProbeFinding, domain: string, cached: CachedCatchAll | null): ProbeFinding {
    const { catch_all: state, host, reading } = finding;
    const isNews = reading === "accepted" && (state === "yes" || state === "no");
    if (isNews) this.#catchAllCache.set(domain, host ?? "", state);
    if (cached === null || state !== "unknown") return finding;
    return { ...finding, catch_all: cached.state, catch_all_age_s: Math.round(cached.ageMs / 1000) };
  }

  #notePace(target: ProbeTarget, { reading, heard }: ProbeFinding): void {
    if (reading === "rate_limited") this.#pool.notePace(target, "rate_limited");
    else if (heard) this.#pool.notePace(target, "answered");
  }
}

/** A response counts more than none, and the later of two alike more than the earlier. */
const better = (before: HostResult, next: HostResult): HostResult =>
  next.finding.heard || !before.finding.heard ? next : before;

/** No egress leads to the host: every source address is of the other IP version. */
const noEgress = (host: string): HostResult => ({
  dialogues: [],
  tookMs: 0,
  finding: { ...noFinding(host), reading: "internal", stage: "connect", rule: "no_exit" },
  settled: false,
});

/** Without pipelining: the replies to the submitted recipient after which the random one is worth a probe. */
const WANTS_RANDOM: ReadonlySet<ReplyEvidence["reading"]> = new Set(["accepted", "ambiguous", "greylisted"]);

/** Refusals of the random recipient that may be due to the other recipient in the same mail. */
const MAY_BE_DUE_TO_THE_OTHER: ReadonlySet<ReplyEvidence["reading"]> = new Set([
  ...(["rate_limited", "protocol_error", "temporary", "ambiguous", "blocked"] as const),
]);

/**
 * Whether the random recipient must be probed alone: the recipient is accepted, and the refusal of the random one may be
 * due to the other in the same mail; or the reply can only be understood by comparison, and it was skipped because of the cache.
 */
const needsRandomAlone = (replies: readonly ReplyEvidence[], cached: CachedCatchAll | null): boolean => {
  const submitted = replies.find(({ about }) => about === "submitted");
  const random = replies.find(({ about }) => about === "random");
  if (cached !== null) return submitted?.reading === "ambiguous";
  return submitted?.reading === "accepted" && random !== undefined && MAY_BE_DUE_TO_THE_OTHER.has(random.reading);
};

/** Transcript lines kept of one session; an ordinary one has some twenty. The last ones are the most useful. */
const TRANSCRIPT_FIRST_LINES_MAX = 20;
const TRANSCRIPT_LAST_LINES_MAX = 40;

const shortened = <T>(lines: readonly T[]): readonly T[] =>
  lines.length <= TRANSCRIPT_FIRST_LINES_MAX + TRANSCRIPT_LAST_LINES_MAX
    ? lines
    : [...lines.slice(0, TRANSCRIPT_FIRST_LINES_MAX), ...lines.slice(-TRANSCRIPT_LAST_LINES_MAX)];

/** Which recipient a reply to RCPT is about, by its position. */
type About = (index: number) => "submitted" | "random";

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
    const stage = failure.stage === "connect" || failure.stage === "rset" ? "banner" : failure.stage;
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
  ...{ host: target.host, address: target.address, port: target.port },
  started_at: isoTime(result.startedAtMs),
  exit: target.egress,
  connection: result.connection,
  remembered_since: result.cooldownSinceMs === undefined ? null : isoTime(result.cooldownSinceMs),
  tls: result.tls,
  failure: result.failure === null ? null : { stage: result.failure.stage, kind: result.failure.kind },
  replies: repliesOf(result, about, hints),
  transcript: shortened(result.transcript).map(({ atMs, from, text }) => ({ at_ms: atMs, from, text })),
});
