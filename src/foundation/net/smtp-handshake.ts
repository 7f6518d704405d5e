import type { Clock } from "../base/clock.ts";
import { err, ok, type Result } from "../base/errors.ts";
import type { LineProblem, LineSocket } from "./line-socket.ts";
import { NO_CAPABILITIES, readCapabilities, type SmtpCapabilities } from "./smtp-capabilities.ts";
import { greetingCommand } from "./smtp-commands.ts";
import type { TranscriptRecorder } from "./smtp-transcript.ts";
import { failureKindOf, isRefused, type SmtpFailure, type SmtpStage } from "./smtp-failure.ts";
import type { SmtpReply } from "./smtp-reply.ts";

/** One connection: its lines, its transcript, and the name that is used on it. */
export interface SmtpLineContext {
  readonly line: LineSocket;
  readonly transcript: TranscriptRecorder;
  readonly clock: Clock;
  readonly heloName: string;
  /** The host name from the MX record, for TLS SNI. */
  readonly serverName: string;
  readonly replyTimeoutMs: number;
}

/** Replies to EHLO that mean "not implemented", not a refusal of this client (RFC 5321 §4.1.1.1, §4.2.2). */
const EHLO_UNKNOWN: ReadonlySet<number> = new Set([500, 501, 502, 503, 504]);

/** Reads one reply, whole within the reply timeout. */
export const nextReply = ({ line, clock, replyTimeoutMs }: SmtpLineContext): Promise<Result<SmtpReply, LineProblem>> =>
  line.readReply(clock.monotonicMs() + replyTimeoutMs);

/** The banner, if it is 220. Nothing is sent before it is whole: servers refuse clients that send too early (RFC 5321 §3.1). */
export const bannerOf = (
  context: SmtpLineContext,
  banner: Result<SmtpReply, LineProblem>,
): Result<SmtpReply, SmtpFailure> => {
  if (!banner.ok) return err(lineFailure(context, "banner", banner.error));
  return banner.value.code === 220 ? banner : err(replyFailure(context, "banner", banner.value));
};

/** Sends EHLO, or HELO to a server without EHLO; returns what the server offers. */
export const sendEhlo = async (context: SmtpLineContext): Promise<Result<SmtpCapabilities, SmtpFailure>> => {
  const { line, heloName } = context;
  line.send([greetingCommand("EHLO", heloName)]);
  const ehlo = await nextReply(context);
  if (!ehlo.ok) return err(lineFailure(context, "ehlo", ehlo.error));
  if (ehlo.value.code === 250) return ok(readCapabilities(ehlo.value));
  if (!EHLO_UNKNOWN.has(ehlo.value.code)) return err(replyFailure(context, "ehlo", ehlo.value));

  line.send([greetingCommand("HELO", heloName)]);
  const helo = await nextReply(context);
  if (!helo.ok) return err(lineFailure(context, "ehlo", helo.error));
  return helo.value.code === 250 ? ok(NO_CAPABILITIES) : err(replyFailure(context, "ehlo", helo.value));
};

/** STARTTLS, the handshake, and EHLO again, since what was offered in clear text must be discarded (RFC 3207 §4.2). */
export const secure = async (context: SmtpLineContext): Promise<Result<SmtpCapabilities, SmtpFailure>> => {
  const { line, clock, serverName, replyTimeoutMs } = context;
  const reply = await line.startTls(serverName, clock.monotonicMs() + replyTimeoutMs);
  if (!reply.ok) return err(lineFailure(context, "starttls", reply.error));
  if (reply.value.code !== 220) return err(replyFailure(context, "starttls", reply.value));
  return await sendEhlo(context);
};

/** The failure for a broken connection at this stage. It has been destroyed already. */
export const lineFailure = (
  context: SmtpLineContext,
  stage: SmtpStage,
  problem: LineProblem | "tls_failed",
): SmtpFailure => {
  const kind = failureKindOf(problem);
  return {
    stage,
    kind,
    reply: null,
    detail: kind === "garbage" && problem !== "tls_failed" ? problem : null,
    receivedAnything: context.line.receivedAnything,
    transcript: context.transcript.lines(),
  };
};

/** The failure for an unexpected reply: a refusal, or a code that is invalid here. */
export const replyFailure = (context: SmtpLineContext, stage: SmtpStage, reply: SmtpReply): SmtpFailure => ({
  stage,
  kind: isRefused(reply) ? "reply" : "garbage",
  reply,
  detail: isRefused(reply) ? null : "unexpected_code",
  receivedAnything: true,
  transcript: context.transcript.lines(),
});

/** Closes the connection after a failure: with QUIT after a refusal, at once when the server does not speak SMTP. */
export const closeAfter = ({ line }: SmtpLineContext, failure: SmtpFailure): void => {
  if (failure.kind === "reply") line.quit();
  else line.destroy();
};
