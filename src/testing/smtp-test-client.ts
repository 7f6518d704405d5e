import { connect as connectTcp, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";

const LAST_LINE = /^\d{3}(?: .*)?$/;

/** A client that sends what a test gives it, byte for byte, and reads whole replies. */
export class SmtpTestClient {
  #socket: Socket;
  #text = "";
  #isClosed: boolean = false;
  readonly #replies: string[] = [];
  readonly #waiting: Array<(reply: string) => void> = [];
  readonly #closing: Array<() => void> = [];

  /** Connects to a mail server on loopback. */
  constructor(port: number, host = "127.0.0.1") {
    this.#socket = connectTcp({ port, host, noDelay: true });
    this.#attach();
  }

  /** Sends bytes unchanged; text is latin1, so that every character is one byte. */
  send(raw: string | Uint8Array): void {
    this.#socket.write(typeof raw === "string" ? Buffer.from(raw, "latin1") : raw);
  }

  /** The next reply, its lines joined by LF without line ends; `"closed"` when the connection ends before. */
  readReply(): Promise<string> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      this.#deliver();
    });
  }

  /** `send` with CRLF, then `readReply`. */
  command(line: string): Promise<string> {
    this.send(`${line}\r\n`);
    return this.readReply();
  }

  /** Sends each line in turn; returns the codes of the replies, joined by spaces. */
  async codes(...lines: readonly string[]): Promise<string> {
    const codes: string[] = [];
    for (const line of lines) codes.push((await this.command(line)).slice(0, 3));
    return codes.join(" ");
  }

  /** Sends STARTTLS with raw bytes behind it in the same packet, and shakes hands after 220. */
  async startTls(behind = ""): Promise<string> {
    this.send(`STARTTLS\r\n${behind}`);
    const reply = await this.readReply();
    if (!reply.startsWith("220")) return reply;
    this.#socket.off("data", this.#onData);
    this.#socket = connectTls({ socket: this.#socket, rejectUnauthorized: false });
    const secure = this.#socket;
    await new Promise<void>((resolve) => {
      secure.once("secureConnect", () => resolve());
      secure.once("close", () => resolve());
    });
    this.#attach();
    return reply;
  }

  /** Resolves when the other side has closed. */
  closed(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#isClosed) resolve();
      else this.#closing.push(resolve);
    });
  }

  /** Resolves when the kernel has taken all that was sent. */
  flushed(): Promise<void> {
    return new Promise((resolve) => this.#socket.write("", () => resolve()));
  }

  /** Closes (FIN) our side. */
  end(): void {
    this.#socket.end();
  }

  /** Tears the connection down. */
  destroy(): void {
    this.#socket.destroy();
  }

  readonly #onData = (chunk: Uint8Array): void => {
    this.#text += Buffer.from(chunk).toString("latin1");
    this.#deliver();
  };

  #attach(): void {
    this.#socket.on("data", this.#onData);
    this.#socket.on("error", () => undefined);
    this.#socket.on("close", () => {
      this.#isClosed = true;
      this.#deliver();
      for (const resolve of this.#closing.splice(0)) resolve();
    });
  }

  #deliver(): void {
    for (let end = endOfReply(this.#text); end > 0; end = endOfReply(this.#text)) {
      this.#replies.push(this.#text.slice(0, end).trimEnd().replaceAll("\r\n", "\n"));
      this.#text = this.#text.slice(end);
    }
    while (this.#waiting.length > 0 && (this.#replies.length > 0 || this.#isClosed))
      this.#waiting.shift()?.(this.#replies.shift() ?? "closed");
  }
}

/** The offset behind the last line of the first whole reply (RFC 5321 §4.2.1), 0 when there is none yet. */
const endOfReply = (text: string): number => {
  let start = 0;
  for (let end = text.indexOf("\r\n"); end !== -1; end = text.indexOf("\r\n", start)) {
    if (LAST_LINE.test(text.slice(start, end))) return end + 2;
    start = end + 2;
  }
  return 0;
};
