import { connect as connectTcp, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";

/** A client that says what a test tells it, byte for byte, and hears whole replies. */
export interface SmtpTestClient {
  /** Sends bytes as they are; text is latin1, so that every character is one byte. */
  say(raw: string | Uint8Array): void;
  /** The next reply, its lines joined by LF without line ends; `"closed"` when the connection ends before. */
  hear(): Promise<string>;
  /** `say` with CRLF, then `hear`. */
  ask(line: string): Promise<string>;
  /** Asks each line in turn; answers the replies' first four characters joined by spaces. */
  codes(...lines: readonly string[]): Promise<string>;
  /** Sends STARTTLS with raw bytes behind it in the same packet, and shakes hands after 220. */
  startTls(behind?: string): Promise<string>;
  /** Resolves when the other side has closed. */
  closed(): Promise<void>;
  /** Resolves when the kernel has taken all that was said. */
  flushed(): Promise<void>;
  /** Closes (FIN) our side. */
  end(): void;
  /** Tears the connection down. */
  destroy(): void;
}

const LAST_LINE = /^\d{3}(?: .*)?$/;

/** Connects to a mail server on loopback. */
export const connectSmtp = (port: number, host = "127.0.0.1"): SmtpTestClient => {
  let socket: Socket = connectTcp({ port, host, noDelay: true });
  let text = "";
  let isClosed = false;
  const replies: string[] = [];
  const waiting: Array<(reply: string) => void> = [];
  const closing: Array<() => void> = [];

  const deliver = () => {
    for (let end = endOfReply(text); end > 0; end = endOfReply(text)) {
      replies.push(text.slice(0, end).trimEnd().replaceAll("\r\n", "\n"));
      text = text.slice(end);
    }
    while (waiting.length > 0 && (replies.length > 0 || isClosed)) waiting.shift()?.(replies.shift() ?? "closed");
  };
  const onData = (chunk: Uint8Array) => {
    text += Buffer.from(chunk).toString("latin1");
    deliver();
  };
  const onClose = () => {
    isClosed = true;
    deliver();
    for (const resolve of closing.splice(0)) resolve();
  };
  const attach = (to: Socket) => {
    to.on("data", onData);
    to.on("error", () => undefined);
    to.on("close", onClose);
  };
  attach(socket);

  const talk: SmtpTestClient = {
    say: (raw) => void socket.write(typeof raw === "string" ? Buffer.from(raw, "latin1") : raw),
    hear: () =>
      new Promise((resolve) => {
        waiting.push(resolve);
        deliver();
      }),
    ask(line) {
      talk.say(`${line}\r\n`);
      return talk.hear();
    },
    async codes(...lines) {
      const codes: string[] = [];
      for (const line of lines) codes.push((await talk.ask(line)).slice(0, 3));
      return codes.join(" ");
    },
    async startTls(behind = "") {
      talk.say(`STARTTLS\r\n${behind}`);
      const reply = await talk.hear();
      if (!reply.startsWith("220")) return reply;
      const plain = socket;
      plain.off("data", onData);
      const secure = connectTls({ socket: plain, rejectUnauthorized: false });
      await new Promise<void>((resolve) => {
        secure.once("secureConnect", () => resolve());
        secure.once("close", () => resolve());
      });
      socket = secure;
      attach(secure);
      return reply;
    },
    closed: () =>
      new Promise((resolve) => {
        if (isClosed) resolve();
        else closing.push(resolve);
      }),
    flushed: () => new Promise((resolve) => socket.write("", () => resolve())),
    end: () => void socket.end(),
    destroy: () => void socket.destroy(),
  };
  return talk;
};

/** The offset behind the last line of the first whole reply (RFC 5321 §4.2.1), 0 when there is none yet. */
const endOfReply = (text: string): number => {
  let start = 0;
  for (let end = text.indexOf("\r\n"); end !== -1; end = text.indexOf("\r\n", start)) {
    if (LAST_LINE.test(text.slice(start, end))) return end + 2;
    start = end + 2;
  }
  return 0;
};
