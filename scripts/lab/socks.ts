import { addressOf, EXITS, SMTP_PORT, SOCKS } from "./hosts.ts";
import type { Supervisor } from "./processes.ts";

const NAME = "microsocks";
const USER = "lab";
const PASSWORD = "swordfish";
const DIALOGUE_TIMEOUT_S = 10;

/** The address of the proxy as the product's settings want it. */
export const SOCKS_URL = `socks5://${USER}:${PASSWORD}@${SOCKS.ip}:${SOCKS.port}`;

const textBytes = (text: string): number[] => [text.length, ...Buffer.from(text)];

/** One dialogue of a SOCKS5 client with a password (RFC 1928, RFC 1929), as far as the greeting of the mail host behind. */
const greetingThroughProxy = async (host: string): Promise<string> => {
  const port = [SMTP_PORT >> 8, SMTP_PORT & 255];
  const questions = [
    [5, 1, 2],
    [1, ...textBytes(USER), ...textBytes(PASSWORD)],
    [5, 1, 0, 1, ...host.split(".").map(Number), ...port],
  ].map((bytes) => Uint8Array.from(bytes));
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  let heard = "";
  const socket = await Bun.connect({
    hostname: SOCKS.ip,
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

/** Starts microsocks from the unpacked package, with a password, and proves that a mail host can be reached through it. */
export const startSocks = async (supervisor: Supervisor, unpacked: string): Promise<void> => {
  supervisor.start({
    name: NAME,
    argv: [
      ...[`${unpacked}/usr/bin/microsocks`, "-i", SOCKS.ip, "-p", String(SOCKS.port), "-b", EXITS.behindSocks],
      ...["-u", USER, "-P", PASSWORD],
    ],
  });
  await supervisor.waitForPort(NAME, SOCKS.ip, SOCKS.port);
  const greeting = await greetingThroughProxy(addressOf("main"));
  if (!greeting.includes("220 ")) throw new Error(`through the SOCKS proxy came ${JSON.stringify(greeting)}`);
};
