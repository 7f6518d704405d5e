import type { Readable } from "node:stream";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { MailBuffer, type MailProblem } from "./smtp-receiver-buffer.ts";
import type { ReceiverLimits } from "./smtp-receiver-limits.ts";
import type { Place } from "./smtp-receiver-load.ts";
import type {
  ReceivedMail,
  ReceiverCounts,
  ReceiverRules,
  RecipientVerdict,
  AcceptOutcome,
} from "./smtp-receiver-rules.ts";

/** A reply with its enhanced status code (RFC 3463) at the front of the text. */
export interface Reply {
  readonly code: number;
  readonly text: string;
}

/** The connection that a visit takes place on. */
export interface VisitLine {
  send(code: number, text: string): void;
  /** Closes at once and frees the descriptor, in every state. */
  destroy(): void;
}

export interface VisitDeps {
  readonly limits: ReceiverLimits;
  readonly rules: ReceiverRules;
  readonly clock: Clock;
  readonly log: Log;
  readonly counts: ReceiverCounts;
  readonly place: Place;
  readonly line: VisitLine;
  readonly client: string;
  /** Called once, when the connection is gone. */
  readonly onGone: () => void;
}

const CLOSING: Reply = { code: 421, text: "4.3.2 Shutting down" };
const LATER: Reply = { code: 451, text: "4.3.0 Not to be taken now, try again later" };
const NO_ROOM: Reply = { code: 452, text: "4.3.1 Too many mails at once, try again later" };
const NO_STORAGE: Reply = { code: 452, text: "4.3.1 Insufficient system storage, try again later" };
const TOO_LARGE = "5.3.4 The mail is too large";

/** One client's connection to the receiver: its ceilings, its deadlines, and the mail that is under way. */
export class Visit {
  private readonly connectionEndsAtMs: number;
  private idleEndsAtMs: number;
  private dataEndsAtMs = Number.POSITIVE_INFINITY;
  /** Until when a MAIL is to come, and after it the content. */
  private waitEndsAtMs: number;
  /** When the connection came, or its last mail was answered. */
  private waitsSinceMs: number;
  private hasBegunMail: boolean = false;
  private replies = 0;
  private farewellEndsAtMs: number | null = null;
  private cancelWake: (() => void) | null = null;
  private mail: MailBuffer | null = null;
  /** The client waits for us, not we for it. */
  private isOurTurn: boolean = false;
  private isClosing: boolean = false;
  private isGone: boolean = false;
  private mails = 0;
  private unknownRecipients = 0;
  private refusedCommands = 0;

  constructor(private readonly deps: VisitDeps) {
    const nowMs = deps.clock.monotonicMs();
    this.connectionEndsAtMs = nowMs + deps.limits.connectionMs;
    this.idleEndsAtMs = nowMs + deps.limits.idleMs;
    this.waitsSinceMs = nowMs;
    this.waitEndsAtMs = nowMs + deps.limits.mailWaitMs;
    this.sleep(nowMs);
  }

  /** Called with the code of every reply that was sent. */
  replied(code: number): void {
    this.heard();
    if (code === 221 || code === 421) this.takeLeave();
    this.replies++;
    if (this.replies > this.deps.limits.repliesPerMail && this.farewellEndsAtMs === null) {
      this.drop("4.7.0 Too many commands without a message");
      return;
    }
    if (code < 500 || this.farewellEndsAtMs !== null) return;
    this.refusedCommands++;
    if (this.refusedCommands >= this.deps.limits.refusedCommands) this.drop("4.7.0 Too many errors");
  }

  /** MAIL: null to go on. `sizeBytes` is what the client announced, 0 when it did not. */
  beginMail(sizeBytes: number): Reply | null {
    const { limits, place, rules, clock } = this.deps;
    if (this.isClosing) return CLOSING;
    if (this.mails >= limits.mailsPerConnection) return { code: 421, text: "4.7.0 Too many mails in one connection" };
    if (rules.isFull?.() === true) return NO_STORAGE;
    if (!place.hasRoomFor(sizeBytes)) return NO_ROOM;
    if (!this.hasBegunMail) this.waitEndsAtMs = clock.monotonicMs() + limits.envelopeMs;
    // Once until its content: who begins again and again gets no more time.
    this.hasBegunMail = true;
    return null;
  }

