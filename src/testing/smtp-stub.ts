import type { Socket } from "bun";
import { TEST_CERTIFICATE, TEST_KEY } from "./smtp-stub-key.ts";

/**
 * What a stub says to a command: text (one reply, its line end is added), or raw bytes, and perhaps the end of the
 * connection. A promise delays this reply, and all later ones of the connection, until it is resolved.
 */
export type StubAnswer = string | { readonly raw: string; readonly ending?: "close" | "reset" | "hang" };
type Answering = StubAnswer | Promise<StubAnswer>;

/** Says nothing, for ever, to this command and those after it. */
export const SILENCE: StubAnswer = { raw: "", ending: "hang" };
/** Does not reply to this command. */
export const NO_REPLY: StubAnswer = { raw: "" };
/** Closes (FIN) without a word. */
export const HANG_UP: StubAnswer = { raw: "", ending: "close" };
/** Tears the connection down (RST) without a word. */
export const RESET: StubAnswer = { raw: "", ending: "reset" };

/** How the stub behaves; everything has a friendly default: it offers PIPELINING, 8BITMIME, SMTPUTF8, accepts all. */
export interface SmtpStubScript {
  /** Listen here, default 127.0.0.1; other 127.0.0.x addresses and ::1 do as well. */
  readonly hostname?: string;
  /** Default 0: any. Give a first stub's port to a second one on another address to have two hosts of one domain. */
  readonly port?: number;
  readonly banner?: (session: StubSession) => Answering;
  /** The keywords offered, without STARTTLS, which `starttls` adds in clear text. */
  readonly ehlo?: readonly string[];
  readonly mail?: (address: string, session: StubSession) => Answering;
  /** `nth` counts the recipients of this connection, from 0. */
  readonly rcpt?: (address: string, nth: number, session: StubSession) => Answering;
  /** The first word on every command, before the behaviours above: undefined leaves it to them. */
  readonly command?: (line: string, session: StubSession) => Answering | undefined;
  /**
   * `works`: a real handshake; `broken`: 220, then no TLS; `inject`: 220 with a reply in clear text behind it (RFC
   * 3207 §6) and a real handshake; `refused`: 454.
   */
  readonly starttls?: "works" | "broken" | "inject" | "refused";
  /** Send the output one byte at a time. */
  readonly dribble?: boolean;
}

/** One connection, as the stub saw it. */
export interface StubSession {
  /** From 0, in the order of arrival. */
  readonly id: number;
  readonly remoteAddress: string;
  /** Every line received, without its line end. */
  readonly lines: string[];
  /** How often the client had to wait for us: the banner is one, each batch of commands that arrived is one. */
  turns: number;
  tls: boolean;
  closed: boolean;
  /** Sends unsolicited text unchanged. */
  push(raw: string): void;
}

export interface SmtpStub {
  readonly hostname: string;
  readonly port: number;
  readonly sessions: readonly StubSession[];
  /** Resolves when a line that begins with `prefix` has arrived `times` times, over all connections. */
  received(prefix: string, times?: number): Promise<void>;
  /** Resolves when the connection with this id has reached `count` turns. */
  turns(id: number, count: number): Promise<void>;
  /** Resolves when `count` connections have been opened. */
  opened(count?: number): Promise<void>;
  /** Resolves when at least `count` connections were opened and all are closed. */
  allClosed(count?: number): Promise<void>;
  stop(): void;
}

/** Starts a scripted SMTP server on loopback. Stop it when done; that ends its connections too. */
export const startSmtpStub = (script: SmtpStubScript = {}): SmtpStub => {
  const sessions: Connection[] = [];
  const watchers = new Set<() => void>();
  const changed = () => {
    for (const check of watchers) check();
  };
  const until = (isSo: () => boolean): Promise<void> =>
    new Promise((resolve) => {
      const check = () => {
        if (!isSo()) return;
        watchers.delete(check);
        resolve();
      };
      watchers.add(check);
      check();
    });
  const countLines = (prefix: string) =>
    sessions.reduce((sum, session) => sum + session.lines.filter((line) => line.startsWith(prefix)).length, 0);

  const listener = Bun.listen<Connection | null>({
    hostname: script.hostname ?? "127.0.0.1",
    port: script.port ?? 0,
    data: null,
    socket: {
      open(socket) {
        const connection = new Connection(sessions.length, { socket, script, changed });
        socket.data = connection;
        sessions.push(connection);
        connection.greet();
        changed();
      },
      data: (socket, chunk) => socket.data?.receiveClear(chunk),
      drain: (socket) => socket.data?.flush(),
      close: (socket) => socket.data?.onClosed(),
      error: (socket) => socket.data?.onClosed(),
    },
  });
  return {
    hostname: listener.hostname,
    port: listener.port,
    sessions,
    received: (prefix, times = 1) => until(() => countLines(prefix) >= times),
    turns: (id, count) => until(() => (sessions[id]?.turns ?? 0) >= count),
    opened: (count = 1) => until(() => sessions.length >= count),
    allClosed: (count = 1) => until(() => sessions.length >= count && sessions.every((session) => session.closed)),
    stop: () => listener.stop(true),
  };
};

interface ConnectionDeps {
  readonly socket: Socket<Connection | null>;
  readonly script: SmtpStubScript;
  readonly changed: () => void;
}

