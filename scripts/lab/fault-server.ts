import { EHLO, FAULTY, GREETING, type Reply, type Script, onlyAlice } from "./fault-scripts.ts";
import { type FaultHost, SMTP_PORT, addressOf } from "./hosts.ts";

const LONG_LINE_CHARACTERS = 50_000;
const MEGABYTE = 1_048_576;
const DRIP_EVERY_MS = 1000;
const LINE_EVERY_MS = 300;
const FLOOD_LINES = 200;

const BANNER_LINE = "220-welcome to a host that likes to talk about itself at length\n";
const MEGABANNER = BANNER_LINE.repeat(Math.ceil(MEGABYTE / BANNER_LINE.length)) + GREETING;
const NOT_A_REPLY = "\0".repeat(2000);

const rcpt = (answer: Script["replies"]): Script => ({ banner: GREETING, replies: { EHLO, ...answer } });

/** Speaks clear text on after it promised TLS: whatever it says then must not be believed. */
const INJECTED = ["220 2.0.0 Ready to start TLS", EHLO, "250 2.1.0 Ok", "250 2.1.5 Ok", "550 5.1.1 No such user here"];

/** Servers that are broken or mean harm. */
const HOSTILE: Readonly<Partial<Record<FaultHost, Script>>> = {
  silent: { deaf: true },
  silenttoo: { deaf: true },
  mutercpt: rcpt({ RCPT: {} }),
  bannerdrip: { banner: { flood: "2", everyMs: DRIP_EVERY_MS }, deaf: true },
  ehlodrip: { banner: GREETING, replies: { EHLO: { flood: "250-X-MORE\n", everyMs: LINE_EVERY_MS } } },
  ehloendless: { banner: GREETING, replies: { EHLO: { flood: "250-X-MORE\n".repeat(FLOOD_LINES) } } },
  rcptendless: rcpt({ RCPT: { flood: "250-2.1.5 Ok\n".repeat(FLOOD_LINES) } }),
  longline: rcpt({ RCPT: `250 2.1.5 ${"k".repeat(LONG_LINE_CHARACTERS)}` }),
  megabanner: { banner: MEGABANNER, replies: { EHLO, RCPT: onlyAlice } },
  nuls: { banner: NOT_A_REPLY, replies: { EHLO, RCPT: onlyAlice } },
  garbage: { banner: { text: "HTTP/1.1 400 Bad Request\nContent-Type: text/html\n\n<html>", ends: "drop" } },
  ssh: { banner: "SSH-2.0-OpenSSH_9.2p1 Debian-2", deaf: true },
  drops: rcpt({ RCPT: { ends: "drop" } }),
  resets: rcpt({ RCPT: { fragment: "250 2.1", ends: "reset" } }),
  closeseach: { banner: GREETING, replies: { EHLO: { text: EHLO, ends: "drop" } } },
  quitless: rcpt({ RCPT: onlyAlice, QUIT: {} }),
  injects: {
    banner: GREETING,
    replies: {
      EHLO: `${EHLO.replace("250 ", "250-")}\n250 STARTTLS`,
      STARTTLS: INJECTED.join("\n"),
      MAIL: "530 5.7.0 Must issue a STARTTLS command first",
      RCPT: "530 5.7.0 Must issue a STARTTLS command first",
    },
  },
  code999: rcpt({ RCPT: "999 9.9.9 What a code" }),
  code354: rcpt({ RCPT: "354 Go ahead" }),
  nocode: rcpt({ RCPT: "User unknown, I think" }),
  unaskedbanner: { banner: `${GREETING}\n550 5.1.1 No such user here`, replies: { EHLO, RCPT: onlyAlice } },
  unaskedehlo: { banner: GREETING, replies: { EHLO: `${EHLO}\n550 5.1.1 No such user here`, RCPT: onlyAlice } },
  unaskedmail: rcpt({ MAIL: "250 2.1.0 Ok\n250 2.1.5 Ok", RCPT: "550 5.1.1 No such user here" }),
  unaskedno: rcpt({ MAIL: "250 2.1.0 Ok\n550 5.1.1 No such user here", RCPT: onlyAlice }),
  muterset: rcpt({ RCPT: onlyAlice, RSET: {} }),
  everything: { banner: GREETING, replies: { QUIT: "250 Whatever you say" } },
};

