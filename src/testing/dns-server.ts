import * as packet from "dns-packet";
import { errorCode } from "../foundation/base/errors.ts";
import type { DnsServer } from "../foundation/net/dns.ts";

/** A query that the scripted server received. */
export interface SeenQuery {
  readonly transport: "udp" | "tcp";
  readonly id: number;
  /** As it was sent, letter case included. */
  readonly name: string;
  readonly type: packet.RecordType;
  /** The UDP size of its OPT record; undefined without EDNS. */
  readonly ednsBytes: number | undefined;
  /** Requests DNSSEC records as well (the DO bit). */
  readonly dnssecOk: boolean;
  /** Where it came from. */
  readonly port: number;
  readonly bytes: Uint8Array;
}

/** What to send back: one packet, several, or none to drop the query. A promise holds the response until it resolves. */
export type DnsScript = (query: SeenQuery) => Answered | Promise<Answered>;
type Answered = Uint8Array | readonly Uint8Array[] | undefined;

/** A name server on 127.0.0.1, the same port for UDP and TCP, which does what its script says. */
export interface ScriptedDnsServer {
  readonly server: DnsServer;
  readonly seen: readonly SeenQuery[];
  /** Resolves once this many queries have arrived in all. */
  received(count: number): Promise<void>;
  stop(): void;
}

/** What may differ from a plain NOERROR response to the query. `lie` overrides fields of the query. */
export interface ResponseParts {
  readonly answers?: packet.Answer[];
  readonly authorities?: packet.Answer[];
  readonly additionals?: packet.Answer[];
  readonly rcode?: number;
  readonly flags?: number;
  readonly id?: number;
  readonly question?: packet.Question | null;
}

const PORT_ATTEMPTS_MAX = 20;

/** Encodes a response with a codec that is not the one under test. */
export const encodeResponse = (query: SeenQuery, parts: ResponseParts = {}): Buffer =>
  packet.encode({
    type: "response",
    id: parts.id ?? query.id,
    flags: packet.RECURSION_DESIRED | packet.RECURSION_AVAILABLE | (parts.flags ?? 0) | (parts.rcode ?? 0),
    questions: parts.question === null ? [] : [parts.question ?? { name: query.name, type: query.type }],
    answers: parts.answers ?? [],
    authorities: parts.authorities ?? [],
    additionals: parts.additionals ?? [],
  });

const SOA_TTL_S = 300;

/** The SOA of a negative response about the name (RFC 2308 §3): of its top-level domain. */
export const soaFor = (name: string): packet.Answer => ({
  name: name.split(".").at(-1) ?? "",
  type: "SOA",
  ttl: SOA_TTL_S,
  data: { mname: "ns.example", rname: "h.example", serial: 1, refresh: 1, retry: 1, expire: 1, minimum: SOA_TTL_S },
});

/** Where a server listens: an address of this machine, and a port or 0 for any. */
interface Place {
  readonly hostname: string;
  readonly port: number;
}

const ANYWHERE: Place = { hostname: "127.0.0.1", port: 0 };

/** Starts a server; the test must `stop` it. Over TCP the packets are framed, and the connection is left open. */
export const startDnsServer = async (script: DnsScript, place: Place = ANYWHERE): Promise<ScriptedDnsServer> => {
  const seen: SeenQuery[] = [];
  const waiting: Array<{ count: number; resolve: () => void }> = [];

  const take = async (bytes: Uint8Array, transport: "udp" | "tcp", port: number): Promise<readonly Uint8Array[]> => {
    const query = decodeQuery(bytes, transport, port);
    seen.push(query);
    for (const waiter of waiting) if (seen.length >= waiter.count) waiter.resolve();
    const answered = await script(query);
    if (answered === undefined) return [];
    return answered instanceof Uint8Array ? [answered] : answered;
  };

  const { udp, tcp } = await listen(take, place);
  return {
    server: { address: place.hostname, port: udp.port },
    seen,
    received: (count) =>
      seen.length >= count ? Promise.resolve() : new Promise((resolve) => waiting.push({ count, resolve })),
    stop() {
      udp.close();
      tcp.stop(true);
    },
  };
};

type Take = (bytes: Uint8Array, transport: "udp" | "tcp", port: number) => Promise<readonly Uint8Array[]>;

/** When a client has closed its socket, the system reports a refusal, some of them to the next reply: lost, as datagrams are. */
export const sendUdp = (socket: Bun.udp.Socket<"buffer">, reply: Uint8Array, port: number, address: string): void => {
  try {
    if (!socket.closed) socket.send(reply, port, address);
  } catch (error) {
    if (errorCode(error) !== "ECONNREFUSED") throw error;
  }
};

/** The system chooses the UDP port; when its TCP twin is taken, another is tried. */
const listen = async (take: Take, { hostname, port: wantedPort }: Place) => {
  for (let attempt = 1; ; attempt++) {
    const udp = await Bun.udpSocket({
      hostname,
      port: wantedPort,
      socket: {
        async data(socket, bytes, port, address) {
          for (const reply of await take(bytes, "udp", port)) sendUdp(socket, reply, port, address);
        },
        error: () => undefined,
      },
    });
    try {
      return { udp, tcp: listenTcp(take, { hostname, port: udp.port }) };
    } catch (thrown) {
      udp.close();
      if (wantedPort !== 0 || attempt >= PORT_ATTEMPTS_MAX) throw thrown;
    }
  }
};

const listenTcp = (take: Take, { hostname, port }: Place) =>
  Bun.listen<{ received: Buffer }>({
    hostname,
    port,
    socket: {
      open(socket) {
        socket.data = { received: Buffer.alloc(0) };
      },
      async data(socket, chunk) {
        socket.data.received = Buffer.concat([socket.data.received, chunk]);
        const { received } = socket.data;
        const end = received.length < 2 ? Number.POSITIVE_INFINITY : 2 + received.readUInt16BE(0);
        if (received.length < end) return;
        socket.data.received = received.subarray(end);
        const replies = await take(received.subarray(2, end), "tcp", socket.remotePort);
        for (const reply of replies) {
          const length = Buffer.alloc(2);
          length.writeUInt16BE(reply.length);
          socket.write(Buffer.concat([length, reply]));
        }
        socket.flush();
      },
    },
  });

/** Reads a query with a codec that is not the one under test; throws when the bytes are not a query. */
export const decodeQuery = (bytes: Uint8Array, transport: "udp" | "tcp" = "udp", port = 0): SeenQuery => {
  const decoded = packet.decode(Buffer.from(bytes));
  const question = decoded.questions?.[0];
  if (!question) throw new Error("a query without a question");
  const opt = decoded.additionals?.find((record) => record.type === "OPT");
  const { name, type } = question;
  const dnssecOk = ((opt?.flags ?? 0) & packet.DNSSEC_OK) !== 0;
  return { transport, id: decoded.id ?? 0, name, type, ednsBytes: opt?.udpPayloadSize, dnssecOk, port, bytes };
};
