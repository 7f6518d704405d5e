import type { MailProblem } from "./smtp-receiver-load.ts";
import type { Clock } from "../base/clock.ts";
import type { ReceiverLimits } from "./smtp-receiver-rules.ts";

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

/** Which deadline has passed: see the limits of the same names. `farewell`: the client did not close after our last reply. */
export type ReceiverDeadline = "connectionMs" | "dataMs" | "idleMs" | "mailWaitMs" | "farewellMs";

const NEVER = Number.POSITIVE_INFINITY;

/**
 * The deadlines of one connection to the receiver, by the monotonic clock. One timer serves all of them: it is set for what
 * comes next, and looks at what is due when it fires. `onPassed` is called once a deadline has passed.
 */
export class ReceiverDeadlines {
  /** Since when it has been waiting for the content of a mail. */
  waitingSinceMs: number;
  /** Set while the client waits for us, when it cannot be expected to send anything. */
  isOurTurn: boolean = false;
  readonly #connectionEndsAtMs: number;
  #idleEndsAtMs = 0;
  #dataEndsAtMs = NEVER;
  /** Until when a MAIL has to come, and after it the content. */
  #mailEndsAtMs = 0;
  #hasBegunMail: boolean = false;
  #isFarewell: boolean = false;
  #isStopped: boolean = false;
  #cancel = (): void => undefined;

  constructor(
    private readonly clock: Clock,
    private readonly limits: ReceiverLimits,
    private readonly onPassed: (deadline: ReceiverDeadline) => void,
  ) {
    this.waitingSinceMs = clock.monotonicMs();
    this.#connectionEndsAtMs = this.waitingSinceMs + limits.connectionMs;
    this.noteActivity();
    this.awaitMail();
  }

  /** A reply was sent, or a piece of content came. */
  noteActivity(): void {
    this.#idleEndsAtMs = this.clock.monotonicMs() + this.limits.idleMs;
  }

  /** From now on the next MAIL has to come. */
  awaitMail(): void {
    const nowMs = this.clock.monotonicMs();
    this.waitingSinceMs = nowMs;
    this.#dataEndsAtMs = NEVER;
    this.#mailEndsAtMs = nowMs + this.limits.mailWaitMs;
    this.#hasBegunMail = false;
    if (!this.#isFarewell) this.#sleep();
  }

  /** MAIL came: its content is next. A client that begins again and again gets no more time. */
  beginEnvelope(): void {
    if (!this.#hasBegunMail) this.#mailEndsAtMs = this.clock.monotonicMs() + this.limits.envelopeMs;
    this.#hasBegunMail = true;
  }

  beginContent(): void {
    this.#dataEndsAtMs = this.clock.monotonicMs() + this.limits.dataMs;
    this.#mailEndsAtMs = NEVER;
  }

  endContent(): void {
    this.#dataEndsAtMs = NEVER;
  }

  /** Our last reply was sent: from now on only the client's close counts. */
  beginFarewell(): void {
    this.#isFarewell = true;
    this.#wakeAfter(this.limits.farewellMs);
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancel();
  }

  #wakeAfter(delayMs: number) {
    this.#cancel();
    if (this.#isStopped) return;
    this.#cancel = this.clock.after(delayMs, () => this.#wake());
  }

  #wake() {
    const nowMs = this.clock.monotonicMs();
    if (this.isOurTurn) this.#idleEndsAtMs = nowMs + this.limits.idleMs;
    if (this.#isFarewell) this.onPassed("farewellMs");
    else if (nowMs >= this.#connectionEndsAtMs) this.onPassed("connectionMs");
    else if (nowMs >= this.#dataEndsAtMs) this.onPassed("dataMs");
    else if (nowMs >= this.#idleEndsAtMs) this.onPassed("idleMs");
    else if (nowMs >= this.#mailEndsAtMs && !this.isOurTurn) this.onPassed("mailWaitMs");
    else this.#sleep();
  }

  #sleep() {
    const mailEndsAtMs = this.isOurTurn ? NEVER : this.#mailEndsAtMs;
    const nextMs = Math.min(this.#idleEndsAtMs, mailEndsAtMs, this.#dataEndsAtMs, this.#connectionEndsAtMs);
    this.#wakeAfter(nextMs - this.clock.monotonicMs());
  }
}
