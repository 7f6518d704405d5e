import type { OnBehalfOf } from "../base/on-behalf-of.ts";
import type { Address } from "../mail/address.ts";
import type { SmtpReply } from "../net/smtp-reply.ts";
import type { ProbeResult } from "../probe/smtp-probe.ts";
import type { Egress, EgressPool } from "../probe/egress.ts";
import type { ProbeTarget } from "../probe/host-queue.ts";
import type { ProbePool } from "../probe/pool.ts";
import type { CatchAllCache, CachedCatchAll } from "./catch-all-cache.ts";
import { sessionEvidence } from "./session-evidence.ts";
import type { SessionEvidence, ProbeFinding, ReplyEvidence } from "./evidence.ts";
import { findingOfFailure, findingOfReplies, noFinding } from "./findings.ts";
import { readReply } from "./replies.ts";

export interface HostProberDeps {
  readonly pool: ProbePool;
  readonly egresses: EgressPool;
  readonly catchAllCache: CatchAllCache;
  readonly heloName: string;
  /** The envelope sender; empty for the null sender. */
  readonly mailFrom: string;
}

/** What is asked of one host. */
export interface HostProbe {
  readonly address: Address;
  /** The recipient that nobody has, whole. */
  readonly randomRecipient: string;
  /** The exit of the attempt before: greylisting knows us by it. */
  readonly previousEgress: string | null;
  readonly onBehalfOf: OnBehalfOf;
}

/** Where a host is, before it is known by which exit it is asked. */
export type HostAddress = Omit<ProbeTarget, "exit">;

export interface HostResult {
  readonly dialogues: readonly SessionEvidence[];
  readonly tookMs: number;
  readonly finding: ProbeFinding;
  /** No other host needs to be asked. */
  readonly settled: boolean;
}

interface Asked {
  readonly dialogue: SessionEvidence;
  readonly answer: ProbeResult;
}

/** Egresses by which one host is asked in one attempt, when it blocks the first. */
const EGRESSES_TRIED_MAX = 3;

/**
 * Asks one host about the submitted recipient and about a random one. Where an exit is blocked and there is another,
 * that one asks at once; the blocked one then rests at the provider. What the host says of random recipients is
 * cached for the next addresses of the domain.
 */
export const createHostProber = ({ pool, egresses, catchAllCache, heloName, mailFrom }: HostProberDeps) => {
  const ask = async (
    target: ProbeTarget,
    recipients: readonly string[],
    question: HostProbe,
    random = false,
  ): Promise<Asked> => {
    const smtputf8 = !random && question.address.needsSmtputf8;
    const recipient = recipients[0] ?? "";
    const hints = { heloName, mailFrom, recipient, mxHost: target.host, smtputf8Sent: smtputf8 };
    const stopAfter = (_index: number, reply: SmtpReply) => !WANTS_RANDOM.has(readReply(reply, "rcpt", hints).reading);
    const answer = await pool.ask(target, { mailFrom, recipients, smtputf8, stopAfter }, question.onBehalfOf);
    const about = (index: number) => (random || index > 0 ? "random" : "submitted");
    return { dialogue: sessionEvidence(target, answer, { about, hints }), answer };
  };

  /** The random recipient alone: some servers take only one recipient a mail from us. */
  const probeRandomAlone = (target: ProbeTarget, question: HostProbe): Promise<Asked> =>
    ask(target, [question.randomRecipient], question, true);

  const probeThrough = async (target: ProbeTarget, question: HostProbe): Promise<HostResult> => {
    const { address, randomRecipient } = question;
    const cached = catchAllCache.find(address.domain, target.host);
    const recipients = cached === null ? [address.mailbox, randomRecipient] : [address.mailbox];
    const first = await ask(target, recipients, question);
    const again = needsRandomAlone(first.dialogue.replies, cached);
    const asked = again ? [first, await probeRandomAlone(target, question)] : [first];
    const dialogues = asked.map(({ dialogue }) => dialogue);
    const tookMs = asked.reduce((sum, { answer }) => sum + answer.tookMs, 0);
    const replies = dialogues.flatMap((held) => held.replies);
    const settled = findingOfReplies(target.host, replies);
    if (settled !== null) {
      const certain = again || dialogues.some(saysNoToRandom);
      return { dialogues, tookMs, finding: recall(settled, { address, cached, certain }), settled: true };
    }
    const finding = findingOfFailure(target.host, replies, first.answer.failure);
    return { dialogues, tookMs, finding, settled: false };
  };

  /** Fills in what is cached of the domain, or remembers what was just learnt. */
  const recall = (finding: ProbeFinding, { address: { domain }, cached, certain }: Recalled): ProbeFinding => {
    const { catch_all: state, host, reading } = finding;
    const isNews = reading === "accepted" && (state === "yes" || (state === "no" && certain));
    if (isNews) catchAllCache.keep(domain, host ?? "", state);
    if (cached === null || reading !== "accepted" || state !== "unknown") return finding;
    return { ...finding, catch_all: cached.state, catch_all_age_s: Math.round(cached.ageMs / 1000) };
  };

  const note = (target: ProbeTarget, { reading, heard }: ProbeFinding): void => {
    if (reading === "rate_limited") pool.notePace(target, "rate_limited");
    else if (heard) pool.notePace(target, "answered");
  };

  return async function probeHost(where: HostAddress, question: HostProbe): Promise<HostResult> {
    const tried = new Set<string>();
    const blocked: string[] = [];
    const all: HostResult[] = [];
    let exit: Egress | null = egresses.choose(where, question.previousEgress) ?? egresses.chooseAny(where);
    while (exit !== null && tried.size < EGRESSES_TRIED_MAX) {
      const target: ProbeTarget = { ...where, exit: exit.name };
      const heard = await probeThrough(target, question);
      all.push(heard);
      note(target, heard.finding);
      const trouble = egressTrouble(heard.finding);
      if (trouble === "broken") egresses.markBroken(exit.name);
      if (trouble === "blocked") blocked.push(exit.name);
      if (trouble === null && heard.finding.heard) {
        for (const other of blocked) egresses.rest(other, where.provider);
        egresses.markWorking(exit.name, where.provider);
      }
      // Behind a block, silence may be the same block in other clothes.
      if (trouble === null && (heard.finding.heard || blocked.length === 0)) break;
      tried.add(exit.name);
      exit = egresses.choose(where, null, tried);
    }
    const best = all.reduce(better, notAsked(where.host));
    const dialogues = all.flatMap((heard) => heard.dialogues);
    return { ...best, dialogues, tookMs: all.reduce((sum, { tookMs }) => sum + tookMs, 0) };
  };
};

