import type { Clock } from "../base/clock.ts";
import { err, ok, type Result } from "../base/errors.ts";
import { failureKindOf, isRefused, type SmtpFailure, type SmtpStage } from "./smtp-failure.ts";
import type { LineProblem, LineSocket, TranscriptRecorder } from "./line-socket.ts";
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

/** What a server offers in its reply to EHLO (RFC 5321 §4.1.1.1). After HELO: nothing. */
export interface SmtpCapabilities {
  /** RFC 2920. */
  readonly pipelining: boolean;
  /** RFC 3207. */
  readonly starttls: boolean;
  /** RFC 6531. */
  readonly smtputf8: boolean;
  /** RFC 6152. */
  readonly eightBitMime: boolean;
  /** RFC 2034. */
  readonly enhancedStatusCodes: boolean;
  /** RFC 1870: octets, `null` when not offered or without a limit. */
  readonly sizeBytesMax: number | null;
}

/** The capabilities of a server without EHLO. */
export const NO_CAPABILITIES: SmtpCapabilities = {
  pipelining: false,
  starttls: false,
  smtputf8: false,
  eightBitMime: false,
  enhancedStatusCodes: false,
  sizeBytesMax: null,
};

/** By their keywords. */
const CAPABILITIES: ReadonlyMap<string, Exclude<keyof SmtpCapabilities, "sizeBytesMax">> = new Map([
  ["PIPELINING", "pipelining"],
  ["STARTTLS", "starttls"],
  ["SMTPUTF8", "smtputf8"],
  ["8BITMIME", "eightBitMime"],
  ["ENHANCEDSTATUSCODES", "enhancedStatusCodes"],
] as const);

/**
 * Reads the keywords of a 250 reply to EHLO: one a line, after the first, in any case, parameters behind a space or
 * (as old servers write it) "=". Unknown keywords are ignored.
 */
export const readCapabilities = (reply: SmtpReply): SmtpCapabilities => {
  const found = { ...NO_CAPABILITIES };
  for (let i = 1; i < reply.lines.length; i++) {
    const [name = "", parameter] = (reply.lines[i] ?? "").trim().split(/[ =]+/, 2);
    const keyword = name.toUpperCase();
    const capability = CAPABILITIES.get(keyword);
    if (capability !== undefined) found[capability] = true;
    else if (keyword === "SIZE")
      found.sizeBytesMax = /^[1-9]\d{0,14}$/.test(parameter ?? "") ? Number(parameter) : null;
  }
  return found;
};

/** The envelope of one probe. `mailFrom` "" is the null sender. Mailboxes are parsed already: domain as A-label. */
export interface SmtpEnvelope {
  readonly mailFrom: string;
  readonly recipients: readonly string[];
  readonly smtputf8: boolean;
}

/** More recipients than this in one probe are a bug of the caller: RFC 5321 §4.5.3.1.8 promises 100. */
export const RECIPIENTS_MAX = 100;
/** RFC 5321 §4.5.3.1.3 allows a path of 256 octets; contract and databases know addresses of up to 320. */
const MAILBOX_CHARS_MAX = 320;

/**
 * What may stand between the angle brackets of MAIL and RCPT: no control, no space and no bracket outside a quoted
 * string (RFC 5321 §4.1.2, RFC 6531 §3.3), so that nothing can end the path or the line.
 */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what must not pass
const SAFE_PATH = /^(?:[^\x00-\x20"<>\\\x7f-\x9f]|"(?:[^\x00-\x1f"\\\x7f-\x9f]|\\[\x20-\x7e])*")+$/;
const ASCII = /^[\x20-\x7e]*$/;
const SAFE_HELO = /^[\x21-\x7e]{1,255}$/;

/** `EHLO name` or `HELO name` (RFC 5321 §4.1.1.1). Throws when the name could break the line: a bug. */
export const greetingCommand = (verb: "EHLO" | "HELO", heloName: string): string => {
  if (!SAFE_HELO.test(heloName)) throw new Error(`not a HELO name: ${JSON.stringify(heloName)}`);
  return `${verb} ${heloName}`;
};

/**
 * The MAIL command and one RCPT for each recipient, without line ends (RFC 5321 §4.1.1.2 f.).
 *
 * With `smtputf8` MAIL carries SMTPUTF8, and BODY=8BITMIME where `eightBitMime` is offered (RFC 6531 §3.4).
 * Throws on addresses that could inject a command, on non-ASCII without `smtputf8`, on none or too many recipients:
 * addresses were parsed before, so each of these is a bug.
 */
export const envelopeCommands = (envelope: SmtpEnvelope, eightBitMime: boolean): { mail: string; rcpts: string[] } => {
  const { mailFrom, recipients, smtputf8 } = envelope;
  if (recipients.length === 0 || recipients.length > RECIPIENTS_MAX) {
    throw new Error(`a probe has 1 to ${RECIPIENTS_MAX} recipients, not ${recipients.length}`);
  }
  if (mailFrom !== "") assertSafe(mailFrom, smtputf8);
  const rcpts = recipients.map((recipient) => {
    assertSafe(recipient, smtputf8);
    return `RCPT TO:<${recipient}>`;
  });
  const parameters = smtputf8 ? (eightBitMime ? " BODY=8BITMIME SMTPUTF8" : " SMTPUTF8") : "";
  return { mail: `MAIL FROM:<${mailFrom}>${parameters}`, rcpts };
};

const assertSafe = (mailbox: string, smtputf8: boolean) => {
  if (mailbox.length <= MAILBOX_CHARS_MAX && SAFE_PATH.test(mailbox) && (smtputf8 || ASCII.test(mailbox))) return;
  throw new Error(`not a mailbox for the wire: ${JSON.stringify(mailbox.slice(0, MAILBOX_CHARS_MAX))}`);
};
