import type { Clock } from "../base/clock.ts";
import { wait } from "../base/wait.ts";
import type { DnsServer } from "./dns.ts";
import type { EncodedQuery } from "./dns-message.ts";
import { type DnsPacketMatch, matchPacket } from "./dns-packet-match.ts";
import { DnsSockets } from "./dns-sockets.ts";
import { errorCode, isLocalError, isOutOfDescriptors, isShortage } from "./local-failure.ts";

/** How one attempt at one server ended. A `message` is a response to this very query. */
export type DnsExchange = DnsPacketMatch | { readonly kind: "timeout" | "network_error" | "local_failure" | "aborted" };

/** One query on its way: where to, what, and for how long. */
export interface DnsAttempt {
  readonly server: DnsServer;
  readonly query: EncodedQuery;
  readonly timeoutMs: number;
}

/** Carries queries to name servers. Neither method rejects; both end within the attempt's time. */
export interface DnsTransport {
  /** Over UDP, from a random port (`DnsSockets`). Packets that are not ours are ignored. */
  udp(attempt: DnsAttempt): Promise<DnsExchange>;
  /** Over a fresh TCP connection (RFC 7766), for responses that UDP cut short. */
  tcp(attempt: DnsAttempt): Promise<DnsExchange>;
  /** Ends everything under way, and whatever comes later, with `aborted`. */
  close(): void;
}

/** When to try again to open a socket after the machine had no descriptor left; the timeout of the attempt keeps running. */
const SHORTAGE_AGAIN_MS = 50;

export const createDnsTransport = ({ clock }: { clock: Clock }): DnsTransport => {
  const underWay = new Set<Ending>();
  const sockets = new DnsSockets(clock);
  let isClosed = false;

  const begin = (timeoutMs: number): Ending => {
    const ending = createEnding();
    underWay.add(ending);
    ending.onEnd(() => underWay.delete(ending));
    ending.onEnd(clock.after(timeoutMs, () => ending.expire()));
    if (isClosed) ending.end({ kind: "aborted" });
    return ending;
  };

  return {
    async udp({ server, query, timeoutMs }) {
      const ending = begin(timeoutMs);
      let receivedNoise = false;
      const receive = (packet: Uint8Array): void => {
        const response = matchPacket(packet, query);
        if (response.kind === "noise") receivedNoise = true;
        else if (response.kind !== "foreign") ending.end(response);
      };
      if (!ending.isOver()) void sendUdp(sockets, { server, query, receive, ending }, clock);
      const exchange = await ending.ended;
      return exchange.kind === "timeout" && receivedNoise ? { kind: "malformed" } : exchange;
    },

    async tcp({ server, query, timeoutMs }) {
      const ending = begin(timeoutMs);
      const receive = (message: Uint8Array): void => {
        const response = matchPacket(message, query);
        // Only the server can send on this connection, and there is no further fallback.
        const isUsable = response.kind === "message" || response.kind === "case_changed";
        ending.end(isUsable ? response : { kind: "malformed" });
      };
      if (!ending.isOver()) connectTcp({ server, query, receive, ending });
      return ending.ended;
    },

    close() {
      isClosed = true;
      for (const ending of [...underWay]) ending.end({ kind: "aborted" });
    },
  };
};

/** The end of one attempt: the first result counts, then everything it held is released. */
interface Ending {
  readonly ended: Promise<DnsExchange>;
  end(exchange: DnsExchange): void;
  /** What a timeout means from now on: that the server did not respond, or that nothing could be sent. */
  explain(exchange: DnsExchange): void;
  /** The time is over. */
  expire(): void;
  isOver(): boolean;
  /** Runs `release` at the end, or at once when that is past. */
  onEnd(release: () => void): void;
}

const createEnding = (): Ending => {
  const { promise, resolve } = Promise.withResolvers<DnsExchange>();
  const releases: Array<() => void> = [];
  let isOver = false;
  let onExpiry: DnsExchange = { kind: "timeout" };
  const end = (exchange: DnsExchange): void => {
    if (isOver) return;
    isOver = true;
    for (const release of releases) release();
    resolve(exchange);
  };
  return {
    ended: promise,
    isOver: () => isOver,
    end,
    explain(exchange) {
      onExpiry = exchange;
    },
    expire: () => end(onExpiry),
    onEnd(release) {
      if (isOver) release();
      else releases.push(release);
    },
  };
};

interface Channel {
  readonly server: DnsServer;
  readonly query: EncodedQuery;
  readonly receive: (message: Uint8Array) => void;
  readonly ending: Ending;
}

/** Waits for a descriptor where there is none: others are closed in a moment. */
const sendUdp = async (
  sockets: DnsSockets,
  { server, query, receive, ending }: Channel,
  clock: Clock,
): Promise<void> => {
  const fail = () => ending.end({ kind: "network_error" });
  while (!ending.isOver()) {
    const socket = sockets.socketFor(server, query.id);
    const leave = socket.join({ id: query.id, receive, fail });
    ending.onEnd(leave);
    try {
      return await socket.send(query.bytes);
    } catch (error) {
      leave();
      const code = errorCode(error);
      if (!isShortage(code)) return ending.end({ kind: isLocalError(code) ? "local_failure" : "network_error" });
      ending.explain({ kind: "local_failure" });
      await wait(clock, SHORTAGE_AGAIN_MS);
      ending.explain({ kind: "timeout" });
    }
  }
};

const connectTcp = ({ server, query, receive, ending }: Channel): void => {
  const fail = () => ending.end({ kind: "network_error" });
  const failToConnect = () => ending.end({ kind: isOutOfDescriptors() ? "local_failure" : "network_error" });
  const readMessage = createFrameReader();
  Bun.connect({
    hostname: server.address,
    port: server.port,
    socket: {
      open(socket) {
        ending.onEnd(() => socket.terminate());
        if (!ending.isOver()) socket.write(frame(query.bytes));
      },
      data(_, chunk) {
        const message = readMessage(chunk);
        if (message) receive(message);
      },
      close: fail,
      error: fail,
      connectError: failToConnect,
    },
  }).catch(failToConnect);
};

/** A message with its length before it (RFC 1035 §4.2.2). */
export const frame = (message: Uint8Array): Uint8Array => {
  const framed = new Uint8Array(2 + message.length);
  new DataView(framed.buffer).setUint16(0, message.length);
  framed.set(message, 2);
  return framed;
};

/** Collects the first framed message from chunks of any size: 65,535 octets at most, whatever follows is dropped. */
export const createFrameReader = (): ((chunk: Uint8Array) => Uint8Array | undefined) => {
  let length: number | undefined;
  let buffer = new Uint8Array(2);
  let received = 0;
  return (chunk) => {
    let rest = chunk;
    for (;;) {
      const taken = rest.subarray(0, buffer.length - received);
      buffer.set(taken, received);
      received += taken.length;
      if (received < buffer.length) return undefined;
      if (length !== undefined) return buffer;
      // The prefix is whole: from here on the message itself is collected.
      length = new DataView(buffer.buffer).getUint16(0);
      buffer = new Uint8Array(length);
      received = 0;
      rest = rest.subarray(taken.length);
    }
  };
};
