import type { Clock } from "../base/clock.ts";
import type { ReceiverLimits } from "./smtp-receiver-limits.ts";

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
  readonly #clock: Clock;
  readonly #limits: ReceiverLimits;
  readonly #onPassed: (deadline: ReceiverDeadline) => void;
  readonly #connectionEndsAtMs: number;
  #idleEndsAtMs = 0;
  #dataEndsAtMs = NEVER;
  /** Until when a MAIL has to come, and after it the content. */
  #mailEndsAtMs = 0;
  #hasBegunMail: boolean = false;
  #isFarewell: boolean = false;
  #isStopped: boolean = false;
  #cancel = (): void => undefined;

  constructor(clock: Clock, limits: ReceiverLimits, onPassed: (deadline: ReceiverDeadline) => void) {
    this.#clock = clock;
    this.#limits = limits;
    this.#onPassed = onPassed;
    this.waitingSinceMs = clock.monotonicMs();
    this.#connectionEndsAtMs = this.waitingSinceMs + limits.connectionMs;
    this.noteActivity();
    this.awaitMail();
  }

  /** A reply was sent, or a piece of content came. */
  noteActivity(): void {
    this.#idleEndsAtMs = this.#clock.monotonicMs() + this.#limits.idleMs;
  }

  /** From now on the next MAIL has to come. */
  awaitMail(): void {
    const nowMs = this.#clock.monotonicMs();
    this.waitingSinceMs = nowMs;
    this.#dataEndsAtMs = NEVER;
    this.#mailEndsAtMs = nowMs + this.#limits.mailWaitMs;
    this.#hasBegunMail = false;
    if (!this.#isFarewell) this.#sleep();
  }

  /** MAIL came: its content is next. A client that begins again and again gets no more time. */
  beginEnvelope(): void {
    if (!this.#hasBegunMail) this.#mailEndsAtMs = this.#clock.monotonicMs() + this.#limits.envelopeMs;
    this.#hasBegunMail = true;
  }

  beginContent(): void {
    this.#dataEndsAtMs = this.#clock.monotonicMs() + this.#limits.dataMs;
    this.#mailEndsAtMs = NEVER;
  }

  endContent(): void {
    this.#dataEndsAtMs = NEVER;
  }

  /** Our last reply was sent: from now on only the client's close counts. */
  beginFarewell(): void {
    this.#isFarewell = true;
    this.#wakeAfter(this.#limits.farewellMs);
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancel();
  }

  #wakeAfter(delayMs: number): void {
    this.#cancel();
    if (this.#isStopped) return;
    this.#cancel = this.#clock.after(delayMs, () => this.#wake());
  }

  #wake(): void {
    const nowMs = this.#clock.monotonicMs();
    if (this.isOurTurn) this.#idleEndsAtMs = nowMs + this.#limits.idleMs;
    if (this.#isFarewell) this.#onPassed("farewellMs");
    else if (nowMs >= this.#connectionEndsAtMs) this.#onPassed("connectionMs");
    else if (nowMs >= this.#dataEndsAtMs) this.#onPassed("dataMs");
    else if (nowMs >= this.#idleEndsAtMs) this.#onPassed("idleMs");
    else if (nowMs >= this.#mailEndsAtMs && !this.isOurTurn) this.#onPassed("mailWaitMs");
    else this.#sleep();
  }

  #sleep(): void {
    const mailEndsAtMs = this.isOurTurn ? NEVER : this.#mailEndsAtMs;
    const nextMs = Math.min(this.#idleEndsAtMs, mailEndsAtMs, this.#dataEndsAtMs, this.#connectionEndsAtMs);
    this.#wakeAfter(nextMs - this.#clock.monotonicMs());
  }
}
