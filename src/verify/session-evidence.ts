import { isoTime } from "../base/clock.ts";
import type { SmtpReply } from "../net/smtp-reply.ts";
import type { ProbeResult } from "../probe/smtp-probe.ts";
import type { ProbeTarget } from "../probe/host-queue.ts";
import type { SessionEvidence, ReplyEvidence } from "./evidence.ts";
import { type ReplyHints, readReply } from "./replies.ts";

/** What one dialogue may add to the evidence; an honest one has some twenty lines. The latest tell most. */
const TRANSCRIPT_FIRST_LINES_MAX = 20;
const TRANSCRIPT_LAST_LINES_MAX = 40;

const mostTelling = <T>(lines: readonly T[]): readonly T[] =>
  lines.length <= TRANSCRIPT_FIRST_LINES_MAX + TRANSCRIPT_LAST_LINES_MAX
    ? lines
    : [...lines.slice(0, TRANSCRIPT_FIRST_LINES_MAX), ...lines.slice(-TRANSCRIPT_LAST_LINES_MAX)];

/** Whom a RCPT reply is about, by its place in the question. */
type About = (index: number) => "submitted" | "random";

const readAs = (reply: SmtpReply, stage: ReplyEvidence["stage"], about: ReplyEvidence["about"], hints: ReplyHints) => {
  const { reading, rule, retryAfterS } = readReply(reply, stage, hints);
  const { code, enhanced, text } = reply;
  return { stage, about, code, enhanced, text, reading, rule, retry_after_s: retryAfterS ?? null };
};

const repliesOf = ({ failure, mail, rcpts }: ProbeResult, about: About, hints: ReplyHints): ReplyEvidence[] => {
  const replies: ReplyEvidence[] = [];
  if (failure?.reply != null && failure.stage !== "mail" && failure.stage !== "rcpt") {
    const stage = failure.stage === "connect" || failure.stage === "rset" ? "banner" : failure.stage;
    replies.push(readAs(failure.reply, stage, "us", hints));
  }
  if (mail !== null) replies.push(readAs(mail, "mail", "us", hints));
  for (const [index, reply] of rcpts.entries())
    if (reply !== null) replies.push(readAs(reply, "rcpt", about(index), hints));
  return replies;
};

/**
 * A dialogue as evidence, each reply read with what we know of our own side, so that one that quotes us is not taken
 * for one about the mailbox.
 */
export const sessionEvidence = (
  target: ProbeTarget,
  answer: ProbeResult,
  { about, hints }: { readonly about: About; readonly hints: ReplyHints },
): SessionEvidence => ({
  host: target.host,
  address: target.address,
  port: target.port,
  started_at: isoTime(answer.startedAtMs),
  exit: target.exit,
  connection: answer.connection,
  remembered_since: answer.rememberedSinceMs === undefined ? null : isoTime(answer.rememberedSinceMs),
  tls: answer.tls,
  failure: answer.failure === null ? null : { stage: answer.failure.stage, kind: answer.failure.kind },
  replies: repliesOf(answer, about, hints),
  transcript: mostTelling(answer.transcript).map(({ atMs, from, text }) => ({ at_ms: atMs, from, text })),
});
