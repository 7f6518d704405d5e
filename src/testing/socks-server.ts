import { connect, createServer, type Socket } from "node:net";

export interface SocksServerScript {
  /** Required with RFC 1929; without it no authentication is offered. */
  readonly user?: string;
  readonly password?: string;
  /** Replies to CONNECT with this code instead of connecting (RFC 1928 §6). */
  readonly reply?: number;
  /** Never replies to the greeting, or to the request to connect. */
  readonly silentAt?: "greeting" | "connect";
  /** Closes the connection after the greeting. */
  readonly hangsUp?: boolean;
  /** Replies to the greeting with these octets. */
  readonly greeting?: readonly number[];
}

/**
 * A SOCKS5 server on 127.0.0.1, as small as a test needs it. `targets` are the requested targets: addresses only, because
 * a name would not have the length of one.
 */
export const startSocksServer = async (script: SocksServerScript = {}) => {
  const targets: string[] = [];
  const sockets = new Set<Socket>();

  const next = (socket: Socket): Promise<Buffer> => new Promise((resolve) => socket.once("data", resolve));

  const serve = async (socket: Socket): Promise<void> => {
    await next(socket);
    if (script.silentAt === "greeting") return;
    if (script.hangsUp) return void socket.end();
    socket.write(Buffer.from(script.greeting ?? [5, script.user === undefined ? 0 : 2]));
    if (script.user !== undefined) {
      const credentials = (await next(socket)).toString("latin1");
      const isRight = credentials.includes(script.user) && credentials.includes(script.password ?? "");
      socket.write(Buffer.from([1, isRight ? 0 : 1]));
      if (!isRight) return void socket.end();
    }
    const request = await next(socket);
    const host = request[3] === 1 ? [...request.subarray(4, 8)].join(".") : request.subarray(4, 20).toString("hex");
    const port = request.readUInt16BE(request.length - 2);
    targets.push(`${host} ${port}`);
    if (script.silentAt === "connect") return;
    const answer = (code: number) => socket.write(Buffer.from([5, code, 0, 1, 0, 0, 0, 0, 0, 0]));
    if (script.reply !== undefined) return void answer(script.reply);
    const target = connect(port, host, () => {
      answer(0);
      socket.pipe(target).pipe(socket);
    });
    sockets.add(target);
    target.on("error", () => socket.destroy());
  };

  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => socket.destroy());
    void serve(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const bound = server.address();
  return {
    port: typeof bound === "object" && bound !== null ? bound.port : 0,
    targets,
    /** Connections that are open at the moment. */
    openConnections: (): number => [...sockets].filter(({ destroyed }) => !destroyed).length,
    stop(): void {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
};
