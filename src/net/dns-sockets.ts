import type { Clock } from "../base/clock.ts";
import { type DnsServer, formatServer } from "./dns.ts";

/** A socket carries at most so many queries, so that its port is of little use to who finds it out. */
export const QUERIES_PER_SOCKET_MAX = 32;
/** Nor does it take queries for longer: what is sent again after a timeout leaves from another port. */
export const SOCKET_AGE_MS_MAX = 100;

/** A query on its way. Packets with its id may be of others, or forged. */
export interface SentQuery {
  readonly id: number;
  readonly receive: (packet: Uint8Array) => void;
  /** The server refused a packet from this socket, which is closed. */
  readonly fail: () => void;
}

/**
 * UDP sockets to name servers. Each is connected to one server, from a port that the system chooses at random. Queries that are
 * on their way at the same time share a socket, within limits; a query that is alone has a port of its own, as unpredictable as
 * its id (RFC 5452 §4.5, §9.2). A socket closes with its last query.
 */
export class DnsSockets {
  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #latest = new Map<string, DnsSocket>();

  constructor(clock: Pick<Clock, "monotonicMs">) {
    this.#clock = clock;
  }

  /** A socket for a query with this id: never one that carries a query of the same id. */
  socketFor(server: DnsServer, id: number): DnsSocket {
    const key = formatServer(server);
    const nowMs = this.#clock.monotonicMs();
    const latest = this.#latest.get(key);
    if (latest?.takes(id, nowMs)) return latest;
    const socket: DnsSocket = new DnsSocket(server, nowMs, () => {
      if (this.#latest.get(key) === socket) this.#latest.delete(key);
    });
    this.#latest.set(key, socket);
    return socket;
  }
}

/** One socket and the queries that it carries. */
export class DnsSocket {
  readonly #opened: Promise<Bun.udp.ConnectedSocket<"buffer">>;
  readonly #openedMs: number;
  readonly #onClosed: () => void;
  readonly #queries = new Map<number, SentQuery>();
  #joined = 0;
  #isClosed: boolean = false;

  constructor(server: DnsServer, openedMs: number, onClosed: () => void) {
    this.#openedMs = openedMs;
    this.#onClosed = onClosed;
    this.#opened = this.#open(server);
    // Who waits for a socket that cannot be opened learns it from `send`; the next query tries another one.
    this.#opened.catch(() => this.#close());
  }

  /** Whether it may carry another query. */
  takes(id: number, nowMs: number): boolean {
    if (this.#isClosed || this.#joined >= QUERIES_PER_SOCKET_MAX || this.#queries.has(id)) return false;
    return nowMs - this.#openedMs < SOCKET_AGE_MS_MAX;
  }

  /** Hands packets with the id of the query to it; the returned function ends that. */
  join(query: SentQuery): () => void {
    this.#joined++;
    this.#queries.set(query.id, query);
    return () => {
      if (this.#queries.get(query.id) === query) this.#queries.delete(query.id);
      if (this.#queries.size === 0) this.#close();
    };
  }

  /**
   * Sends the packet of a query that has joined. Rejects with the platform's error when no socket can be opened. When the system's
   * buffer is full the packet is lost, as any packet may be: the retransmit covers both.
   */
  async send(packet: Uint8Array): Promise<void> {
    const socket = await this.#opened;
    if (!this.#isClosed) socket.send(packet);
  }

  async #open({ address, port }: DnsServer): Promise<Bun.udp.ConnectedSocket<"buffer">> {
    const queries = this.#queries;
    let peer: string | null = null;
    return Bun.udpSocket({
      hostname: address.includes(":") ? "::" : "0.0.0.0",
      connect: { hostname: address, port },
      socket: {
        data(self: Bun.udp.ConnectedSocket<"buffer">, packet, from, sender) {
          peer ??= self.remoteAddress.address;
          // A packet may slip in between bind and connect, when the system does not filter yet.
          if (from === port && sender === peer && packet.length >= 2)
            queries.get(packet.readUInt16BE(0))?.receive(packet);
        },
        error: () => this.#fail(),
      },
    });
  }

  #fail(): void {
    const failed = [...this.#queries.values()];
    this.#close();
    for (const { fail } of failed) fail();
  }

  #close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#queries.clear();
    this.#onClosed();
    this.#opened.then((socket) => socket.close()).catch(() => undefined);
  }
}
