import { err, ok, type Result } from "../base/errors.ts";
import type { MailMemory } from "./smtp-receiver-load.ts";

/** Why a mail is not accepted: larger than allowed, no memory left for it now, or never received whole. */
export type MailProblem = "too_large" | "no_memory" | "abandoned";

/** The smallest buffer for a mail that comes in pieces. */
const FIRST_BYTES = 16 * 1024;

/**
 * The content of one mail while it comes in.
 *
 * Pieces are copied into one buffer that doubles, because a client decides how small they are: a million pieces of
 * four bytes kept apart would need a hundred times their size. A mail of one piece is not copied. After a problem
 * nothing more is stored; further bytes are only counted.
 */
export class MailBuffer {
  /** Bytes received, stored or not. */
  bytesSeen = 0;
  private buffer: Uint8Array = new Uint8Array(0);
  private length = 0;
  private problem: MailProblem | null = null;
  private isWhole: boolean = false;
  private reservedBytes = 0;

  constructor(
    private readonly memory: Pick<MailMemory, "reserve" | "free">,
    private readonly bytesMax: number,
  ) {}

  add(piece: Uint8Array): void {
    this.bytesSeen += piece.length;
    if (this.problem !== null || piece.length === 0) return;
    if (this.bytesSeen > this.bytesMax) this.fail("too_large");
    else if (!this.append(piece)) this.fail("no_memory");
  }

  /** The whole mail, or why there is none. `release` gives its memory back when it is no longer needed. */
  finish(): Result<Uint8Array, MailProblem> {
    if (this.problem !== null) return err(this.problem);
    this.isWhole = true;
    return ok(this.buffer.subarray(0, this.length));
  }

  /** Gives a mail up that did not come in whole. A whole one stays. */
  abandon(): void {
    if (!this.isWhole && this.problem === null) this.fail("abandoned");
  }

  release(): void {
    this.buffer = new Uint8Array(0);
    this.length = 0;
    this.memory.free(this.reservedBytes);
    this.reservedBytes = 0;
  }

  private append(piece: Uint8Array): boolean {
    if (this.length === 0) {
      if (!this.reserve(piece.length)) return false;
      this.buffer = piece;
      this.length = piece.length;
      return true;
    }
    const needed = this.length + piece.length;
    if (needed > this.buffer.length && !this.grow(needed)) return false;
    this.buffer.set(piece, this.length);
    this.length = needed;
    return true;
  }

  private grow(needed: number): boolean {
    const capacity = Math.min(Math.max(needed, this.length * 2, FIRST_BYTES), this.bytesMax);
    if (!this.reserve(capacity - this.reservedBytes)) return false;
    const grown = new Uint8Array(capacity);
    grown.set(this.buffer.subarray(0, this.length));
    this.buffer = grown;
    return true;
  }

  private reserve(bytes: number): boolean {
    if (!this.memory.reserve(bytes)) return false;
    this.reservedBytes += bytes;
    return true;
  }

  private fail(problem: MailProblem): void {
    this.problem = problem;
    this.release();
  }
}
