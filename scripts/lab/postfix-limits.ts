import { addressOf, SMTP_PORT, SUFFIX } from "./hosts.ts";
import type { PostfixHost } from "./hosts.ts";

const DIALOGUE_TIMEOUT_S = 10;
const LAST_LINE = /^\d{3} .*$/m;

/** Says `lines`, each after a whole reply; resolves with the open socket when the last one was answered. */
const talk = async (ip: string, lines: readonly string[]): Promise<Bun.Socket> => {
  const left = [...lines];
  let heard = "";
  const { promise, resolve, reject } = Promise.withResolvers<Bun.Socket>();
  await Bun.connect({
    hostname: ip,
    port: SMTP_PORT,
    socket: {
      open: (socket) => socket.timeout(DIALOGUE_TIMEOUT_S),
      data: (socket, bytes) => {
        heard += bytes.toString();
        if (!LAST_LINE.test(bytes.toString())) return;
        const line = left.shift();
        if (line === undefined) {
          socket.timeout(0);
          resolve(socket);
        } else socket.write(`${line}\r\n`);
      },
      close: () => reject(new Error(`${ip} hung up after ${JSON.stringify(heard)}`)),
      timeout: () => reject(new Error(`${ip} did not answer while its allowance was spent`)),
    },
  });
  return promise;
};

const HELLO = "EHLO probe.lab.example";

/** Uses up what each rate-limited listener allows in an hour, and holds the one connection of another. */
export const spendAllowances = async (): Promise<void> => {
  const spend = async (host: PostfixHost): Promise<void> => {
    const socket = await talk(addressOf(host), [HELLO, "MAIL FROM:<>", `RCPT TO:<alice@${host}.${SUFFIX}>`]);
    socket.end("QUIT\r\n");
  };
  await spend("rate");
  await spend("recipientrate");
  await spend("messagerate");
  await talk(addressOf("concurrency"), [HELLO]);
};
