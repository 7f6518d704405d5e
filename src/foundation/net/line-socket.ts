import type { Clock } from "../base/clock.ts";
import { err, ok, type Result } from "../base/errors.ts";
import type { Wire } from "./connector.ts";
import { createReplyParser, type ReplyParser, type ReplyProblem, type SmtpReply } from "./smtp-reply.ts";

/**
 * Why no reply came. `timeout`: the reply was not whole at its deadline; `deadline`: the session's own ran out;
 * `surplus_reply`: the server sent a reply without a command, so that later replies cannot be assigned to their commands;
 * `bytes_max`: it sent more than a session may; else what the reply parser could not read.
 */
export type LineProblem = "closed" | "timeout" | "deadline" | "surplus_reply" | "bytes_max" | ReplyProblem;

/** What a line socket is made of. `endsAtMs` is the session's own deadline on the monotonic clock, `null` for none. */
interface LineSocketOptions {
  readonly wire: Wire;
  readonly clock: Clock;
  readonly transcript: TranscriptRecorder;
  readonly endsAtMs: number | null;
}

/** A server may send this much in a session, TLS included as plain text. Ordinary sessions need a few kilobytes. */
export const SESSION_BYTES_MAX = 256 * 1024;
/** How long a server may take to close after QUIT, in the background. */
export const QUIT_WAIT_MS = 2_000;
/** Characters of an unparsable reply that the transcript shows. */
const GARBAGE_CHARS_SHOWN = 160;

type Waiter = (outcome: Result<SmtpReply, LineProblem>) => void;

/**
 * Sends lines and reads SMTP replies (RFC 5321 §4.2) over one wire, which it owns.
 *
 * It knows how many replies are due: one for the banner, then one for each line sent. The first problem is final: the
 * wire is destroyed, replies that came before it can still be read, every later read returns the problem.
 */
export class LineSocket {
  /** What ended this socket, `null` while it works. */
  problem: LineProblem | null = null;
  /** True once a byte came from the server. */
  receivedAnything = false;

  private readonly wire: Wire;
  private readonly clock: Clock;
  private readonly transcript: TranscriptRecorder;
  private readonly endsAtMs: number | null;
  /** Created by the first bytes: thousands of checks may wait for servers that send nothing. */
  private parser: ReplyParser | null = null;
  private readonly replies: SmtpReply[] = [];
  private repliesDue = 1;
  private bytesReceived = 0;
  private waiter: Waiter | null = null;
  private waitsUntilMs = 0;
  private wakesAtMs = Number.POSITIVE_INFINITY;
  private cancelWake: (() => void) | null = null;
  private isStartingTls: boolean = false;
  private isQuitting: boolean = false;

  constructor({ wire, clock, transcript, endsAtMs }: LineSocketOptions) {
    this.wire = wire;
    this.clock = clock;
    this.transcript = transcript;
    this.endsAtMs = endsAtMs;
    if (endsAtMs !== null) this.wakeBy(endsAtMs);
    wire.listen({ data: (chunk) => this.receive(chunk), closed: () => this.fail("closed") });
  }

  /** Sends lines (without line ends) in one write. One reply is due for each. */
  send(lines: readonly string[]): void {
    if (this.problem !== null || this.isQuitting) return;
    this.repliesDue += lines.length;
    this.transcript.add("us", lines);
    this.wire.write(lines.length === 1 ? `${lines[0]}\r\n` : `${lines.join("\r\n")}\r\n`);
  }

  /**
   * The next reply, which must be complete by `deadlineMs` of the monotonic clock, however slowly it arrives.
   * One read at a time.
   */
  readReply(deadlineMs: number): Promise<Result<SmtpReply, LineProblem>> {
    const reply = this.replies.shift();
    if (reply) return Promise.resolve(ok(reply));
    if (this.problem !== null) return Promise.resolve(err(this.problem));
    if (this.isQuitting) return Promise.resolve(err("closed"));
    if (this.waiter) throw new Error("concurrent reads on a line socket");
    this.waitsUntilMs = deadlineMs;
    return new Promise((resolve) => {
      this.waiter = resolve;
      this.wakeBy(deadlineMs);
    });
  }

  /**
   * Sends STARTTLS and, when the server agrees (220), turns the wire into TLS, all by `deadlineMs` (RFC 3207 §4).
   * Clear text beside the reply is dropped, because an attacker may have put it there (§6).
   */
  async startTls(serverName: string, deadlineMs: number): Promise<Result<SmtpReply, LineProblem | "tls_failed">> {
    this.isStartingTls = true;
    this.send(["STARTTLS"]);
    const reply = await this.readReply(deadlineMs);
    if (!reply.ok || reply.value.code !== 220) {
      this.isStartingTls = false;
      return reply;
    }
    this.replies.length = 0;
    this.parser = null;
    const upgraded = await this.wire.upgradeTls(serverName, Math.max(0, deadlineMs - this.clock.monotonicMs()));
    this.isStartingTls = false;
    if (!upgraded.ok) {
      const outOfTime = this.problem === "deadline";
      this.fail("closed");
      return err(outOfTime ? "deadline" : "tls_failed");
    }
    return reply;
  }

