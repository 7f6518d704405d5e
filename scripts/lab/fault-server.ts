import { HOSTILE } from "./fault-hostile.ts";
import { FAULTY } from "./fault-scripts.ts";
import type { Reply, Script } from "./fault-scripts.ts";
import { addressOf, SMTP_PORT } from "./hosts.ts";
import type { FaultHost } from "./hosts.ts";

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