/** Bytes of one command that the fault server keeps before it hangs up. */
const LINE_BYTES_MAX = 4096;
/** How long to wait before writing on when the other side does not read. */
const DRAIN_PAUSE_MS = 5;
/** What a flood may send in all, so that a client that never hangs up does not keep the lab busy. */
const FLOOD_BYTES_MAX = 512 * 1024 * 1024;

interface Talk {
  pending: string;
  open: boolean;
  /** How often each verb was heard. */
  readonly heard: Map<string, number>;
  /** Replies leave one after the other, also when they are slow. */
  sending: Promise<void>;
}

type Peer = Bun.Socket<Talk>;

const write = async (socket: Peer, bytes: Uint8Array): Promise<void> => {
  for (let sent = 0; sent < bytes.length && socket.data.open;) {
    sent += Math.max(0, socket.write(bytes.subarray(sent)));
    if (sent < bytes.length) await Bun.sleep(DRAIN_PAUSE_MS);
  }
};

const flood = async (socket: Peer, chunk: Uint8Array, everyMs: number): Promise<void> => {
  for (let sent = 0; sent < FLOOD_BYTES_MAX && socket.data.open; sent += chunk.length) {
    await write(socket, chunk);
    await Bun.sleep(everyMs);
  }
};

const wireBytes = (text: string): Uint8Array => Buffer.from(text.replaceAll("\n", "\r\n"), "latin1");

const send = async (socket: Peer, reply: Reply, bytePauseMs: number | undefined): Promise<void> => {
  if (reply.afterMs !== undefined) await Bun.sleep(reply.afterMs);
  const bytes = wireBytes((reply.text === undefined ? "" : `${reply.text}\n`) + (reply.fragment ?? ""));
  if (bytePauseMs === undefined) await write(socket, bytes);
  else for (const byte of bytes) await write(socket, Uint8Array.of(byte)).then(() => Bun.sleep(bytePauseMs));
  if (reply.flood !== undefined) await flood(socket, wireBytes(reply.flood), reply.everyMs ?? 1);
  if (reply.ends === "drop") socket.end();
  if (reply.ends === "reset") socket.terminate();
};

const verbOf = (command: string): string => command.slice(0, command.search(/[^a-z]|$/i)).toUpperCase();

const replyTo = (script: Script, { heard }: Talk, command: string): Reply => {
  const verb = verbOf(command);
  const nth = (heard.get(verb) ?? 0) + 1;
  heard.set(verb, nth);
  const planned = script.replies?.[verb];
  const reply = typeof planned === "function" ? planned(command, nth) : planned;
  const said = reply ?? (verb === "QUIT" ? { text: "221 2.0.0 Bye", ends: "drop" } : "250 2.0.0 Ok");
  const whole: Reply = typeof said === "string" ? { text: said } : said;
  return { ...(script.everyReply ?? {}), ...whole };
};

const listen = (ip: string, script: Script): Bun.TCPSocketListener<Talk> =>
  Bun.listen<Talk>({
    hostname: ip,
    port: SMTP_PORT,
    socket: {
      open: (socket) => {
        const banner = typeof script.banner === "string" ? { text: script.banner } : script.banner;
        socket.data = { pending: "", open: true, heard: new Map(), sending: Promise.resolve() };
        socket.data.sending = send(socket, { ...script.everyReply, ...banner }, script.bytePauseMs);
      },
      data: (socket, bytes) => {
        if (script.deaf === true) return;
        const lines = (socket.data.pending + bytes.toString("latin1")).split("\n");
        socket.data.pending = lines.pop() ?? "";
        if (socket.data.pending.length > LINE_BYTES_MAX) socket.end();
        for (const line of lines) {
          const reply = (): Promise<void> =>
            send(socket, replyTo(script, socket.data, line.trimEnd()), script.bytePauseMs);
          socket.data.sending = socket.data.sending.then(reply);
        }
      },
      close: (socket) => {
        socket.data.open = false;
      },
      error: (socket) => {
        socket.data.open = false;
      },
    },
  });

/** Starts a listener for each faulty or hostile host inside this process, with which they end; throws when one is taken. */
export const startFaultServer = (): void => {
  for (const [host, script] of Object.entries({ ...FAULTY, ...HOSTILE })) {
    const ip = addressOf(host as FaultHost);
    try {
      listen(ip, script);
    } catch (error) {
      throw new Error(`${ip}:${SMTP_PORT} is taken: does another lab run?`, { cause: error });
    }
  }
};
