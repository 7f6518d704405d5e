import type { MailProblem } from "./smtp-receiver-buffer.ts";
import type { ReceiverDeadline } from "./smtp-receiver-deadlines.ts";

/** A reply: its code, and its text with the enhanced status code (RFC 3463) in front. Lines of the text are lines of the reply. */
export type ReceiverReply = readonly [code: number, text: string];

/** The replies that say the same wherever they are sent. */
export const REPLIES = {
  ok: [250, "2.0.0 Ok"],
  closing: [421, "4.3.2 Service shutting down, closing connection"],
  later: [451, "4.3.0 Temporary local problem, try again later"],
  noMemory: [452, "4.3.1 Too many messages in progress, try again later"],
  noStorage: [452, "4.3.1 Insufficient system storage, try again later"],
  badParameter: [501, "5.5.4 Bad parameter syntax or value"],
  unrecognized: [500, "5.5.2 Command not recognized"],
  notImplemented: [502, "5.5.1 Command not implemented"],
  needHello: [503, "5.5.1 Send HELO/EHLO first"],
  refused: [554, "5.7.1 Message refused"],
} as const satisfies Readonly<Record<string, ReceiverReply>>;

/** The replies to commands that always get the same one. */
export const FIXED_REPLIES: ReadonlyMap<string, readonly ReceiverReply[]> = new Map<string, ReceiverReply[]>([
  ["NOOP", [REPLIES.ok]],
  ["VRFY", [[252, "2.0.0 Cannot VRFY user; try RCPT"]]],
  ["HELP", [[214, "2.0.0 This server receives DMARC reports (RFC 5321, RFC 9990)"]]],
  ["QUIT", [[221, "2.0.0 Bye"]]],
  ["EXPN", [REPLIES.notImplemented]],
  ["ETRN", [REPLIES.notImplemented]],
  ["TURN", [REPLIES.notImplemented]],
  // Content follows BDAT (RFC 3030 §2); it must not be read as commands.
  ["BDAT", [REPLIES.notImplemented, [421, "4.7.0 BDAT was not offered, closing connection"]]],
]);

/** The text of the 421 for a connection that was too slow. */
export const DEADLINE_TEXTS: Readonly<Record<Exclude<ReceiverDeadline, "farewellMs">, string>> = {
  connectionMs: "4.4.2 Connection lasted too long, closing connection",
  dataMs: "4.4.2 Message transfer timeout, closing connection",
  idleMs: "4.4.2 Idle timeout, closing connection",
  mailWaitMs: "4.4.2 Idle timeout, closing connection",
};

/** The reply to a message, or an announced size, above the limit. */
export const tooLarge = (bytesMax: number): ReceiverReply => [
  552,
  `5.3.4 Message size exceeds the limit of ${bytesMax} bytes`,
];

/** A reply as it is sent (RFC 5321 §4.2.1). */
export const formatReply = ([code, text]: ReceiverReply): string => {
  const lines = text.split("\n");
  return lines.map((line, index) => `${code}${index < lines.length - 1 ? "-" : " "}${line}\r\n`).join("");
};

/** The reply to message content that was not stored. */
export const contentRefusal = (problem: MailProblem, bytesMax: number): ReceiverReply => {
  if (problem === "too_large") return tooLarge(bytesMax);
  // The client of an abandoned mail has disconnected, or was disconnected.
  return problem === "no_memory" ? REPLIES.noMemory : REPLIES.later;
};