  /** Since when it has been waiting for content of a mail; null while that comes, or when it is leaving. */
  waitingSinceMs(): number | null {
    return this.mail !== null || this.farewellEndsAtMs !== null ? null : this.waitsSinceMs;
  }

  /** Ends the connection for another one. */
  giveWay(): void {
    this.drop("4.7.0 Too many connections, try again later");
    this.destroy();
  }

  /** RCPT: null to accept. */
  async judge(address: string): Promise<Reply | null> {
    const verdict = await this.verdictOf(address);
    if (verdict === "known") return null;
    if (verdict === "later") return LATER;
    if (verdict === "full") return NO_STORAGE;
    this.deps.counts.unknownRecipients++;
    this.unknownRecipients++;
    if (this.unknownRecipients < this.deps.limits.unknownRecipients)
      return { code: 550, text: "5.1.1 No reports are received at this address" };
    this.deps.counts.dropped++;
    return { code: 421, text: "4.7.0 Too many unknown recipients" };
  }

  /** DATA: reads the content, has it taken, and answers. A mail that does not come in whole is forgotten. */
  receive(content: Readable, mail: Omit<ReceivedMail, "bytes" | "client">, answer: (reply: Reply) => void): void {
    const { limits, place, clock } = this.deps;
    const buffer = new MailBuffer({ bytesMax: limits.mailBytes, hold: place.hold, letGo: place.letGo });
    this.mail = buffer;
    this.mails++;
    this.dataEndsAtMs = clock.monotonicMs() + limits.dataMs;
    this.waitEndsAtMs = Number.POSITIVE_INFINITY;
    content.on("data", (piece: Uint8Array) => this.hear(buffer, piece));
    // The client hung up: `close` follows.
    content.on("error", () => buffer.abandon());
    content.on("close", () => buffer.abandon());
    content.on("end", () => {
      this.dataEndsAtMs = Number.POSITIVE_INFINITY;
      void this.conclude(buffer, mail).then((reply) => {
        this.mail = null;
        this.waitForMail();
        answer(reply);
        if (this.isClosing) this.say(CLOSING);
      });
    });
  }

  /** Ends the connection politely: at once, or after the mail that is under way. */
  close(): void {
    this.isClosing = true;
    if (this.mail === null && this.farewellEndsAtMs === null) this.say(CLOSING);
  }

  /** Ends the connection at once, whatever it is doing. A mail that is being taken still is. */
  destroy(): void {
    this.mail?.abandon();
    this.deps.line.destroy();
    this.gone();
  }

  /** The connection has closed. */
  gone(): void {
    if (this.isGone) return;
    this.isGone = true;
    this.cancelWake?.();
    this.deps.place.leave();
    this.deps.onGone();
  }

  private async verdictOf(address: string): Promise<RecipientVerdict> {
    this.isOurTurn = true;
    try {
      return await this.deps.rules.judgeRecipient(address);
    } catch (error) {
      this.deps.log.error("a recipient of report mail could not be judged", { error, client: this.deps.client });
      return "later";
    } finally {
      this.isOurTurn = false;
    }
  }

  private hear(buffer: MailBuffer, piece: Uint8Array): void {
    this.heard();
    buffer.add(piece);
    if (buffer.bytesSeen <= this.deps.limits.mailBytesRead) return;
    this.deps.counts.dropped++;
    this.deps.counts.refused++;
    this.destroy();
  }

