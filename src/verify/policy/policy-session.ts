import type { Socket } from "node:net";
import type { Clock } from "../../foundation/base/clock.ts";
import { formatAction, PolicyParser, type PolicyProblem, type PolicyQuestion } from "./protocol.ts";

/** Bytes of questions that wait; then the client has to wait. */
const UNREAD_BYTES_MAX = 32 * 1024;
/** For a first question, for the rest of one that has begun, and for answers to be read. */
const QUESTION_MS = 10_000;
/** Postfix closes an idle connection after 5 minutes (`smtpd_policy_service_max_idle`). */
const IDLE_MS = 10 * 60_000;

export interface PolicySessionDeps {
  readonly clock: Clock;
  readonly answer: (question: PolicyQuestion) => string;
  /** Resolves when a question may be answered that was sent before the answer to the one before it, as no mail server does. */
  readonly turn: () => Promise<void>;
  /** Called once, with the reason when it is not the client that ended the connection. */
  readonly onClosed: (problem: PolicyProblem | "timeout" | null) => void;
}

/**
 * One connection. Questions are answered in their order. Of those that a client sends at once, all but the first wait for their
 * turn, so that thousands of them delay nobody. After an error nothing is sent, as Postfix asks for: it then uses its `default_action`.
 */
export class PolicySession {
  readonly #parser = new PolicyParser();
  #cancelDeadline: () => void = () => undefined;
  #idleSinceMs: number | null = null;
  #isAnswering: boolean = false;
  #hasEnded: boolean = false;
  #isClosed: boolean = false;

  constructor(
    private readonly socket: Socket,
    private readonly deps: PolicySessionDeps,
  ) {
    this.#limit(QUESTION_MS);
    socket.on("data", (bytes: Uint8Array) => this.#receive(bytes));
    socket.on("drain", () => void this.#answerAll());
    socket.on("end", () => {
      this.#hasEnded = true;
      void this.#answerAll();
    });
    socket.on("error", () => this.close());
    socket.on("close", () => this.close());
  }

  /** Since when it waits for the next question; null while one is under way. */
  get idleSinceMs(): number | null {
    return this.#idleSinceMs;
  }

  /** Closes at once. */
  close(problem: PolicyProblem | "timeout" | null = null): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#cancelDeadline();
    this.socket.destroy();
    this.deps.onClosed(problem);
  }

  #receive(bytes: Uint8Array): void {
    if (this.#isClosed) return;
    if (this.#idleSinceMs !== null) this.#limit(QUESTION_MS);
    this.#idleSinceMs = null;
    this.#parser.push(bytes);
    if (this.#parser.unreadBytes > UNREAD_BYTES_MAX) this.socket.pause();
    void this.#answerAll();
  }

  /** Never rejects. */
  async #answerAll(): Promise<void> {
    if (this.#isAnswering) return;
    this.#isAnswering = true;
    let hasAnswered = false;
    // A client that does not read its answers gets no more of them.
    while (!this.#isClosed && !this.socket.writableNeedDrain) {
      const input = this.#parser.next();
      if (input === null) break;
      if (input.kind === "problem") return this.close(input.problem);
      const { question } = input;
      const answer = formatAction(question.form, this.deps.answer(question));
      hasAnswered = true;
      // Exim reads until the connection ends.
      if (question.form === "line") return this.#finish(answer);
      this.socket.write(answer);
      if (this.#parser.unreadBytes === 0) continue;
      this.#limit(QUESTION_MS);
      await this.deps.turn();
    }
    this.#isAnswering = false;
    if (this.#isClosed) return;
    if (this.socket.writableNeedDrain) return this.#limit(QUESTION_MS);
    if (this.#hasEnded) return this.#finish("");
    if (this.socket.isPaused()) this.socket.resume();
    if (hasAnswered) this.#await();
  }

  /** Sets the deadline for what comes next. */
  #await(): void {
    const isIdle = !this.#parser.isInQuestion;
    this.#idleSinceMs = isIdle ? this.deps.clock.monotonicMs() : null;
    this.#limit(isIdle ? IDLE_MS : QUESTION_MS);
  }

  /** Sends what is last, and closes once it is sent. */
  #finish(answer: string): void {
    this.#limit(QUESTION_MS);
    this.socket.end(answer, () => this.close());
  }

  #limit(ms: number): void {
    this.#cancelDeadline();
    this.#cancelDeadline = this.deps.clock.after(ms, () => this.close("timeout"));
  }
}
