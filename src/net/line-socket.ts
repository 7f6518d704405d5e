import type { Clock } from "../base/clock.ts";
import { err, ok, type Result } from "../base/errors.ts";
import type { Wire } from "./connector.ts";
import type { TranscriptRecorder } from "./smtp-transcript.ts";
import { createReplyParser, type ReplyProblem, type SmtpReply } from "./smtp-reply.ts";

/**
 * Why no reply came. `timeout`: the reply was not whole at its deadline; `deadline`: the session's own ran out;
 * `surplus_reply`: the server spoke without being asked, so that no later reply could be told to its command;
 * `bytes_max`: it said more than a session may; else what the reply parser could not read.
 */
export type LineProblem = "closed" | "timeout" | "deadline" | "surplus_reply" | "bytes_max" | ReplyProblem;

/** What a line socket is made of. `endsAtMs` is the session's own deadline on the monotonic clock, `null` for none. */
export interface LineSocketOptions {
  readonly wire: Wire;
  readonly clock: Clock;
  readonly dialogue: TranscriptRecorder;
  readonly endsAtMs: number | null;
}

/** A server may say this much in a session, TLS included as plain text. Ordinary sessions need a few kilobytes. */
export const SESSION_BYTES_MAX = 256 * 1024;
/** How long a server may take to close after QUIT; nobody waits for it. */
export const QUIT_WAIT_MS = 2_000;
/** So much of what could not be parsed stands in the dialogue. */
const GARBAGE_CHARS_SHOWN = 160;

type Waiter = (outcome: Result<SmtpReply, LineProblem>) => void;

/**
 * Speaks in lines and hears in SMTP replies (RFC 5321 §4.2) over one wire, which it owns.
 *
 * It knows how many replies are due: one for the banner, then one for each line sent. The first problem is final: the
 * wire is destroyed, replies that came before it can still be read, every later read answers the problem.
 */
export class LineSocket {
  /** What ended this socket, `null` while it works. */
  problem: LineProblem | null = null;
  /** True once a byte came from the server. */
  receivedAnything = false;

  private readonly wire: Wire;
  private readonly clock: Clock;
  private readonly dialogue: TranscriptRecorder;
  private readonly endsAtMs: number | null;
  private parser = createReplyParser();
  private readonly replies: SmtpReply[] = [];
  private repliesDue = 1;
  private bytesHeard = 0;
  private waiter: Waiter | null = null;
  private waitsUntilMs = 0;
  private wakesAtMs = Number.POSITIVE_INFINITY;
  private cancelWake: (() => void) | null = null;
  private startingTls: boolean = false;
  private leaving: boolean = false;

  constructor({ wire, clock, dialogue, endsAtMs }: LineSocketOptions) {
    this.wire = wire;
    this.clock = clock;
    this.dialogue = dialogue;
    this.endsAtMs = endsAtMs;
    if (endsAtMs !== null) this.wakeBy(endsAtMs);
    wire.listen({ data: (chunk) => this.hear(chunk), closed: () => this.fail("closed") });
  }

  /** Sends lines (without line ends) in one write. Each is owed one reply. */
  send(lines: readonly string[]): void {
    if (this.problem !== null || this.leaving) return;
    this.repliesDue += lines.length;
    this.dialogue.add("us", lines);
    this.wire.write(lines.length === 1 ? `${lines[0]}\r\n` : `${lines.join("\r\n")}\r\n`);
  }

  /**
   * The next reply, which must be whole by `deadlineMs` of the monotonic clock, however slowly it drips.
   * One read at a time.
   */
  readReply(deadlineMs: number): Promise<Result<SmtpReply, LineProblem>> {
    const reply = this.replies.shift();
    if (reply) return Promise.resolve(ok(reply));
    if (this.problem !== null) return Promise.resolve(err(this.problem));
    if (this.leaving) return Promise.resolve(err("closed"));
    if (this.waiter) throw new Error("two reads at once on a line socket");
    this.waitsUntilMs = deadlineMs;
    return new Promise((resolve) => {
      this.waiter = resolve;
      this.wakeBy(deadlineMs);
    });
  }

  /**
   * Sends STARTTLS and, when the server agrees (220), turns the wire into TLS, all by `deadlineMs` (RFC 3207 §4).
   * Whatever came in clear text beside the reply is dropped, because an attacker may have put it there (§6).
   */
  async startTls(serverName: string, deadlineMs: number): Promise<Result<SmtpReply, LineProblem | "tls_failed">> {
    this.startingTls = true;
    this.send(["STARTTLS"]);
    const reply = await this.readReply(deadlineMs);
    if (!reply.ok || reply.value.code !== 220) {
      this.startingTls = false;
      return reply;
    }
    this.replies.length = 0;
    this.parser = createReplyParser();
    const upgraded = await this.wire.upgradeTls(serverName, Math.max(0, deadlineMs - this.clock.monotonicMs()));
    this.startingTls = false;
    if (!upgraded.ok) {
      const outOfTime = this.problem === "deadline";
      this.fail("closed");
      return err(outOfTime ? "deadline" : "tls_failed");
    }
    return reply;
  }

  /**
   * Takes leave without making anybody wait: QUIT, then the server has `QUIT_WAIT_MS` to close. A broken wire is
   * destroyed at once. What still comes is not read.
   */
  leave(): void {
    if (this.problem !== null || this.leaving) return;
    this.send(["QUIT"]);
    this.leaving = true;
    this.settle("closed");
    this.wakesAtMs = Number.POSITIVE_INFINITY;
    this.wakeBy(this.clock.monotonicMs() + QUIT_WAIT_MS);
  }

  /** Ends everything at once. */
  destroy(): void {
    this.fail("closed");
  }

  private hear(chunk: Uint8Array): void {
    this.receivedAnything = true;
    this.bytesHeard += chunk.length;
    if (this.bytesHeard > SESSION_BYTES_MAX) this.fail("bytes_max");
    // The answer to QUIT, or something before it: in both cases there is nothing left to say.
    else if (this.leaving) this.wire.end();
    else this.read(chunk);
  }

  private read(chunk: Uint8Array): void {
    for (const parsed of this.parser.push(chunk)) {
      if (!parsed.ok) {
        this.dialogue.add("server", [printable(chunk)]);
        this.fail(parsed.error);
        return;
      }
      this.dialogue.add("server", parsed.value.raw);
      if (this.repliesDue > 0) this.deliver(parsed.value);
      else if (!this.startingTls) {
        this.fail(parsed.value.code === 421 ? "closed" : "surplus_reply");
        return;
      }
    }
    // The beginning of a reply that nobody is owed would be glued to the next one.
    if (this.repliesDue === 0 && !this.startingTls && this.parser.bufferedBytes() > 0) this.fail("surplus_reply");
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

  /** One timer serves every wait: it is set for the earliest and looks at what is due when it rings. */
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
    if (this.leaving) this.fail("timeout");
    else if (this.endsAtMs !== null && nowMs >= this.endsAtMs) this.fail("deadline");
    else if (this.waiter && nowMs >= this.waitsUntilMs) this.fail("timeout");
    else {
      if (this.waiter) this.wakeBy(this.waitsUntilMs);
      if (this.endsAtMs !== null) this.wakeBy(this.endsAtMs);
    }
  }
}

const printable = (chunk: Uint8Array): string =>
  Buffer.from(chunk.buffer, chunk.byteOffset, Math.min(chunk.length, GARBAGE_CHARS_SHOWN))
    .toString("latin1")
    // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what must not be shown
    .replace(/[\x00-\x1f\x7f-\x9f]/g, ".");
