import type { Socket } from "bun";
import { type Attack, type AttackContext, type Finding, pause } from "./attack.ts";

const MESSAGES = 900_000;
const FLOOD_MS = 20_000;
/** A service that reconnects without waiting longer and longer would exceed this. */
const CONNECTIONS_MAX = 12;

interface Connection {
  text: string;
  shape: number;
  unsent: Uint8Array;
}

/** What is sent in reply to a search, a connection each. */
const SHAPES: readonly string[] = [
  `* SEARCH ${Array.from({ length: MESSAGES }, (_, n) => n + 1).join(" ")}\r\n`,
  "* 7 EXISTS\r\n".repeat(1_200_000),
  `* 1 FETCH (UID 1 ${"X {0}\r\n ".repeat(500_000)})\r\n`,
  '* LIST () "/" "folder"\r\n'.repeat(150_000),
];

/** An IMAP server with a large folder that floods whoever searches it. */
class FloodingServer {
  connections = 0;
  readonly #floods = SHAPES.map((shape) => Buffer.from(shape));
  readonly #server = Bun.listen<Connection>({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      open: (socket) => {
        socket.data = { text: "", shape: this.connections % SHAPES.length, unsent: new Uint8Array() };
        this.connections += 1;
        this.#send(socket, Buffer.from("* OK ready\r\n"));
      },
      data: (socket, bytes) => this.#read(socket, bytes),
      drain: (socket) => this.#send(socket, new Uint8Array()),
      error: () => undefined,
    },
  });

  get url(): string {
    return `imap://user:secret@127.0.0.1:${this.#server.port}/INBOX`;
  }

  stop(): void {
    this.#server.stop(true);
  }

  #send(socket: Socket<Connection>, bytes: Uint8Array): void {
    const all = socket.data.unsent.byteLength === 0 ? bytes : Buffer.concat([socket.data.unsent, bytes]);
    socket.data.unsent = all.subarray(Math.max(0, socket.write(all)));
  }

  #read(socket: Socket<Connection>, bytes: Uint8Array): void {
    const lines = (socket.data.text + Buffer.from(bytes).toString("latin1")).split("\r\n");
    socket.data.text = lines.pop() ?? "";
    for (const line of lines) {
      const [tag = "", ...words] = line.split(" ");
      const command = words.join(" ");
      if (command.startsWith("UID SEARCH")) this.#send(socket, this.#floods[socket.data.shape] ?? new Uint8Array());
      const opened = `* ${MESSAGES} EXISTS\r\n* OK [UIDVALIDITY 7] valid\r\n* OK [UIDNEXT ${MESSAGES + 1}] next\r\n`;
      const before = /^(?:SELECT|EXAMINE)/.test(command) ? opened : "";
      this.#send(socket, Buffer.from(`${before}${tag} OK done\r\n`));
    }
  }
}

const imapFloods: Attack = {
  name: "imap-floods",
  about: "the mailbox of the reports has 900,000 messages, and its server floods: UIDs, EXISTS, literals, folders",
  isQuick: true,
  seconds: 40,
  open: () => {
    const server = new FloodingServer();
    const settings = { POSTWARDEN_IMAP_URL: server.url, POSTWARDEN_IMAP_ACCOUNT: "attacker" };
    return { settings, close: () => server.stop(), count: () => server.connections };
  },
  prepare: async (context: AttackContext) => async (): Promise<readonly Finding[]> => {
    const before = context.countOfServer();
    await pause(context, FLOOD_MS);
    const count = context.countOfServer();
    return [
      {
        what: "connections to the mailbox",
        value: count,
        unit: "",
        limit: { most: CONNECTIONS_MAX },
        note: `${before} before`,
      },
    ];
  },
};

/** Attacks by the server of the mailbox. */
export const imapAttacks: readonly Attack[] = [imapFloods];
