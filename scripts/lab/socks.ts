import { type Socket, connect, createServer } from "node:net";
import { EXITS, FAULTY_SOCKS, SECOND_SOCKS, SMTP_PORT, SOCKS, addressOf } from "./hosts.ts";
import type { Supervisor } from "./processes.ts";

const USER = "lab";
const PASSWORD = "swordfish";
const DIALOGUE_TIMEOUT_S = 10;

const urlOf = (ip: string, password = PASSWORD): string => `socks5://${USER}:${password}@${ip}:${SOCKS.port}`;

/** The addresses of the proxies as the product's settings want them; the last with a wrong password. */
export const SOCKS_URL = urlOf(SOCKS.ip);
export const SECOND_SOCKS_URL = urlOf(SECOND_SOCKS.ip);
export const WRONG_PASSWORD_URL = urlOf(SOCKS.ip, "sardine");
/** The address of a proxy that fails. */
export const faultySocksUrl = (ip: string): string => urlOf(ip);

const textBytes = (text: string): number[] => [text.length, ...Buffer.from(text)];

/** One dialogue of a SOCKS5 client with a password (RFC 1928, RFC 1929), as far as the greeting of the mail host behind. */
const greetingThroughProxy = async (proxy: string, host: string): Promise<string> => {
  const port = [SMTP_PORT >> 8, SMTP_PORT & 255];
  const questions = [
    [5, 1, 2],
    [1, ...textBytes(USER), ...textBytes(PASSWORD)],
    [5, 1, 0, 1, ...host.split(".").map(Number), ...port],
  ].map((bytes) => Uint8Array.from(bytes));
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  let heard = "";
  const socket = await Bun.connect({
    hostname: proxy,
    port: SOCKS.port,
    socket: {
      open: (opened) => {
        opened.timeout(DIALOGUE_TIMEOUT_S);
        opened.write(questions.shift() ?? "");
      },
      data: (talking, bytes) => {
        const question = questions.shift();
        if (question !== undefined) talking.write(question);
        heard += bytes.toString("latin1");
        if (heard.endsWith("\n")) resolve(heard);
      },
      close: () => reject(new Error("the SOCKS proxy hung up")),
      timeout: () => reject(new Error("the SOCKS proxy is silent")),
    },
  });
  return promise.finally(() => socket.end());
};

/** Starts two microsocks from the unpacked package, with a password, and proves that a mail host can be reached through them. */
export const startSocks = async (supervisor: Supervisor, unpacked: string): Promise<void> => {
  const proxies = [
    { name: "microsocks", ...SOCKS, exit: EXITS.behindSocks },
    { name: "microsocks-2", ...SECOND_SOCKS, exit: EXITS.behindSecondSocks },
  ];
  for (const { name, ip, port, exit } of proxies) {
    supervisor.start({
      name,
      argv: [
        ...[`${unpacked}/usr/bin/microsocks`, "-i", ip, "-p", String(port), "-b", exit],
        ...["-u", USER, "-P", PASSWORD],
      ],
    });
    await supervisor.waitForPort(name, ip, port);
    const greeting = await greetingThroughProxy(ip, addressOf("main"));
    if (!greeting.includes("220 ")) throw new Error(`through the SOCKS proxy came ${JSON.stringify(greeting)}`);
  }
};

/** SOCKS5 (RFC 1928): a login is wanted, it is accepted, and the reply to the request. */
const WANTS_LOGIN = [5, 2];
const LOGIN_ACCEPTED = [1, 0];
const replyOf = (code: number): number[] => [5, code, 0, 1, 0, 0, 0, 0, 0, 0];
const GRANTED = 0;
const NOT_ALLOWED = 2;

const nextMessage = (socket: Socket): Promise<Buffer> => new Promise((resolve) => socket.once("data", resolve));

/** The negotiation until the request, and the target in it. */
const acceptClient = async (socket: Socket): Promise<{ readonly host: string; readonly port: number }> => {
  await nextMessage(socket);
  socket.write(Uint8Array.from(WANTS_LOGIN));
  await nextMessage(socket);
  socket.write(Uint8Array.from(LOGIN_ACCEPTED));
  const request = await nextMessage(socket);
  return { host: request.subarray(4, 8).join("."), port: request.readUInt16BE(request.length - 2) };
};

type Behaviour = (socket: Socket) => Promise<void>;

const BEHAVIOURS: Readonly<Record<Exclude<keyof typeof FAULTY_SOCKS, "dead">, Behaviour>> = {
  /** Accepts connections and says nothing. */
  silent: async () => undefined,
  /** Never says what came of the request. */
  mute: async (socket) => void (await acceptClient(socket)),
  forbids: async (socket) => {
    await acceptClient(socket);
    socket.write(Uint8Array.from(replyOf(NOT_ALLOWED)));
  },
  /** Passes on what the mail host says first, and ends at the client's first command, as a proxy does that crashes. */
  dies: async (socket) => {
    const target = connect(await acceptClient(socket), () => socket.write(Uint8Array.from(replyOf(GRANTED))));
    target.on("error", () => socket.destroy());
    target.on("data", (bytes: Buffer) => socket.write(bytes));
    socket.on("close", () => target.destroy());
    await nextMessage(socket);
    socket.destroy();
  },
};

/** Starts the proxies that fail, inside this process, with which they end. */
export const startFaultySocks = async (): Promise<void> => {
  for (const [name, behave] of Object.entries(BEHAVIOURS)) {
    const server = createServer((socket) => {
      socket.on("error", () => socket.destroy());
      void behave(socket);
    });
    const ip = FAULTY_SOCKS[name as keyof typeof BEHAVIOURS];
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(SOCKS.port, ip, resolve);
    });
  }
};
