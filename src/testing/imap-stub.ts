import { afterEach } from "bun:test";
import type { Socket, TCPSocketListener } from "bun";

/** What a stub does with a command other than answering it. */
export type ImapFault = "hang" | "close" | { readonly send: string };

export interface ImapStubOptions {
  readonly greeting?: string;
  readonly capabilities?: string;
  readonly tls?: { readonly key: string; readonly cert: string };
  /** Called before each command (without its tag, in upper case except its arguments); undefined sends the normal response. */
  readonly fault?: (command: string, tag: string) => ImapFault | undefined;
}

interface StubMessage {
  readonly uid: number;
  readonly source: string;
  flags: string;
}

interface Connection {
  text: string;
  isIdle: string | null;
  /** What the socket has not taken yet. */
  unsent: Uint8Array;
}

const TEXT = new TextEncoder();

/** Sends all of it, as the socket takes it. */
const send = (socket: Socket<Connection>, text: string): void => {
  const bytes = Buffer.concat([socket.data.unsent, TEXT.encode(text)]);
  socket.data.unsent = bytes.subarray(Math.max(0, socket.write(bytes)));
};

/** Whether a number is in a sequence set. */
const inSet = (set: string, number: number, last: number): boolean =>
  set.split(",").some((part) => {
    const [from = "", to = from] = part.split(":");
    const ends = [from, to].map((end) => (end === "*" ? last : Number(end)));
    return number >= Math.min(...ends) && number <= Math.max(...ends);
  });

/** An IMAP server on loopback with one folder of messages (RFC 9051, as far as Postwarden uses it). The user is `user`, the password `secret`. */
export class ImapStub {
  readonly messages: StubMessage[] = [];
  readonly moved: number[] = [];
  /** Every command that came, without its tag. */
  readonly commands: string[] = [];
  uidValidity = 7;
  #nextUid = 1;
  readonly #waiting: { readonly pattern: RegExp; readonly times: number; resolve(): void }[] = [];
  #onAlone: () => void = () => undefined;
  readonly #sockets = new Set<Socket<Connection>>();
  readonly #server: TCPSocketListener<Connection>;