  private async conclude(buffer: MailBuffer, mail: Omit<ReceivedMail, "bytes" | "client">): Promise<Reply> {
    const { counts, client, limits } = this.deps;
    const bytes = buffer.finish();
    if (!bytes.ok) {
      const reply = replyTo(bytes.error, limits);
      if (bytes.error !== "abandoned") counts[reply.code < 500 ? "later" : "refused"]++;
      return reply;
    }
    this.isOurTurn = true;
    const outcome = await this.acceptOrLater({ ...mail, client, bytes: bytes.value });
    this.isOurTurn = false;
    buffer.release();
    counts[outcome === "full" ? "later" : outcome]++;
    if (outcome === "accepted") return { code: 250, text: "2.0.0 Taken" };
    if (outcome === "full") return NO_STORAGE;
    return outcome === "later" ? LATER : { code: 554, text: "5.7.1 The mail is not received here" };
  }

  private async acceptOrLater(mail: ReceivedMail): Promise<AcceptOutcome> {
    try {
      return await this.deps.rules.acceptMail(mail);
    } catch (error) {
      this.deps.log.error("a report mail could not be taken", { error, client: mail.client, bytes: mail.bytes.length });
      return "later";
    }
  }

  private heard(): void {
    this.idleEndsAtMs = this.deps.clock.monotonicMs() + this.deps.limits.idleMs;
  }

  private waitForMail(): void {
    const nowMs = this.deps.clock.monotonicMs();
    this.waitsSinceMs = nowMs;
    this.waitEndsAtMs = nowMs + this.deps.limits.mailWaitMs;
    this.hasBegunMail = false;
    this.replies = 0;
    if (this.farewellEndsAtMs === null) this.sleep(nowMs);
  }

  private say({ code, text }: Reply): void {
    if (!this.isGone) this.deps.line.send(code, text);
  }

  private drop(text: string): void {
    this.deps.counts.dropped++;
    this.mail?.abandon();
    this.say({ code: 421, text });
  }

  private takeLeave(): void {
    if (this.farewellEndsAtMs !== null) return;
    this.farewellEndsAtMs = this.deps.clock.monotonicMs() + this.deps.limits.farewellMs;
    this.wakeAfter(this.deps.limits.farewellMs);
  }

  private wakeAfter(delayMs: number): void {
    this.cancelWake?.();
    this.cancelWake = this.isGone ? null : this.deps.clock.after(delayMs, () => this.wake());
  }

  /** One timer serves every deadline: it looks at what is due when it rings, and is set for what comes next. */
  private wake(): void {
    const nowMs = this.deps.clock.monotonicMs();
    const idleEndsAtMs = this.isOurTurn ? nowMs + this.deps.limits.idleMs : this.idleEndsAtMs;
    if (this.farewellEndsAtMs !== null) this.destroy();
    else if (nowMs >= this.connectionEndsAtMs) this.drop("4.4.2 The connection has lasted too long");
    else if (nowMs >= this.dataEndsAtMs) this.drop("4.4.2 The mail took too long");
    else if (nowMs >= idleEndsAtMs) this.drop("4.4.2 Nothing came for too long");
    else if (nowMs >= this.waitEndsAtMs && !this.isOurTurn) this.drop("4.4.2 Idle timeout, closing connection");
    else this.sleep(nowMs, idleEndsAtMs);
  }

  /** Sets the timer for what comes next. */
  private sleep(nowMs: number, idleEndsAtMs = this.idleEndsAtMs): void {
    const waitEndsAtMs = this.isOurTurn ? Number.POSITIVE_INFINITY : this.waitEndsAtMs;
    this.wakeAfter(Math.min(idleEndsAtMs, waitEndsAtMs, this.dataEndsAtMs, this.connectionEndsAtMs) - nowMs);
  }
}

const replyTo = (problem: MailProblem, limits: ReceiverLimits): Reply => {
  if (problem === "too_large") return { code: 552, text: `${TOO_LARGE}: ${limits.mailBytes} bytes are the most` };
  // The client of an abandoned mail is gone, or has been told so.
  return problem === "no_room" ? NO_ROOM : LATER;
};
