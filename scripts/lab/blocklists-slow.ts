import { RBLDNSD, SLOW_RBLDNSD } from "./hosts.ts";

/** Below the patience of unbound, and above what anybody would call quick: an answer needs several such questions. */
const DELAY_MS = 300;
const ID_BYTES = 2;
const WAITING_MAX = 1_000;

/** Starts the relay that hands every answer of rbldnsd on late. It ends with the process. */
export const startSlowList = async (): Promise<void> => {
  const askers = new Map<number, { readonly id: Uint8Array; readonly ip: string; readonly port: number }>();
  let next = 0;
  const front = await Bun.udpSocket({
    hostname: SLOW_RBLDNSD.ip,
    port: SLOW_RBLDNSD.port,
    socket: {
      data: (_, question, port, ip) => {
        const bytes = Uint8Array.from(question);
        next = (next + 1) % WAITING_MAX;
        askers.set(next, { id: bytes.slice(0, ID_BYTES), ip, port });
        // Equal ids of two askers would be mixed up: behind the relay each has the relay's own.
        bytes.set([next >> 8, next & 0xff]);
        back.send(bytes);
      },
    },
  });
  const back = await Bun.udpSocket({
    connect: { hostname: RBLDNSD.ip, port: RBLDNSD.port },
    socket: {
      data: (_, answer) => {
        const bytes = Uint8Array.from(answer);
        const asker = askers.get((bytes[0] ?? 0) * 256 + (bytes[1] ?? 0));
        if (asker === undefined) return;
        bytes.set(asker.id);
        setTimeout(() => front.send(bytes, asker.port, asker.ip), DELAY_MS);
      },
      error: () => undefined,
    },
  });
};