class Connection implements StubSession {
  readonly remoteAddress: string;
  readonly lines: string[] = [];
  turns = 0;
  tls: boolean = false;
  closed: boolean = false;
  private socket: Socket<Connection | null>;
  private readonly script: SmtpStubScript;
  private readonly changed: () => void;
  private partial = "";
  private readonly queue: (() => Answering | null)[] = [];
  private busy: boolean = false;
  private recipients = 0;
  private out = Buffer.alloc(0);
  private ending: "close" | "reset" | "hang" | null = null;
  private dribbling: boolean = false;

  constructor(
    readonly id: number,
    { socket, script, changed }: ConnectionDeps,
  ) {
    this.socket = socket;
    this.script = script;
    this.changed = changed;
    this.remoteAddress = socket.remoteAddress;
  }

  greet(): void {
    this.turns++;
    this.queue.push(() => this.script.banner?.(this) ?? "220 stub.example ESMTP");
    void this.work();
  }

  push(raw: string): void {
    this.say({ raw });
    this.flush();
  }

  receiveClear(chunk: Uint8Array): void {
    // After STARTTLS the plain socket still gets the ciphertext.
    if (!this.tls) this.receive(chunk);
  }

  onClosed(): void {
    this.closed = true;
    this.changed();
  }

  /** Writes what the kernel accepts; the remaining bytes wait for `drain`. */
  flush(): void {
    if (this.script.dribble && this.out.length > 0) {
      if (!this.dribbling) void this.dribble();
      return;
    }
    if (this.out.length > 0) {
      const written = this.socket.write(this.out);
      this.out = written < 0 ? Buffer.alloc(0) : this.out.subarray(written);
    }
    if (this.out.length > 0 || this.ending === null) return;
    if (this.ending === "close") this.socket.end();
    else if (this.ending === "reset") this.socket.terminate();
  }

  private async dribble(): Promise<void> {
    this.dribbling = true;
    for (; this.out.length > 0 && !this.closed; this.out = this.out.subarray(1)) {
      this.socket.write(this.out.subarray(0, 1));
      await new Promise<void>((resolve) => setImmediate(resolve));
    }
    this.dribbling = false;
    this.flush();
  }

  private receive(chunk: Uint8Array): void {
    this.turns++;
    const lines = (this.partial + Buffer.from(chunk).toString("utf8")).split("\r\n");
    this.partial = lines.pop() ?? "";
    this.lines.push(...lines);
    for (const line of lines) this.queue.push(() => this.answer(line));
    this.changed();
    void this.work();
  }

  private async work(): Promise<void> {
    if (this.busy) return;
    this.busy = true;
    for (let next = this.queue.shift(); next && this.ending === null; next = this.queue.shift()) {
      const answer = next();
      if (answer instanceof Promise) this.flush();
      if (answer !== null) this.say(answer instanceof Promise ? await answer : answer);
    }
    this.busy = false;
    this.flush();
  }

  private say(answer: StubAnswer): void {
    const raw = typeof answer === "string" ? `${answer}\r\n` : answer.raw;
    this.out = Buffer.concat([this.out, Buffer.from(raw)]);
    if (typeof answer !== "string") this.ending = answer.ending ?? this.ending;
  }

  private answer(line: string): Answering | null {
    const scripted = this.script.command?.(line, this);
    if (scripted !== undefined) return scripted;
    const [verb = "", rest = ""] = line.split(/[ :]/, 2);
    const address = /<(.*)>/.exec(line)?.[1] ?? rest;
    switch (verb.toUpperCase()) {
      case "EHLO":
        return multiline(["stub.example", ...this.offers()]);
      case "MAIL":
        return this.script.mail?.(address, this) ?? "250 2.1.0 Ok";
      case "RCPT":
        return this.script.rcpt?.(address, this.recipients++, this) ?? "250 2.1.5 Ok";
      case "STARTTLS":
        return this.startTls();
      case "QUIT":
        return { raw: "221 2.0.0 Bye\r\n", ending: "close" };
      case "HELO":
      case "RSET":
      case "NOOP":
        return "250 2.0.0 Ok";
      default:
        return "502 5.5.2 Error: command not recognized";
    }
  }

  private offers(): readonly string[] {
    const keywords = this.script.ehlo ?? ["PIPELINING", "8BITMIME", "SMTPUTF8"];
    return this.script.starttls && !this.tls ? [...keywords, "STARTTLS"] : keywords;
  }

  private startTls(): Answering | null {
    const go = "220 2.0.0 Ready to start TLS\r\n";
    if (this.script.starttls === "refused") return "454 4.7.0 TLS not available";
    if (this.script.starttls === "broken") return { raw: `${go}this is no TLS record at all\r\n` };
    this.flush();
    this.socket.write(this.script.starttls === "inject" ? `${go}250 2.0.0 injected\r\n` : go);
    this.tls = true;
    const [, secure] = this.socket.upgradeTLS<Connection | null>({
      data: this,
      tls: { key: TEST_KEY, cert: TEST_CERTIFICATE },
      socket: {
        data: (_socket, chunk) => this.receive(chunk),
        drain: () => this.flush(),
        close: () => this.onClosed(),
        error: () => this.onClosed(),
      },
    });
    this.socket = secure;
    return null;
  }
}

const multiline = (lines: readonly string[]): string =>
  lines.map((line, index) => `250${index === lines.length - 1 ? " " : "-"}${line}`).join("\r\n");
