import { type Clock, isoTime } from "../base/clock.ts";
import type { Address } from "../mail/address.ts";
import type { SmtpReply } from "../net/smtp-reply.ts";
import type { ProbeAnswer } from "../probe/dialogue.ts";
import type { ProbePool, ProbeTarget } from "../probe/pool.ts";
import type { Attempt, Dialogue, DomainEvidence, Finding, MailHost, ReplyEvidence } from "./evidence.ts";
import { findingOfFailure, findingOfReplies, weigh } from "./findings.ts";
import { type ReplyHints, readReply } from "./replies.ts";

export interface MailboxDeps {
  readonly pool: ProbePool;
  readonly clock: Clock;
  readonly smtpPort: number;
  readonly heloName: string;
  /** The envelope sender; empty for the null sender. */
  readonly mailFrom: string;
  /** No further host is tried when the dialogues of an attempt have taken this long; waiting for a turn is not counted. */
  readonly attemptTimeMs: number;
}

export interface MailboxQuestion {
  readonly address: Address;
  readonly domain: DomainEvidence;
  /** The recipient that nobody has, whole. */
  readonly randomRecipient: string;
  readonly number: number;
  /** The address that was asked last: of equally preferred hosts it comes first again, for greylisting is its own. */
  readonly askedBefore: string | null;
}

/** Addresses tried of one host, and of all hosts together, in one attempt. */
const ADDRESSES_PER_HOST_MAX = 4;
const ADDRESSES_MAX = 40;
/** What one dialogue may add to the evidence; an honest one has some twenty lines. The latest tell most. */
const TRANSCRIPT_FIRST_LINES_MAX = 20;
const TRANSCRIPT_LAST_LINES_MAX = 40;

const mostTelling = <T>(lines: readonly T[]): readonly T[] =>
  lines.length <= TRANSCRIPT_FIRST_LINES_MAX + TRANSCRIPT_LAST_LINES_MAX
    ? lines
    : [...lines.slice(0, TRANSCRIPT_FIRST_LINES_MAX), ...lines.slice(-TRANSCRIPT_LAST_LINES_MAX)];

const isAbout = (index: number): "submitted" | "random" => (index === 0 ? "submitted" : "random");

/** Reads replies with what we know of our own side, so that a reply that quotes us is not taken for one about the mailbox. */
type Read = (reply: SmtpReply, stage: ReplyEvidence["stage"], about: ReplyEvidence["about"]) => ReplyEvidence;

const createRead =
  (hints: ReplyHints): Read =>
  (reply, stage, about) => {
    const { reading, rule, retryAfterS } = readReply(reply, stage, hints);
    const { code, enhanced, text } = reply;
    return { stage, about, code, enhanced, text, reading, rule, retry_after_s: retryAfterS ?? null };
  };

const repliesOf = (answer: ProbeAnswer, read: Read): ReplyEvidence[] => {
  const replies: ReplyEvidence[] = [];
  const { failure, mail, rcpts } = answer;
  if (failure?.reply != null && failure.stage !== "mail" && failure.stage !== "rcpt") {
    const stage = failure.stage === "connect" || failure.stage === "rset" ? "banner" : failure.stage;
    replies.push(read(failure.reply, stage, "us"));
  }
  if (mail !== null) replies.push(read(mail, "mail", "us"));
  for (const [index, reply] of rcpts.entries()) if (reply !== null) replies.push(read(reply, "rcpt", isAbout(index)));
  return replies;
};

const dialogueOf = (target: ProbeTarget, answer: ProbeAnswer, read: Read): Dialogue => ({
  host: target.host,
  address: target.address,
  port: target.port,
  started_at: isoTime(answer.startedAtMs),
  connection: answer.connection,
  tls: answer.tls,
  failure: answer.failure === null ? null : { stage: answer.failure.stage, kind: answer.failure.kind },
  replies: repliesOf(answer, read),
  transcript: mostTelling(answer.transcript).map(({ atMs, from, text }) => ({ at_ms: atMs, from, text })),
});

/** Every address that may be asked, in the order of the hosts; IPv4 before IPv6, because more of us have it. */
const targetsOf = (domain: DomainEvidence, port: number, askedBefore: string | null): ProbeTarget[] => {
  const rank = (address: string): number => (address === askedBefore ? 0 : address.includes(":") ? 2 : 1);
  const has = ({ addresses }: MailHost): number => (addresses.some(({ address }) => address === askedBefore) ? 0 : 1);
  return domain.hosts
    .toSorted((a, b) => a.preference - b.preference || has(a) - has(b))
    .flatMap(({ host, addresses }) =>
      addresses
        .filter(({ allowed }) => allowed)
        .toSorted((a, b) => rank(a.address) - rank(b.address))
        .slice(0, ADDRESSES_PER_HOST_MAX)
        .map(({ address }) => ({ host, address, port })),
    )
    .slice(0, ADDRESSES_MAX);
};

