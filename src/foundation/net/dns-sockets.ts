import type { Clock } from "../base/clock.ts";
import type { DnsServer } from "./dns.ts";

/** A socket carries at most so many queries, so that its port is of little use to who finds it out. */
export const QUERIES_PER_SOCKET_MAX = 32;
/** Nor does it take queries for longer: what is sent again after a timeout leaves from another port. */
export const SOCKET_AGE_MS_MAX = 100;

/** A query on its way. Packets with its id may be of others, or forged. */
export interface SentQuery {
  readonly id: number;
  readonly packet: Uint8Array;
  receive(packet: Uint8Array): void;
  /** The server refused a packet from this socket, which is closed. */
  fail(): void;
  /** No socket could be opened, or it did not send the packet. The query has left the socket. */
  failToSend(error: unknown): void;
}

/**
 * UDP sockets to name servers. Each is connected to one server, from a port that the system chooses at random. Queries that are
 * on their way at the same time share a socket, within limits; a query that is alone has a port of its own, as unpredictable as
 * its id (RFC 5452 §4.5, §9.2). A socket closes with its last query. The queries of one turn of the event loop over a socket
 * leave by one system call.
 */
export class DnsSockets {
  /** By the server as an object: each caller has one for each server. */
  readonly #latest = new Map<DnsServer, DnsSocket>();
  #unsent: DnsSocket[] = [];

  constructor(private readonly clock: Pick<Clock, "monotonicMs">) {}

  /** A socket for a query with this id: never one that carries a query of the same id. */
  socketFor(server: DnsServer, id: number): DnsSocket {
    const nowMs = this.clock.monotonicMs();
    const latest = this.#latest.get(server);
    if (latest?.takes(id, nowMs)) return latest;
    const socket: DnsSocket = new DnsSocket(server, nowMs, {
      onUnsent: () => this.#sendSoon(socket),
      onClosed: () => {
        if (this.#latest.get(server) === socket) this.#latest.delete(server);
      },
    });
    this.#latest.set(server, socket);
    return socket;
  }

  #sendSoon(socket: DnsSocket) {
    if (this.#unsent.push(socket) > 1) return;
    setImmediate(() => {
      const sockets = this.#unsent;
      this.#unsent = [];
      for (const each of sockets) each.sendUnsent();
    });
  }
}

interface SocketEvents {
  /** The socket is open and has packets to send. */
  readonly onUnsent: () => void;
  readonly onClosed: () => void;
}

/** One socket and the queries that it carries. */
export class DnsSocket {
  readonly #queries = new Map<number, SentQuery>();
  #socket: Bun.udp.ConnectedSocket<"buffer"> | null = null;
  #unsent: SentQuery[] = [];
  #joined = 0;
  #isClosed: boolean = false;

  constructor(
    private readonly server: DnsServer,
    private readonly openedMs: number,
    private readonly events: SocketEvents,
  ) {}

  /** Whether it may carry another query. */
  takes(id: number, nowMs: number): boolean {
    if (this.#isClosed || this.#joined >= QUERIES_PER_SOCKET_MAX || this.#queries.has(id)) return false;
    return nowMs - this.openedMs < SOCKET_AGE_MS_MAX;
  }

  /** Sends a query, and hands packets with its id to it until it leaves. The first one opens the socket. */
  carry(query: SentQuery): void {
    this.#joined++;
    this.#queries.set(query.id, query);
    if (this.#unsent.push(query) === 1 && this.#socket !== null) this.events.onUnsent();
    if (this.#joined === 1) void this.#open(this.server);
  }

  /** Removes the query; closes the socket after the last one. */
  leave(query: SentQuery): void {
    if (this.#queries.get(query.id) === query) this.#queries.delete(query.id);
    if (this.#queries.size === 0) this.#close();
  }

  /** When the system's buffer is full a packet is lost, as any packet may be: the retransmit covers both. */
  sendUnsent(): void {
    const queries = this.#unsent.filter((query) => this.#queries.get(query.id) === query);
    this.#unsent = [];
    if (this.#socket === null || this.#isClosed) return;
    let sent = 0;
    try {
      if (queries.length > 1) sent = this.#socket.sendMany(queries.map(({ packet }) => packet));
      // A packet that cannot be sent ends the batch before it; alone, it says why.
      for (; sent < queries.length; sent++) this.#socket.send(queries[sent]?.packet ?? NO_PACKET);
    } catch (error) {
      this.#failToSend(queries.slice(sent), error);
    }
  }

  async #open({ address, port }: DnsServer) {
    const queries = this.#queries;
    let peer: string | null = null;
    try {
      this.#socket = await Bun.udpSocket({
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
    } catch (error) {
      const unsent = this.#unsent;
      // The next query tries another socket.
      this.#close();
      this.#failToSend(unsent, error);
      return;
    }
    if (this.#isClosed) this.#socket.close();
    else if (this.#unsent.length > 0) this.events.onUnsent();
  }

  #failToSend(queries: readonly SentQuery[], error: unknown) {
    for (const query of queries) {
      this.leave(query);
      query.failToSend(error);
    }
  }

  #fail() {
    const failed = [...this.#queries.values()];
    this.#close();
    for (const query of failed) query.fail();
  }

  #close() {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#queries.clear();
    this.#unsent = [];
    this.events.onClosed();
    this.#socket?.close();
  }
}

const NO_PACKET = new Uint8Array(0);