export type HostProber = ReturnType<typeof createHostProber>;

/** The refusal, or the failure, is due to the way we came: another exit may fare better. */
const egressTrouble = ({ reading }: ProbeFinding): "blocked" | "broken" | null => {
  if (reading === "blocked") return "blocked";
  return reading === "internal" ? "broken" : null;
};

/** What one exit heard counts more than that another heard nothing, and that more than one by which nobody was asked. */
const better = (before: HostResult, next: HostResult): HostResult => {
  const rank = ({ finding: { heard, reading } }: HostResult): number => (heard ? 2 : reading === "internal" ? 0 : 1);
  return rank(next) >= rank(before) ? next : before;
};

/** No way out leads to the host: every source address is of the other IP version. */
const notAsked = (host: string): HostResult => ({
  dialogues: [],
  tookMs: 0,
  finding: { ...noFinding(host), reading: "internal", stage: "connect", rule: "no_exit" },
  settled: false,
});

interface Recalled {
  readonly address: Address;
  readonly cached: CachedCatchAll | null;
  /** The random recipient was refused for its own sake: asked alone, or as unknown. */
  readonly certain: boolean;
}

/** Without pipelining: after which replies to the submitted recipient the random one is still worth a question. */
const WANTS_RANDOM: ReadonlySet<ReplyEvidence["reading"]> = new Set(["accepted", "ambiguous", "greylisted"]);

/** What a refusal of the random recipient may owe to the company it came in, rather than to its own name. */
const COMPANY: ReadonlySet<ReplyEvidence["reading"]> = new Set([
  "rate_limited",
  "protocol_error",
  "temporary",
  "ambiguous",
  "blocked",
]);

const saysNoToRandom = ({ replies }: SessionEvidence): boolean =>
  replies.some(
    ({ about, reading }) => about === "random" && (reading === "mailbox_not_found" || reading === "mailbox_disabled"),
  );

/**
 * Whether the random recipient must be asked for by itself: the recipient is accepted, and the refusal of the random
 * one may be due to the company it came in; or the reply can only be understood by comparison, and memory kept us
 * from asking.
 */
const needsRandomAlone = (replies: readonly ReplyEvidence[], cached: CachedCatchAll | null): boolean => {
  const submitted = replies.find(({ about }) => about === "submitted");
  const random = replies.find(({ about }) => about === "random");
  if (cached !== null) return submitted?.reading === "ambiguous";
  return submitted?.reading === "accepted" && random !== undefined && COMPANY.has(random.reading);
};
