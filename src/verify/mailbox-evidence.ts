import { type Clock, isoTime } from "../base/clock.ts";
import type { Address } from "../mail/address.ts";
import type { SmtpReply } from "../net/smtp-reply.ts";
import type { ProbeAnswer, ProbePool, ProbeTarget } from "../probe/pool.ts";
import type { Attempt, Dialogue, DomainEvidence, Finding, ReplyEvidence } from "./evidence.ts";
import { findingOfFailure, findingOfReplies, weigh } from "./findings.ts";
import { type ReplyHints, readReply } from "./replies.ts";

export interface MailboxDeps {
  readonly pool: ProbePool;
  readonly clock: Clock;
  readonly smtpPort: number;
  readonly heloName: string;
  /** The envelope sender; empty for the null sender. */
  readonly mailFrom: string;
  /** No further host is tried when an attempt has lasted this long. */
  readonly attemptTimeMs: number;
}

export interface MailboxQuestion {
  readonly address: Address;
  readonly domain: DomainEvidence;
  /** The recipient that nobody has, whole. */
  readonly randomRecipient: string;
  readonly number: number;
}

/** Addresses tried of one host, and of all hosts together, in one attempt. */
const ADDRESSES_PER_HOST_MAX = 4;
const ADDRESSES_MAX = 40;
/** What one dialogue may add to the evidence; an honest one has some twenty lines. */
const TRANSCRIPT_LINES_MAX = 60;

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
  transcript: answer.transcript
    .slice(0, TRANSCRIPT_LINES_MAX)
    .map(({ atMs, from, text }) => ({ at_ms: atMs, from, text })),
});

/** Every address that may be asked, in the order of the hosts; IPv4 before IPv6, because more of us have it. */
const targetsOf = (domain: DomainEvidence, port: number): ProbeTarget[] =>
  domain.hosts
    .flatMap(({ host, addresses }) =>
      addresses
        .filter(({ allowed }) => allowed)
        .toSorted((a, b) => Number(a.address.includes(":")) - Number(b.address.includes(":")))
        .slice(0, ADDRESSES_PER_HOST_MAX)
        .map(({ address }) => ({ host, address, port })),
    )
    .slice(0, ADDRESSES_MAX);

/**
 * Asks the mail hosts of a domain about one recipient, and about one that nobody has. The first host that replies to
 * the recipient settles the attempt, whatever it says: a later host must not overrule it. A host that cannot be
 * reached, is silent, or refuses us before the recipient was named, leaves the word to the next.
 */
export const createMailboxInquiry = ({ pool, clock, smtpPort, heloName, mailFrom, attemptTimeMs }: MailboxDeps) => {
  const ask = (target: ProbeTarget, recipients: readonly string[], smtputf8: boolean): Promise<ProbeAnswer> =>
    pool.ask(target, { mailFrom, recipients, smtputf8, stopAfter: (_, reply) => !wantsRandom(reply) });

  const readerFor = (target: ProbeTarget, recipient: string, smtputf8Sent: boolean): Read =>
    createRead({ heloName, mailFrom, recipient, mxHost: target.host, smtputf8Sent });

  /** The random recipient once more, alone: some servers take only one recipient a mail from us. */
  const askRandomAlone = async (target: ProbeTarget, { randomRecipient }: MailboxQuestion): Promise<Dialogue> => {
    const answer = await ask(target, [randomRecipient], false);
    const alone = dialogueOf(target, answer, readerFor(target, randomRecipient, false));
    return {
      ...alone,
      replies: alone.replies.map((reply) => (reply.stage === "rcpt" ? { ...reply, about: "random" } : reply)),
    };
  };

  const askHost = async (target: ProbeTarget, question: MailboxQuestion): Promise<Asked> => {
    const { address, randomRecipient } = question;
    const answer = await ask(target, [address.mailbox, randomRecipient], address.needsSmtputf8);
    const dialogue = dialogueOf(target, answer, readerFor(target, address.mailbox, address.needsSmtputf8));
    const dialogues = isOneSided(dialogue.replies) ? [dialogue, await askRandomAlone(target, question)] : [dialogue];
    const replies = dialogues.flatMap((held) => held.replies);
    const settled = findingOfReplies(target.host, replies);
    if (settled !== null) return { dialogues, finding: settled, settled: true };
    return { dialogues, finding: findingOfFailure(target.host, replies, answer.failure), settled: false };
  };

  return async function inquire(question: MailboxQuestion): Promise<Attempt> {
    const startedAtMs = clock.nowMs();
    const startedMs = clock.monotonicMs();
    const dialogues: Dialogue[] = [];
    const findings: Finding[] = [];
    for (const target of targetsOf(question.domain, smtpPort)) {
      if (findings.length > 0 && clock.monotonicMs() - startedMs > attemptTimeMs) break;
      const asked = await askHost(target, question);
      dialogues.push(...asked.dialogues);
      findings.push(asked.finding);
      if (asked.settled) break;
    }
    return {
      number: question.number,
      started_at: isoTime(startedAtMs),
      finished_at: isoTime(clock.nowMs()),
      dialogues,
      finding: weigh(findings),
    };
  };
};

export type MailboxInquiry = ReturnType<typeof createMailboxInquiry>;

interface Asked {
  readonly dialogues: Dialogue[];
  readonly finding: Finding;
  readonly settled: boolean;
}

/** Without pipelining: whether the random recipient is still worth a question after the reply to the submitted one. */
const wantsRandom = (reply: SmtpReply): boolean => {
  const { reading } = readReply(reply, "rcpt");
  return reading === "accepted" || reading === "ambiguous" || reading === "greylisted";
};

const COMPANY: ReadonlySet<ReplyEvidence["reading"]> = new Set(["rate_limited", "protocol_error", "temporary"]);

/** The recipient is accepted, and the refusal of the random one may be due to the company it came in. */
const isOneSided = (replies: readonly ReplyEvidence[]): boolean => {
  const submitted = replies.find(({ about }) => about === "submitted");
  const random = replies.find(({ about }) => about === "random");
  return submitted?.reading === "accepted" && random !== undefined && COMPANY.has(random.reading);
};