/**
 * Asks the mail hosts of a domain about one recipient, and about one that nobody has. The first host that answers to
 * MAIL with a refusal, or to RCPT with anything, settles the attempt: a later host must not overrule it. A host that
 * cannot be reached, is silent, or sends us away before that, leaves the word to the next.
 */
export const createMailboxInquiry = ({ pool, clock, smtpPort, heloName, mailFrom, attemptTimeMs }: MailboxDeps) => {
  const ask = (target: ProbeTarget, recipients: readonly string[], smtputf8: boolean): Promise<ProbeAnswer> =>
    pool.ask(target, { mailFrom, recipients, smtputf8, stopAfter });

  const readerFor = (target: ProbeTarget, recipient: string, smtputf8Sent: boolean): Read =>
    createRead({ heloName, mailFrom, recipient, mxHost: target.host, smtputf8Sent });

  /** The random recipient once more, alone: some servers take only one recipient a mail from us. */
  const askRandomAlone = async (target: ProbeTarget, { randomRecipient }: MailboxQuestion): Promise<Asked> => {
    const answer = await ask(target, [randomRecipient], false);
    const alone = dialogueOf(target, answer, readerFor(target, randomRecipient, false));
    const replies = alone.replies.map((reply) =>
      reply.stage === "rcpt" ? { ...reply, about: "random" as const } : reply,
    );
    return { dialogue: { ...alone, replies }, answer };
  };

  const askBoth = async (target: ProbeTarget, { address, randomRecipient }: MailboxQuestion): Promise<Asked> => {
    const answer = await ask(target, [address.mailbox, randomRecipient], address.needsSmtputf8);
    const dialogue = dialogueOf(target, answer, readerFor(target, address.mailbox, address.needsSmtputf8));
    return { dialogue, answer };
  };

  const askHost = async (target: ProbeTarget, question: MailboxQuestion): Promise<HostHeard> => {
    const both = await askBoth(target, question);
    const asked = isOneSided(both.dialogue.replies) ? [both, await askRandomAlone(target, question)] : [both];
    const dialogues = asked.map(({ dialogue }) => dialogue);
    const tookMs = asked.reduce((sum, { answer }) => sum + answer.tookMs, 0);
    const replies = dialogues.flatMap((held) => held.replies);
    const settled = findingOfReplies(target.host, replies);
    if (settled !== null) return { dialogues, tookMs, finding: settled, settled: true };
    const finding = findingOfFailure(target.host, replies, both.answer.failure);
    return { dialogues, tookMs, finding, settled: finding.reading === "smtputf8_unsupported" };
  };

  const askHosts = async (question: MailboxQuestion): Promise<Pick<Attempt, "dialogues" | "finding">> => {
    const dialogues: Dialogue[] = [];
    const open: Finding[] = [];
    let spentMs = 0;
    for (const target of targetsOf(question.domain, smtpPort, question.askedBefore)) {
      const heard = await askHost(target, question);
      dialogues.push(...heard.dialogues);
      if (heard.settled) return { dialogues, finding: heard.finding };
      open.push(heard.finding);
      spentMs += heard.tookMs;
      if (spentMs > attemptTimeMs) break;
    }
    return { dialogues, finding: weigh(open) };
  };

  return async function inquire(question: MailboxQuestion): Promise<Attempt> {
    const startedAtMs = clock.nowMs();
    const heard = await askHosts(question);
    return {
      number: question.number,
      started_at: isoTime(startedAtMs),
      finished_at: isoTime(clock.nowMs()),
      ...heard,
    };
  };
};

export type MailboxInquiry = ReturnType<typeof createMailboxInquiry>;

interface Asked {
  readonly dialogue: Dialogue;
  readonly answer: ProbeAnswer;
}

interface HostHeard {
  readonly dialogues: Dialogue[];
  readonly tookMs: number;
  readonly finding: Finding;
  /** No other host needs to be asked. */
  readonly settled: boolean;
}

const WANTS_RANDOM: ReadonlySet<ReplyEvidence["reading"]> = new Set(["accepted", "ambiguous", "greylisted"]);

/** Without pipelining: whether the random recipient is still worth a question after the reply to the submitted one. */
const stopAfter = (_index: number, reply: SmtpReply): boolean => !WANTS_RANDOM.has(readReply(reply, "rcpt").reading);

const COMPANY: ReadonlySet<ReplyEvidence["reading"]> = new Set(["rate_limited", "protocol_error", "temporary"]);

/** The recipient is accepted, and the refusal of the random one may be due to the company it came in. */
const isOneSided = (replies: readonly ReplyEvidence[]): boolean => {
  const submitted = replies.find(({ about }) => about === "submitted");
  const random = replies.find(({ about }) => about === "random");
  return submitted?.reading === "accepted" && random !== undefined && COMPANY.has(random.reading);
};
