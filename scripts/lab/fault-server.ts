import { HOSTS, SMTP_PORT } from "./hosts.ts";
import type { HostName } from "./hosts.ts";

/** Bytes of one command that the fault server keeps before it hangs up. */
const LINE_BYTES_MAX = 4096;

/** In place of a reply: end the connection without a word. */
const DROP = "drop";

/** What a host of the fault server does. Replies are whole lines without CRLF; a newline separates several. */
interface Script {
  /** The greeting; undefined: the connection is taken and nothing is ever said. */
  readonly banner?: string;
  /** The reply to each verb; `RCPT` is asked with the whole command. Verbs not named get 250. */
  readonly replies?: Readonly<Record<string, string>>;
  readonly rcpt?: (command: string) => string;
  /** Time between two bytes of every reply. */
  readonly bytePauseMs?: number;
  /** True: hang up right after the banner, or at once when there is none. */
  readonly hangsUp?: boolean;
}

const GREETING = "220 fault.mx.lab.test ESMTP";
const EHLO = "250-fault.mx.lab.test\n250-PIPELINING\n250 ENHANCEDSTATUSCODES";
const TLS_FIRST = "530 5.7.0 Must issue a STARTTLS command first";

const onlyAlice = (command: string): string =>
  /<alice@/i.test(command) ? "250 2.1.5 Ok" : "550 5.1.1 No such user here";

/** What no server of a distribution can be brought to do. */
const SCRIPTS: Readonly<Partial<Record<HostName, Script>>> = {
  silent: {},
  nostarttls: { banner: GREETING, replies: { EHLO, MAIL: TLS_FIRST }, rcpt: () => TLS_FIRST },
  brokentls: {
    banner: GREETING,
    replies: {
      EHLO: `${EHLO.replace("250 ", "250-")}\n250 STARTTLS`,
      STARTTLS: "220 2.0.0 Ready\nthis is not TLS",
      MAIL: TLS_FIRST,
    },
    rcpt: () => TLS_FIRST,
  },
  busy: { banner: "421 4.7.0 Too many connections, try again later", hangsUp: true },
  drops: { banner: GREETING, replies: { EHLO }, rcpt: () => DROP },
  garbage: { banner: "HTTP/1.1 400 Bad Request\nContent-Type: text/html\n\n<html>", hangsUp: true },
  code556: { banner: GREETING, replies: { EHLO }, rcpt: () => "556 5.1.10 Recipient address has null MX" },
  noehlo: { banner: "220 fault.mx.lab.test", replies: { EHLO: "502 Command not implemented" }, rcpt: onlyAlice },
  slow: { banner: GREETING, replies: { EHLO }, rcpt: onlyAlice, bytePauseMs: 8 },
  shuts: { hangsUp: true },
};

const verbOf = (command: string): string => command.slice(0, command.search(/[^a-z]|$/i)).toUpperCase();

const replyTo = (script: Script, command: string): string => {
  const verb = verbOf(command);
  if (verb === "RCPT" && script.rcpt !== undefined) return script.rcpt(command);
  if (verb === "QUIT") return "221 2.0.0 Bye";
  return script.replies?.[verb] ?? "250 2.0.0 Ok";
};

interface Talk {
  pending: string;
  /** Replies leave one after the other, also when they are slow. */
  sending: Promise<void>;
}

const send = async (socket: Bun.Socket<Talk>, script: Script, reply: string): Promise<void> => {
  const text = `${reply.replaceAll("\n", "\r\n")}\r\n`;
  if (script.bytePauseMs === undefined) {
    socket.write(text);
    return;
  }
  for (const character of text) {
    socket.write(character);
    await Bun.sleep(script.bytePauseMs);
  }
};

const answer = async (socket: Bun.Socket<Talk>, script: Script, command: string): Promise<void> => {
  const reply = replyTo(script, command);
  if (reply !== DROP) await send(socket, script, reply);
  if (reply === DROP || verbOf(command) === "QUIT") socket.end();
};

const listen = (ip: string, script: Script): Bun.TCPSocketListener<Talk> =>
  Bun.listen<Talk>({
    hostname: ip,
    port: SMTP_PORT,
    socket: {
      open: (socket) => {
        socket.data = { pending: "", sending: Promise.resolve() };
        const { banner } = script;
        if (banner !== undefined) socket.data.sending = send(socket, script, banner);
        if (script.hangsUp === true) socket.end();
      },
      data: (socket, bytes) => {
        if (script.banner === undefined || script.hangsUp === true) return;
        const lines = (socket.data.pending + bytes.toString("latin1")).split("\n");
        socket.data.pending = lines.pop() ?? "";
        if (socket.data.pending.length > LINE_BYTES_MAX) socket.end();
        for (const line of lines) {
          socket.data.sending = socket.data.sending.then(() => answer(socket, script, line.trimEnd()));
        }
      },
    },
  });

/** Starts a listener for each host of `SCRIPTS` inside this process, with which they end; throws when one is taken. */
export const startFaultServer = (): void => {
  for (const [host, script] of Object.entries(SCRIPTS)) {
    const ip = HOSTS[host as HostName];
    try {
      listen(ip, script);
    } catch (error) {
      throw new Error(`${ip}:${SMTP_PORT} is taken: does another lab run?`, { cause: error });
    }
  }
};
