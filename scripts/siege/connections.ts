import { connect, type Socket } from "node:net";

/** What is needed for one connection. */
interface Target {
  readonly host: string;
  readonly port: number;
  readonly localAddress?: string;
}

/** A raw connection that the attack holds. */
export interface Held {
  /** The first bytes that arrived, or nothing. */
  readonly heard: () => string;
  readonly isOpen: () => boolean;
  write(bytes: string | Uint8Array): void;
}

/** Raw connections that are closed together. */
export interface Connections {
  /** Connects; `reads: false` never takes a byte of the answer. Resolves when connected or refused. */
  open(target: Target, options?: { readonly reads?: boolean }): Promise<Held>;
  /** How many are open. */
  count(): number;
  closeAll(): void;
}

const HEARD_BYTES_MAX = 512;

const hold = (socket: Socket, heard: () => string): Held => ({
  heard,
  isOpen: () => !socket.destroyed,
  write: (bytes) => {
    if (!socket.destroyed) socket.write(bytes);
  },
});

export const createConnections = (): Connections => {
  const sockets = new Set<Socket>();
  return {
    open: async ({ host, port, localAddress }, { reads = true } = {}) => {
      const socket = connect({ host, port, noDelay: true, ...(localAddress === undefined ? {} : { localAddress }) });
      sockets.add(socket);
      let heard = "";
      const { promise, resolve } = Promise.withResolvers<void>();
      socket.once("connect", () => resolve());
      // The service may close any of them, which the attack reads off `isOpen`.
      socket.on("error", () => socket.destroy());
      socket.on("close", () => {
        sockets.delete(socket);
        resolve();
      });
      if (reads) {
        socket.on("data", (chunk: Buffer) => {
          if (heard.length < HEARD_BYTES_MAX) heard += chunk.toString("latin1").slice(0, HEARD_BYTES_MAX);
        });
      } else socket.pause();
      await promise;
      return hold(socket, () => heard);
    },
    count: () => sockets.size,
    closeAll: () => {
      for (const socket of sockets) socket.destroy();
      sockets.clear();
    },
  };
};

/** The head of a request with a body of this many bytes. */
export const requestHead = (
  method: string,
  path: string,
  { key, type, length }: { readonly key?: string; readonly type?: string; readonly length?: number },
): string =>
  [
    `${method} ${path} HTTP/1.1`,
    "Host: 127.0.0.1",
    ...(key === undefined ? [] : [`Authorization: Bearer ${key}`]),
    ...(type === undefined ? [] : [`Content-Type: ${type}`]),
    ...(length === undefined ? [] : [`Content-Length: ${length}`]),
    "\r\n",
  ].join("\r\n");

/** The status of an answer that arrived on a raw connection, or how far it came. */
export const statusHeard = (held: Held): string =>
  /^HTTP\/1\.1 (\d{3})/.exec(held.heard())?.[1] ?? (held.isOpen() ? "no answer" : "closed");
