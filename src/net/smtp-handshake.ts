import type { Clock } from "../base/clock.ts";
import { err, ok, type Result } from "../base/errors.ts";
import type { LineProblem, LineSocket } from "./line-socket.ts";
import { NO_CAPABILITIES, readCapabilities, type SmtpCapabilities } from "./smtp-capabilities.ts";
import { greetingCommand } from "./smtp-commands.ts";
import type { TranscriptRecorder } from "./smtp-transcript.ts";
import { failureKindOf, isRefused, type SmtpFailure, type SmtpStage } from "./smtp-failure.ts";
import type { SmtpReply } from "./smtp-reply.ts";

/** One conversation: the line, its record, and how we present ourselves on it. */
export interface SmtpLineContext {
  readonly line: LineSocket;
  readonly dialogue: TranscriptRecorder;
  readonly clock: Clock;
  readonly heloName: string;
  /** The host name from the MX record, for TLS SNI. */
  readonly serverName: string;
  readonly replyTimeoutMs: number;
}

/** Refusals of EHLO that mean "I do not know this word", not "go away" (RFC 5321 §4.1.1.1, §4.2.2). */
const EHLO_UNKNOWN: ReadonlySet<number> = new Set([500, 501, 502, 503, 504]);

/** Reads one reply, whole within the reply timeout. */
export const nextReply = ({ line, clock, replyTimeoutMs }: SmtpLineContext): Promise<Result<SmtpReply, LineProblem>> =>
  line.readReply(clock.monotonicMs() + replyTimeoutMs);

/** Waits for the whole banner, 220, before a word is said: early talkers get caught by it (RFC 5321 §3.1). */
export const readBanner = async (conversation: SmtpLineContext): Promise<Result<SmtpReply, SmtpFailure>> => {
  const banner = await nextReply(conversation);
  if (!banner.ok) return err(lineFailure(conversation, "banner", banner.error));
  return banner.value.code === 220 ? banner : err(replyFailure(conversation, "banner", banner.value));
};

/** Says EHLO, or HELO to a server that knows no EHLO, and answers what the server offers. */
export const sendEhlo = async (conversation: SmtpLineContext): Promise<Result<SmtpCapabilities, SmtpFailure>> => {
  const { line, heloName } = conversation;
  line.send([greetingCommand("EHLO", heloName)]);
  const ehlo = await nextReply(conversation);
  if (!ehlo.ok) return err(lineFailure(conversation, "ehlo", ehlo.error));
  if (ehlo.value.code === 250) return ok(readCapabilities(ehlo.value));
  if (!EHLO_UNKNOWN.has(ehlo.value.code)) return err(replyFailure(conversation, "ehlo", ehlo.value));

  line.send([greetingCommand("HELO", heloName)]);
  const helo = await nextReply(conversation);
  if (!helo.ok) return err(lineFailure(conversation, "ehlo", helo.error));
  return helo.value.code === 250 ? ok(NO_CAPABILITIES) : err(replyFailure(conversation, "ehlo", helo.value));
};

/** STARTTLS, the handshake, and EHLO anew, since what was offered in clear text counts no more (RFC 3207 §4.2). */
export const secure = async (conversation: SmtpLineContext): Promise<Result<SmtpCapabilities, SmtpFailure>> => {
  const { line, clock, serverName, replyTimeoutMs } = conversation;
  const reply = await line.startTls(serverName, clock.monotonicMs() + replyTimeoutMs);
  if (!reply.ok) return err(lineFailure(conversation, "starttls", reply.error));
  if (reply.value.code !== 220) return err(replyFailure(conversation, "starttls", reply.value));
  return await sendEhlo(conversation);
};

/** The failure that a broken line means at this stage. The line has been destroyed already. */
export const lineFailure = (
  conversation: SmtpLineContext,
  stage: SmtpStage,
  problem: LineProblem | "tls_failed",
): SmtpFailure => {
  const kind = failureKindOf(problem);
  return {
    stage,
    kind,
    reply: null,
    detail: kind === "garbage" && problem !== "tls_failed" ? problem : null,
    receivedAnything: conversation.line.receivedAnything,
    transcript: conversation.dialogue.lines(),
  };
};

/** The failure that a reply means which is not what was hoped for: a refusal, or a code that makes no sense here. */
export const replyFailure = (conversation: SmtpLineContext, stage: SmtpStage, reply: SmtpReply): SmtpFailure => ({
  stage,
  kind: isRefused(reply) ? "reply" : "garbage",
  reply,
  detail: isRefused(reply) ? null : "unexpected_code",
  receivedAnything: true,
  transcript: conversation.dialogue.lines(),
});

/** Ends the line as a failure asks for: politely after a refusal, at once when the server makes no sense. */
export const closeAfter = ({ line }: SmtpLineContext, failure: SmtpFailure): void => {
  if (failure.kind === "reply") line.leave();
  else line.destroy();
};
