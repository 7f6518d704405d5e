/** A client that says what it is told to say, line by line: for refusals, and for loads of mails. */
import { connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";

const REPLY_MS_MAX = 60_000;
const LAST_LINE = /^(\d{3}) .*$/m;

export interface Place {
  readonly ip: string;
  readonly port: number;
}

export interface Reply {
  readonly code: number;
  readonly text: string;
}

/** One connection. Everything rejects when it breaks. */
export interface Talk {
  /** The next whole reply. */
  read(): Promise<Reply>;
  /** Resolves when the bytes have left, or rejects when nobody wants them any more. */
  write(bytes: string | Uint8Array): Promise<void>;
  say(line: string): Promise<Reply>;
  /** STARTTLS has been answered: goes on inside TLS; answers its version. */
  secure(): Promise<string>;
  end(): void;
}

interface Waiter {
  readonly resolve: (reply: Reply) => void;
  readonly reject: (error: Error) => void;
}

/** Puts lines together to replies, and hands them out in order. */
const createReplies = () => {
  const ready: Reply[] = [];
  const waiting: Waiter[] = [];
  let text = "";
  let broken: Error | null = null;
  return {
    take(chunk: Buffer): void {
      text += chunk.toString("latin1");
      for (let end = LAST_LINE.exec(text); end !== null && text.includes("\n", end.index); end = LAST_LINE.exec(text)) {
        const length = text.indexOf("\n", end.index) + 1;
        const reply = { code: Number(end[1]), text: text.slice(0, length).trimEnd() };
        text = text.slice(length);
        const waiter = waiting.shift();
        if (waiter === undefined) ready.push(reply);
        else waiter.resolve(reply);
      }
    },
    fail(error: Error): void {
      broken ??= error;
      for (const waiter of waiting.splice(0)) waiter.reject(broken);
    },
    next(): Promise<Reply> {
      const reply = ready.shift();
      if (reply !== undefined) return Promise.resolve(reply);
      if (broken !== null) return Promise.reject(broken);
      const { promise, resolve, reject } = Promise.withResolvers<Reply>();
      waiting.push({ resolve, reject });
      return promise;
    },
  };
};

/** Connects; the banner is the first reply. */
export const openTalk = async ({ ip, port }: Place): Promise<Talk> => {
  const replies = createReplies();
  const listen = (each: Socket): void => {
    each.on("data", (chunk: Buffer) => replies.take(chunk));
    each.on("error", (error) => replies.fail(error));
    each.on("close", () => replies.fail(new Error("the connection was closed")));
    each.setTimeout(REPLY_MS_MAX, () => each.destroy(new Error("no reply in time")));
  };
  let socket: Socket = connect({ host: ip, port, noDelay: true });
  listen(socket);
  const opened = Promise.withResolvers<void>();
  socket.once("connect", () => opened.resolve());
  socket.once("error", opened.reject);
  await opened.promise;
  const write = (bytes: string | Uint8Array): Promise<void> => {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    socket.write(bytes, (error) => (error ? reject(error) : resolve()));
    return promise;
  };
  return {
    read: replies.next,
    write,
    say: async (line) => {
      await write(`${line}\r\n`);
      return replies.next();
    },
    secure: async () => {
      const { promise, resolve, reject } = Promise.withResolvers<string>();
      socket.removeAllListeners("data");
      const secured = connectTls({ socket, rejectUnauthorized: false }, () => resolve(secured.getProtocol() ?? ""));
      secured.once("error", reject);
      listen(secured);
      socket = secured;
      return promise;
    },
    end: () => {
      socket.on("error", () => undefined);
      socket.destroy();
    },
  };
};

/** A mail to bring somewhere; `bytes` end in CRLF and no line begins with a dot. */
export interface Parcel {
  readonly from: string;
  readonly to: string;
  readonly bytes: Uint8Array;
}

/** Says hello. */
export const greet = async (talk: Talk, name = "mail.reporters-lab.net"): Promise<void> => {
  await talk.read();
  const { code, text } = await talk.say(`EHLO ${name}`);
  if (code !== 250) throw new Error(`EHLO was answered with ${text}`);
};

/** Brings one mail over an open connection, commands in one group (RFC 2920); answers the reply that decided. */
export const bring = async (talk: Talk, { from, to, bytes }: Parcel): Promise<Reply> => {
  await talk.write(`MAIL FROM:<${from}>\r\nRCPT TO:<${to}>\r\nDATA\r\n`);
  const replies = [await talk.read(), await talk.read(), await talk.read()];
  const refused = replies.find(({ code }) => code >= 400);
  if (refused !== undefined) {
    // A server may still wait for the text although no recipient is left.
    if (replies[2]?.code === 354) await talk.say(".");
    await talk.say("RSET");
    return refused;
  }
  await talk.write(Buffer.concat([bytes, Buffer.from(".\r\n")]));
  return talk.read();
};
