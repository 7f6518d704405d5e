import type { Socket } from "node:net";
import { type SecureContext, TLSSocket } from "node:tls";

/** More unread bytes than this, and the client has to wait until they are read. */
const UNREAD_BYTES_MAX = 64 * 1024;
const LF = 10;

/**
 * The server's end of an SMTP connection: reads command lines and contents one after the other, and sends replies.
 * When the connection ends, reads end with null or false, and `onClosed` is called exactly once.
 */
export class SmtpServerSocket {
  isTls: boolean = false;
  #stream: Socket;
  #unread: Uint8Array[] = [];
  #unreadBytes = 0;
  #state: "open" | "upgrading" | "finished" | "closed" = "open";
  #wake: () => void = () => undefined;

  constructor(
    socket: Socket,
    private readonly onClosed: () => void,
  ) {
    this.#stream = socket;
    this.#attach(socket);
  }

  /** The next command line as UTF-8, without its line end; null when nothing more is read. */
  async readLine(bytesMax: number): Promise<string | "too_long" | null> {
    const pieces: Uint8Array[] = [];
    let bytes = 0;
    // A client that does not read its replies gets no more of them.
    while (this.#state === "open" && this.#stream.writableNeedDrain) await this.#change();
    for (let chunk = await this.#read(); chunk !== null; chunk = await this.#read()) {
      const end = chunk.indexOf(LF);
      const piece = end === -1 ? chunk : chunk.subarray(0, end);
      bytes += piece.length;
      if (bytes > bytesMax) return "too_long";
      pieces.push(piece);
      if (end === -1) continue;
      this.#putBack(chunk.subarray(end + 1));
      return Buffer.concat(pieces).toString("utf8").replace(/\r$/, "");
    }
    return null;
  }

  /** Reads the content of a mail piece by piece (see `ContentDecoder`). False when the connection ends before it does, such as by `onPiece`. */
  async readContent(onPiece: (piece: Uint8Array) => void): Promise<boolean> {
    const decoder = new ContentDecoder();
    for (let chunk = await this.#read(); chunk !== null; chunk = await this.#read()) {
      const rest = decoder.push(chunk, onPiece);
      if (this.#state !== "open") return false;
      if (rest === null) continue;
      this.#putBack(rest);
      return true;
    }
    return false;
  }

  /** Sends a whole reply, line ends included. */
  write(reply: string): void {
    if (this.#state === "open") this.#stream.write(reply);
  }

  /** Sends a last reply and closes our side. Nothing more is read. During a TLS handshake it closes immediately. */
  finish(reply: string): void {
    if (this.#state === "upgrading") this.destroy();
    if (this.#state !== "open") return;
    this.#stop("finished");
    this.#stream.end(reply);
    this.#stream.resume();
  }

  /** Closes immediately and frees the descriptor, in every state. */
  destroy(): void {
    this.#stream.destroy();
    this.#close();
  }

  /**
   * Sends `reply`, then shakes hands as the server; false when that fails, and the connection is closed. Clear text of the
   * client behind STARTTLS is dropped, because an attacker may have put it there (RFC 3207 §6).
   */
  startTls(reply: string, secureContext: SecureContext): Promise<boolean> {
    if (this.#state !== "open") return Promise.resolve(false);
    const plain = this.#stream;
    plain.write(reply);
    plain.off("data", this.#onData);
    this.#state = "upgrading";
    this.#unread = [];
    this.#unreadBytes = 0;
    const secure = new TLSSocket(plain, { isServer: true, secureContext });
    this.#stream = secure;
    this.#attach(secure);
    return new Promise((resolve) => {
      // Bytes that were taken wake it too, while the handshake goes on.
      this.#wake = () => void (this.#state !== "upgrading" && resolve(false));
      secure.once("secure", () => {
        if (this.#state !== "upgrading") return;
        this.#state = "open";
        this.isTls = true;
        resolve(true);
      });
      // A failed handshake ends the connection under it as well.
      secure.once("close", () => plain.destroy());
    });
  }

  #attach(stream: Socket) {
    stream.on("data", this.#onData);
    stream.on("drain", () => this.#wake());
    stream.on("error", () => this.destroy());
    stream.on("close", () => this.#close());
  }

  readonly #onData = (chunk: Uint8Array) => {
    if (this.#state !== "open") return;
    this.#unread.push(chunk);
    this.#unreadBytes += chunk.length;
    if (this.#unreadBytes > UNREAD_BYTES_MAX) this.#stream.pause();
    this.#wake();
  };

  async #read(): Promise<Uint8Array | null> {
    for (;;) {
      const chunk = this.#unread.shift();
      if (chunk !== undefined) {
        this.#unreadBytes -= chunk.length;
        if (this.#unread.length === 0 && this.#stream.isPaused()) this.#stream.resume();
        return chunk;
      }
      if (this.#state !== "open") return null;
      await this.#change();
    }
  }

  /** Resolves when bytes came, when sent ones were taken, or when the connection ends. */
  #change(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  #putBack(rest: Uint8Array) {
    if (rest.length === 0) return;
    this.#unread.unshift(rest);
    this.#unreadBytes += rest.length;
  }

  #stop(state: "finished" | "closed") {
    this.#state = state;
    this.#unread = [];
    this.#unreadBytes = 0;
    this.#wake();
  }

  #close() {
    if (this.#state === "closed") return;
    this.#stop("closed");
    this.onClosed();
  }
}

const CR = 13;
const DOT = 46;
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
  get #heldBytes() {
    if (this.#at === "dot_cr") return HELD.length;
    return this.#at === "dot" || this.#at === "bare_dot" ? 1 : 0;
  }

  #resume(endsWithCr: boolean) {
    this.#at = "inside";
    this.#endsWithCr = endsWithCr;
  }

  /** The offset behind the next LF, or the end of the chunk. */
  #findLineStart(chunk: Uint8Array, from: number) {
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
