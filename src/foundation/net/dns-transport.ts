import { errorCode } from "../base/errors.ts";
import type { Clock } from "../base/clock.ts";
import type { DnsServer } from "./dns.ts";
import { type EncodedQuery, decodeMessage, type DnsMessage, HEADER_BYTES, RCODES, uint16At } from "./dns-message.ts";
import { type DnsSocket, DnsSockets, type SentQuery } from "./dns-sockets.ts";
import { isLocalError, isOutOfDescriptors, isShortage } from "./connector.ts";
import { MalformedMessage, readName } from "./dns-name.ts";

/** How one attempt at one server ended. A `message` is a response to this very query. */
export type DnsExchange = DnsPacketMatch | { readonly kind: "timeout" | "network_error" | "local_failure" | "aborted" };

/** One query on its way: where to, what, and for how long. */
interface DnsAttempt {
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
  const underWay = new Set<{ end(exchange: DnsExchange): void }>();
  const sockets = new DnsSockets(clock);
  let isClosed = false;

  return {
    udp(attempt) {
      const exchange = new UdpExchange(attempt, { clock, sockets, underWay });
      if (isClosed) exchange.end({ kind: "aborted" });
      else exchange.begin();
      return exchange.ended;
    },

    async tcp({ server, query, timeoutMs }) {
      const ending = createEnding();
      underWay.add(ending);
      ending.onEnd(() => underWay.delete(ending));
      ending.onEnd(clock.after(timeoutMs, () => ending.end({ kind: "timeout" })));
      if (isClosed) ending.end({ kind: "aborted" });
      const receive = (message: Uint8Array) => {
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

interface UdpSurroundings {
  readonly clock: Clock;
  readonly sockets: DnsSockets;
  readonly underWay: Set<{ end(exchange: DnsExchange): void }>;
}

/** One attempt over UDP. The first result counts, then everything it held is released. */
class UdpExchange implements SentQuery {
  readonly ended: Promise<DnsExchange>;
  readonly #resolve: (exchange: DnsExchange) => void;
  #socket: DnsSocket | null = null;
  #cancelTimeout: () => void = nothing;
  #cancelRetry: () => void = nothing;
  #isOver: boolean = false;
  #receivedNoise: boolean = false;
  #isShort: boolean = false;

  constructor(
    private readonly attempt: DnsAttempt,
    private readonly surroundings: UdpSurroundings,
  ) {
    const { promise, resolve } = Promise.withResolvers<DnsExchange>();
    this.ended = promise;
    this.#resolve = resolve;
  }

  get id(): number {
    return this.attempt.query.id;
  }

  get packet(): Uint8Array {
    return this.attempt.query.bytes;
  }

  begin(): void {
    const { clock, underWay } = this.surroundings;
    underWay.add(this);
    this.#cancelTimeout = clock.after(this.attempt.timeoutMs, () => this.#expire());
    this.#send();
  }

  end(exchange: DnsExchange): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.surroundings.underWay.delete(this);
    this.#cancelTimeout();
    this.#cancelRetry();
    this.#socket?.leave(this);
    this.#resolve(exchange);
  }

  receive(packet: Uint8Array): void {
    const response = matchPacket(packet, this.attempt.query);
    if (response.kind === "noise") this.#receivedNoise = true;
    else if (response.kind !== "foreign") this.end(response);
  }

  fail(): void {
    this.end({ kind: "network_error" });
  }

  /** Waits for a descriptor where there is none: others are closed in a moment. */
  failToSend(error: unknown): void {
    if (this.#isOver) return;
    this.#socket = null;
    const code = errorCode(error);
    if (!isShortage(code)) {
      this.end({ kind: isLocalError(code) ? "local_failure" : "network_error" });
      return;
    }
    this.#isShort = true;
    this.#cancelRetry = this.surroundings.clock.after(SHORTAGE_AGAIN_MS, () => {
      this.#isShort = false;
      this.#send();
    });
  }

  #send() {
    this.#socket = this.surroundings.sockets.socketFor(this.attempt.server, this.id);
    this.#socket.carry(this);
  }

  #expire() {
    if (this.#isShort) this.end({ kind: "local_failure" });
    else this.end({ kind: this.#receivedNoise ? "malformed" : "timeout" });
  }
}

const nothing = () => undefined;

/** The end of one attempt over TCP: the first result counts, then everything it held is released. */
interface Ending {
  readonly ended: Promise<DnsExchange>;
  end(exchange: DnsExchange): void;
  isOver(): boolean;
  /** Runs `release` at the end, or at once when that is past. */
  onEnd(release: () => void): void;
}

const createEnding = (): Ending => {
  const { promise, resolve } = Promise.withResolvers<DnsExchange>();
  const releases: Array<() => void> = [];
  let isOver = false;
  const end = (exchange: DnsExchange) => {
    if (isOver) return;
    isOver = true;
    for (const release of releases) release();
    resolve(exchange);
  };
  return {
    ended: promise,
    isOver: () => isOver,
    end,
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

const connectTcp = ({ server, query, receive, ending }: Channel) => {
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

/**
 * What a packet is to the query it came in for.
 *
 * - `foreign`: not a response to this query (id, direction, question): to another one, or forged.
 * - `noise`: carries our id, but its question cannot be read.
 * - `case_changed`: our question, its letters in another case than we sent: forged, or by a server that rewrites names.
 * - `truncated`: ours, to be queried again over TCP (RFC 1035 §4.2.1).
 * - `malformed`: ours, but not a valid message.
 */
type DnsPacketMatch =
  | { readonly kind: "foreign" | "noise" | "case_changed" | "truncated" | "malformed" }
  | { readonly kind: "message"; readonly message: DnsMessage };

/** Matches a packet with the query (RFC 5452 §3) and decodes it. Never throws, whatever the bytes. */
export const matchPacket = (bytes: Uint8Array, query: EncodedQuery): DnsPacketMatch => {
  if (bytes.length < HEADER_BYTES) return { kind: "foreign" };
  const flags = uint16At(bytes, 2);
  const isResponse = (flags & 0x8000) !== 0;
  const opcode = (flags >> 11) & 0x0f;
  if (uint16At(bytes, 0) !== query.id || !isResponse || opcode !== 0) return { kind: "foreign" };

  const questions = uint16At(bytes, 4);
  const mayOmitQuestion = ERRORS_WITHOUT_QUESTION.has(flags & 0x0f);
  if (questions === 0 && mayOmitQuestion) return decode(bytes, HEADER_BYTES);
  if (questions !== 1) return { kind: "noise" };

  const question = compareQuestion(bytes, query);
  if (question !== "same") return { kind: question };
  if ((flags & 0x0200) !== 0) return { kind: "truncated" };
  return decode(bytes, query.questionEnd);
};

/** Servers that do not understand a query cannot always repeat its question. None of these is a statement about the name. */
const ERRORS_WITHOUT_QUESTION: ReadonlySet<number> = new Set([
  RCODES.FORMERR,
  RCODES.SERVFAIL,
  RCODES.NOTIMP,
  RCODES.REFUSED,
]);

const decode = (bytes: Uint8Array, questionEnd: number): DnsPacketMatch => {
  const decoded = decodeMessage(bytes, questionEnd);
  return decoded.ok ? { kind: "message", message: decoded.value } : { kind: "malformed" };
};

const compareQuestion = (bytes: Uint8Array, query: EncodedQuery): "same" | "case_changed" | "foreign" | "noise" => {
  const { bytes: sent, questionEnd } = query;
  if (bytes.length >= questionEnd && areEqual(bytes, sent, HEADER_BYTES, questionEnd)) return "same";
  try {
    const theirs = readName(bytes, HEADER_BYTES);
    if (theirs.next + 4 > bytes.length) return "noise";
    const isOurs =
      theirs.name === readName(sent, HEADER_BYTES).name &&
      theirs.next === questionEnd - 4 &&
      areEqual(bytes, sent, questionEnd - 4, questionEnd);
    return isOurs ? "case_changed" : "foreign";
  } catch (thrown) {
    if (thrown instanceof MalformedMessage) return "noise";
    throw thrown;
  }
};

const areEqual = (left: Uint8Array, right: Uint8Array, start: number, end: number) => {
  for (let index = start; index < end; index++) if (left[index] !== right[index]) return false;
  return true;
};
