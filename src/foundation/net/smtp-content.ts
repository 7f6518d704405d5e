const [CR, LF, DOT] = [13, 10, 46];
/** The longest beginning of a line that is held back. */
const HELD = Uint8Array.of(DOT, CR);

/**
 * Reads the content of a mail from the bytes after DATA: finds its end and undoes dot-stuffing (RFC 5321 §4.5.2).
 *
 * Only CRLF.CRLF ends it (§4.1.1.4). Bare CR and LF are content, so that nothing can be smuggled behind them
 * (CVE-2023-51764); a stuffed dot is removed behind a bare LF too, because senders that write such lines stuff them.
 */
export class ContentDecoder {
  /** Where in a line the next byte is: behind CRLF, behind a bare LF, inside, or behind a first dot that is held back. */
  #at: "line_start" | "bare_line_start" | "inside" | "dot" | "bare_dot" | "dot_cr" = "line_start";
  #endsWithCr = false;

  /** Gives decoded pieces to `onPiece`. Returns what follows the content once it has ended, else null. */
  push(chunk: Uint8Array, onPiece: (piece: Uint8Array) => void): Uint8Array | null {
    let from = 0;
    const emit = (to: number) => {
      if (to > from) onPiece(chunk.subarray(from, to));
    };
    for (let next = 0; next < chunk.length;) {
      const byte = chunk[next];
      switch (this.#at) {
        case "inside":
          next = this.#findLineStart(chunk, next);
          break;
        case "line_start":
        case "bare_line_start":
          if (byte !== DOT) this.#at = "inside";
          else {
            this.#at = this.#at === "line_start" ? "dot" : "bare_dot";
            next++;
          }
          break;
        case "dot":
        case "bare_dot":
          if (this.#at === "dot" && byte === CR) {
            this.#at = "dot_cr";
            next++;
            break;
          }
          // Of two dots the first is the stuffing. A single one is content, which was held back if it ended the last chunk.
          if (byte === DOT) {
            emit(next - 1);
            from = next++;
          } else if (next === 0) onPiece(HELD.subarray(0, 1));
          this.#resume(false);
          break;
        case "dot_cr":
          if (byte === LF) {
            emit(next - HELD.length);
            return chunk.subarray(next + 1);
          }
          if (next < HELD.length) onPiece(HELD.subarray(0, HELD.length - next));
          this.#resume(true);
          break;
        default:
          this.#at satisfies never;
      }
    }
    emit(chunk.length - this.#heldBytes);
    return null;
  }

  /** Bytes at the end of a chunk whose meaning depends on the next one. */
  get #heldBytes(): number {
    if (this.#at === "dot_cr") return HELD.length;
    return this.#at === "dot" || this.#at === "bare_dot" ? 1 : 0;
  }

  #resume(endsWithCr: boolean): void {
    this.#at = "inside";
    this.#endsWithCr = endsWithCr;
  }

  /** The offset behind the next LF, or the end of the chunk. */
  #findLineStart(chunk: Uint8Array, from: number): number {
    const lf = chunk.indexOf(LF, from);
    if (lf === -1) {
      this.#endsWithCr = chunk[chunk.length - 1] === CR;
      return chunk.length;
    }
    const isBare = lf > 0 ? chunk[lf - 1] !== CR : !this.#endsWithCr;
    this.#at = isBare ? "bare_line_start" : "line_start";
    this.#endsWithCr = false;
    return lf + 1;
  }
}
