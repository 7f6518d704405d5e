import { connect, createServer, type Socket } from "node:net";
import { FAULTY_SOCKS, SOCKS } from "./hosts.ts";

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