  /**
   * Ends the session in the background: QUIT, then the server has `QUIT_WAIT_MS` to close. A broken wire is
   * destroyed immediately. Further bytes are not read.
   */
  quit(): void {
    if (this.problem !== null || this.isQuitting) return;
    this.send(["QUIT"]);
    this.isQuitting = true;
    this.settle("closed");
    this.wakesAtMs = Number.POSITIVE_INFINITY;
    this.wakeBy(this.clock.monotonicMs() + QUIT_WAIT_MS);
  }

  /** Ends the session because replies cannot be assigned to their commands. */
  surplus(): void {
    this.fail("surplus_reply");
  }

  /** Destroys the connection immediately. */
  destroy(): void {
    this.fail("closed");
  }

  private receive(chunk: Uint8Array): void {
    this.receivedAnything = true;
    this.bytesReceived += chunk.length;
    if (this.bytesReceived > SESSION_BYTES_MAX) this.fail("bytes_max");
    // The reply to QUIT, or an earlier one: in both cases the session is over.
    else if (this.isQuitting) this.wire.end();
    else this.read(chunk);
  }

  private read(chunk: Uint8Array): void {
    this.parser ??= createReplyParser();
    const { parser } = this;
    for (const parsed of parser.push(chunk)) {
      if (!parsed.ok) {
        this.transcript.add("server", [printable(chunk)]);
        this.fail(parsed.error);
        return;
      }
      this.transcript.add("server", parsed.value.raw);
      if (this.repliesDue > 0) this.deliver(parsed.value);
      else if (!this.isStartingTls) {
        this.fail(parsed.value.code === 421 ? "closed" : "surplus_reply");
        return;
      }
    }
    // The beginning of a reply that is not due would be joined with the next one.
    if (this.repliesDue === 0 && !this.isStartingTls && parser.bufferedBytes() > 0) this.fail("surplus_reply");
  }

  private deliver(reply: SmtpReply): void {
    this.repliesDue--;
    const waiter = this.waiter;
    if (!waiter) {
      this.replies.push(reply);
      return;
    }
    this.waiter = null;
    waiter(ok(reply));
  }

  private fail(problem: LineProblem): void {
    if (this.problem !== null) return;
    this.problem = problem;
    this.cancelWake?.();
    this.cancelWake = null;
    this.wire.destroy();
    this.settle(problem);
  }

  private settle(problem: LineProblem): void {
    const waiter = this.waiter;
    this.waiter = null;
    waiter?.(err(problem));
  }

  /** One timer serves every wait: it is set for the earliest deadline and checks what is due when it fires. */
  private wakeBy(dueMs: number): void {
    if (this.wakesAtMs <= dueMs) return;
    this.cancelWake?.();
    this.wakesAtMs = dueMs;
    this.cancelWake = this.clock.after(dueMs - this.clock.monotonicMs(), () => this.wake());
  }

  private wake(): void {
    this.wakesAtMs = Number.POSITIVE_INFINITY;
    this.cancelWake = null;
    const nowMs = this.clock.monotonicMs();
    if (this.isQuitting) this.fail("timeout");
    else if (this.endsAtMs !== null && nowMs >= this.endsAtMs) this.fail("deadline");
    else if (this.waiter && nowMs >= this.waitsUntilMs) this.fail("timeout");
    else {
      if (this.waiter) this.wakeBy(this.waitsUntilMs);
      if (this.endsAtMs !== null) this.wakeBy(this.endsAtMs);
    }
  }
}

const printable = (chunk: Uint8Array) =>
  Buffer.from(chunk.buffer, chunk.byteOffset, Math.min(chunk.length, GARBAGE_CHARS_SHOWN))
    .toString("latin1")
    // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what must not be shown
    .replace(/[\x00-\x1f\x7f-\x9f]/g, ".");

/** One line as it was sent or received, without its line end, perhaps cut short. */
export interface SmtpTranscriptLine {
  /** Milliseconds since the connect began. */
  readonly atMs: number;
  readonly from: "us" | "server";
  readonly text: string;
}

/** The opening (banner, EHLO, STARTTLS) and each probe keep this many lines; later ones are not recorded. */
export const TRANSCRIPT_LINES_MAX = 128;
/** Longer lines are cut and end in "…". */
export const TRANSCRIPT_LINE_CHARS_MAX = 512;

/** Records a transcript in bounded memory: the opening of the session, and the lines of the latest probe. */
export class TranscriptRecorder {
  private readonly opening: SmtpTranscriptLine[] = [];
  private current = this.opening;

  constructor(
    private readonly clock: Clock,
    private readonly startedMs: number,
  ) {}

  /** Adds lines that were sent or received now. */
  add(from: "us" | "server", texts: readonly string[]): void {
    const atMs = Math.round(this.clock.monotonicMs() - this.startedMs);
    for (const text of texts) {
      if (this.current.length >= TRANSCRIPT_LINES_MAX) return;
      this.current.push({ atMs, from, text: cut(text) });
    }
  }

  /** Discards the lines of the probe before, keeps the opening, and records the next probe. */
  beginProbe(): void {
    this.current = [];
  }

  /** The opening and the latest probe, in order: a copy, which later lines do not change. */
  lines(): readonly SmtpTranscriptLine[] {
    return this.current === this.opening ? [...this.opening] : [...this.opening, ...this.current];
  }
}

const cut = (text: string) =>
  text.length > TRANSCRIPT_LINE_CHARS_MAX ? `${text.slice(0, TRANSCRIPT_LINE_CHARS_MAX - 1)}…` : text;