  constructor(private readonly options: ImapStubOptions) {
    this.#server = Bun.listen<Connection>({
      hostname: "127.0.0.1",
      port: 0,
      ...(options.tls === undefined ? {} : { tls: options.tls }),
      socket: {
        open: (socket) => {
          socket.data = { text: "", isIdle: null, unsent: new Uint8Array() };
          this.#sockets.add(socket);
          send(socket, `${options.greeting ?? "* OK stub"}\r\n`);
        },
        data: (socket, bytes) => this.#read(socket, bytes),
        drain: (socket) => send(socket, ""),
        close: (socket) => {
          this.#sockets.delete(socket);
          if (this.#sockets.size === 0) this.#onAlone();
        },
        error: () => undefined,
      },
    });
  }

  get port(): number {
    return this.#server.port;
  }

  /** Delivers a message; connections in IDLE are notified. */
  deliver(source: string, uid = this.#nextUid): number {
    this.messages.push({ uid, source, flags: "" });
    this.#nextUid = Math.max(this.#nextUid, uid + 1);
    for (const socket of this.#sockets) {
      if (socket.data.isIdle !== null) send(socket, `* ${this.messages.length} EXISTS\r\n`);
    }
    return uid;
  }

  /** Sends a text to all connections. */
  shout(text: string): void {
    for (const socket of this.#sockets) send(socket, text);
  }

  /** Resolves when nobody is connected. */
  async untilAlone(): Promise<void> {
    if (this.#sockets.size > 0) await new Promise<void>((resolve) => (this.#onAlone = resolve));
  }

  /** Ends all connections. */
  drop(): void {
    for (const socket of this.#sockets) socket.end();
  }

  /** Resolves when so many commands came that a pattern fits. */
  until(pattern: RegExp, times = 1): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push({ pattern, times, resolve });
      this.#notifyWaiting();
    });
  }

  stop(): void {
    this.#server.stop(true);
  }

  #notifyWaiting(): void {
    for (const { pattern, times, resolve } of this.#waiting) {
      if (this.commands.filter((command) => pattern.test(command)).length >= times) resolve();
    }
  }

  #read(socket: Socket<Connection>, bytes: Uint8Array): void {
    const connection = socket.data;
    connection.text += new TextDecoder().decode(bytes);
    for (let end = connection.text.indexOf("\r\n"); end !== -1; end = connection.text.indexOf("\r\n")) {
      const line = connection.text.slice(0, end);
      connection.text = connection.text.slice(end + 2);
      this.#execute(socket, line);
    }
  }

  #execute(socket: Socket<Connection>, line: string): void {
    if (socket.data.isIdle !== null) {
      send(socket, `${socket.data.isIdle} OK idle ended\r\n`);
      socket.data.isIdle = null;
      return;
    }
    const [tag = "", ...words] = line.split(" ");
    const command = words.join(" ");
    this.commands.push(command);
    const fault = this.options.fault?.(command, tag);
    if (fault === "close") socket.end();
    else if (fault === undefined) {
      if (command === "IDLE") socket.data.isIdle = tag;
      send(socket, command === "IDLE" ? "+ idling\r\n" : this.#answer(command, tag));
    } else if (fault !== "hang") send(socket, fault.send);
    this.#notifyWaiting();
  }

  #answer(command: string, tag: string): string {
    const capabilities = this.options.capabilities ?? "IMAP4rev1 IDLE MOVE UIDPLUS";
    const done = `${tag} OK done\r\n`;
    const [, verb = "", set = "", rest = ""] = /^(UID \w+|\w+)(?: (\S+))?(?: (.*))?$/.exec(command) ?? [];
    const chosen = this.#chosen(set);
    switch (verb) {
      case "CAPABILITY":
        return `* CAPABILITY ${capabilities}\r\n${done}`;
      case "LOGIN":
        return /^"?user"? "?secret"?$/.test(`${set} ${rest}`)
          ? done
          : `${tag} NO [AUTHENTICATIONFAILED] Wrong password\r\n`;
      case "LIST":
        if (rest === '""') return `* LIST (\\Noselect) "/" ""\r\n${done}`;
        return `* LIST () "/" INBOX\r\n* LIST () "/" "Old reports"\r\n${done}`;
      case "SELECT":
      case "EXAMINE":
        if (set.replaceAll('"', "") !== "INBOX") return `${tag} NO [NONEXISTENT] No such folder\r\n`;
        return [
          `* ${this.messages.length} EXISTS\r\n* FLAGS (\\Seen \\Deleted)\r\n* OK [PERMANENTFLAGS (\\Seen \\Deleted)] flags\r\n`,
          `* OK [UIDVALIDITY ${this.uidValidity}] valid\r\n* OK [UIDNEXT ${this.#nextUid}] next\r\n`,
          `${tag} OK [READ-${verb === "SELECT" ? "WRITE" : "ONLY"}] open\r\n`,
        ].join("");
      case "UID SEARCH":
        return `* SEARCH ${this.#chosen(rest || set.replace("UID", ""))
          .map(({ uid }) => uid)
          .join(" ")}\r\n${done}`;
      case "FETCH":
        return `${this.messages
          .filter((_, at) => inSet(set, at + 1, this.messages.length))
          .map((message) => this.#fetched(message, rest))
          .join("")}${done}`;
      case "UID FETCH":
        return `${chosen.map((message) => this.#fetched(message, rest)).join("")}${done}`;
      case "UID STORE":
        for (const message of chosen) message.flags = /\(([^)]*)\)/.exec(rest)?.[1] ?? "";
        return done;
      case "UID MOVE":
        for (const message of chosen)
          this.moved.push(this.messages.splice(this.messages.indexOf(message), 1)[0]?.uid ?? 0);
        return done;
      default:
        return done;
    }
  }

  #fetched(message: StubMessage, items: string): string {
    const at = this.messages.indexOf(message) + 1;
    const { uid, source } = message;
    const body = items.includes("BODY") ? ` BODY[]<0> {${TEXT.encode(source).byteLength}}\r\n${source}` : "";
    const date = items.includes("INTERNALDATE") ? ' INTERNALDATE "01-Jan-2026 10:00:00 +0000"' : "";
    return `* ${at} FETCH (UID ${uid} RFC822.SIZE ${source.length}${date}${body})\r\n`;
  }

  /** The messages of a UID set; of `n:*` the last one in any case, as the RFC has it. */
  #chosen(set: string): StubMessage[] {
    const last = this.messages.at(-1)?.uid ?? 0;
    return this.messages.filter(({ uid }) => inSet(set, uid, last));
  }
}

/** Starts IMAP servers for the tests of one file, and stops them after each test. */
export const createImapStubs = (): ((options?: ImapStubOptions) => ImapStub) => {
  const started: ImapStub[] = [];
  afterEach(() => {
    for (const stub of started.splice(0)) stub.stop();
  });
  return (options = {}) => {
    const stub = new ImapStub(options);
    started.push(stub);
    return stub;
  };
};
