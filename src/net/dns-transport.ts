import type { Clock } from "../base/clock.ts";
import { wait } from "../base/wait.ts";
import type { DnsServer } from "./dns.ts";
import { createFrameReader, frame } from "./dns-frame.ts";
import type { EncodedQuery } from "./dns-message.ts";
import { type DnsPacketMatch, matchPacket } from "./dns-packet-match.ts";
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
  /** Over a fresh UDP socket, so that the port is as random as the id (RFC 5452 §4.5). Packets that are not ours are ignored. */
  udp(attempt: DnsAttempt): Promise<DnsExchange>;
  /** Over a fresh TCP connection (RFC 7766), for responses that UDP cut short. */
  tcp(attempt: DnsAttempt): Promise<DnsExchange>;
  /** Ends everything under way, and whatever comes later, with `aborted`. */
  close(): void;
}

/** How soon a socket is tried again when the machine has no descriptor left; the attempt's own time goes on. */
const SHORTAGE_AGAIN_MS = 50;

export const createDnsTransport = ({ clock }: { clock: Clock }): DnsTransport => {
  const underWay = new Set<Ending>();
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
      let heardNoise = false;
      const hear = (packet: Uint8Array): void => {
        const response = matchPacket(packet, query);
        if (response.kind === "noise") heardNoise = true;
        else if (response.kind !== "foreign") ending.end(response);
      };
      if (!ending.isOver()) void sendUdp({ server, query, hear, ending }, clock);
      const exchange = await ending.ended;
      return exchange.kind === "timeout" && heardNoise ? { kind: "malformed" } : exchange;
    },

    async tcp({ server, query, timeoutMs }) {
      const ending = begin(timeoutMs);
      const hear = (message: Uint8Array): void => {
        const response = matchPacket(message, query);
        // Nobody else can speak on this connection, and there is nowhere further to fall back to.
        const isUsable = response.kind === "message" || response.kind === "case_changed";
        ending.end(isUsable ? response : { kind: "malformed" });
      };
      if (!ending.isOver()) connectTcp({ server, query, hear, ending });
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
  /** What running out of time would mean: silence, unless nothing could be sent. */
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
  readonly hear: (message: Uint8Array) => void;
  readonly ending: Ending;
}

const openUdp = ({ server, hear, ending }: Channel) =>
  Bun.udpSocket({
    hostname: server.address.includes(":") ? "::" : "0.0.0.0",
    connect: { hostname: server.address, port: server.port },
    socket: {
      data(self: Bun.udp.ConnectedSocket<"buffer">, packet, port, address) {
        // A packet may slip in between bind and connect, when the system does not filter yet.
        if (port === server.port && address === self.remoteAddress.address) hear(packet);
      },
      error: () => ending.end({ kind: "network_error" }),
    },
  });

/** Waits for a descriptor where there is none: others are closed in a moment. */
const sendUdp = async (channel: Channel, clock: Clock): Promise<void> => {
  const { query, ending } = channel;
  while (!ending.isOver()) {
    try {
      const socket = await openUdp(channel);
      ending.onEnd(() => socket.close());
      // When the system's buffer is full the packet is lost, as any packet may be: the retransmit covers both.
      if (!ending.isOver()) socket.send(query.bytes);
      return;
    } catch (error) {
      const code = errorCode(error);
      if (!isShortage(code)) return ending.end({ kind: isLocalError(code) ? "local_failure" : "network_error" });
      ending.explain({ kind: "local_failure" });
      await wait(clock, SHORTAGE_AGAIN_MS);
      ending.explain({ kind: "timeout" });
    }
  }
};

const connectTcp = ({ server, query, hear, ending }: Channel): void => {
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
        if (message) hear(message);
      },
      close: fail,
      error: fail,
      connectError: failToConnect,
    },
  }).catch(failToConnect);
};
