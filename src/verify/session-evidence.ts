import { isoTime } from "../foundation/base/clock.ts";
import type { SmtpReply } from "../foundation/net/smtp-reply.ts";
import type { ProbeTarget } from "./smtp/host-queue.ts";
import type { ProbeResult } from "./smtp/smtp-probe.ts";
import type { ReplyEvidence, SessionEvidence } from "./evidence.ts";
import { type ReplyHints, readReply } from "./replies.ts";

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
export const sessionEvidence = (
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
