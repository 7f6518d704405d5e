import { canonicalIp, clientKey, networkKey } from "../base/cidr.ts";
import type { ReceiverLimits } from "./smtp-receiver-rules.ts";
import { err, ok, type Result } from "../base/errors.ts";

/** Memory for mails, given out within the ceilings. */
interface MailMemory {
  /** False when there is no more, for all connections or for this client. */
  reserve(bytes: number): boolean;
  /** Whether `reserve` would succeed now. */
  canReserve(bytes: number): boolean;
  free(bytes: number): void;
}

/** One of the connections that the receiver may have at a time. Memory that it reserved stays reserved after `release`. */
export interface ConnectionSlot extends MailMemory {
  /** Harmless when called twice. */
  release(): void;
}

interface ClientUse {
  connections: number;
  bytes: number;
}

/** Counts connections and reserved memory, of all clients and of each. */
export class ReceiverLoad {
  readonly #clients = new Map<string, ClientUse>();
  /** Connections by network. This machine does not count. */
  readonly #networks = new Map<string, number>();
  #connections = 0;
  #bytes = 0;

  constructor(private readonly limits: ReceiverLimits) {}

  get connections(): number {
    return this.#connections;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** How many clients are counted. */
  get clients(): number {
    return this.#clients.size;
  }

  /** Whether a client would get a slot if another connection ended: it has not used up its own share. */
  isWaiting(client: string): boolean {
    return !this.#hasShare(client) && !this.#hasFreeSlot(client);
  }

  /** A slot for a connection of this client; null when there are too many. */
  enter(client: string): ConnectionSlot | null {
    if (this.#hasShare(client) || !this.#hasFreeSlot(client)) return null;
    const isLocal = isLoopback(client);
    const network = isLocal ? null : networkKey(client);
    const key = clientKey(client);
    const use = this.#clients.get(key) ?? { connections: 0, bytes: 0 };
    this.#clients.set(key, use);
    this.#count(use, network, 1);
    const bytesMax = isLocal ? this.limits.heldBytes : this.limits.heldBytesPerClient;
    const change = (bytes: number) => {
      this.#bytes += bytes;
      use.bytes += bytes;
      if (use.connections === 0 && use.bytes === 0) this.#clients.delete(key);
    };
    const canReserve = (bytes: number) => this.#bytes + bytes <= this.limits.heldBytes && use.bytes + bytes <= bytesMax;
    let isReleased = false;
    return {
      canReserve,
      reserve(bytes) {
        if (!canReserve(bytes)) return false;
        change(bytes);
        return true;
      },
      free: (bytes) => change(-bytes),
      release: () => {
        if (isReleased) return;
        isReleased = true;
        this.#count(use, network, -1);
        change(0);
      },
    };
  }

  #count(use: ClientUse, network: string | null, change: 1 | -1) {
    this.#connections += change;
    use.connections += change;
    if (network === null) return;
    const count = (this.#networks.get(network) ?? 0) + change;
    if (count === 0) this.#networks.delete(network);
    else this.#networks.set(network, count);
  }

  /** Whether this client has its share already, of the slots of a client or of a network. */
  #hasShare(client: string) {
    const ofClient = this.#clients.get(clientKey(client))?.connections ?? 0;
    if (isLoopback(client)) return ofClient >= this.limits.connectionsPerLocalClient;
    const ofNetwork = this.#networks.get(networkKey(client)) ?? 0;
    return ofClient >= this.limits.connectionsPerClient || ofNetwork >= this.limits.connectionsPerNetwork;
  }

  /** Whether a slot is free; the last ones only for networks that have none, and for this machine. */
  #hasFreeSlot(client: string) {
    const isNew = isLoopback(client) || !this.#networks.has(networkKey(client));
    return this.#connections < this.limits.connections - (isNew ? 0 : this.limits.reservedConnections);
  }
}

/** The address as people write it: no IPv4-mapped form (RFC 4291 §2.5.5.2), no zone. Empty for what is no address. */
export const plainAddress = (address: string): string => canonicalIp(address.split("%", 1)[0] ?? "") ?? "";

const isLoopback = (client: string) => client === "::1" || client.startsWith("127.");

/** Why a mail is not accepted: larger than allowed, no memory left for it now, or never received whole. */
export type MailProblem = "too_large" | "no_memory" | "abandoned";

/** The smallest buffer for a mail that comes in pieces. */
const FIRST_BYTES = 16 * 1024;

/**
 * The content of one mail while it comes in.
 *
 * Pieces are copied into one buffer that doubles, because a client decides how small they are: a million pieces of
 * four bytes kept apart would need a hundred times their size. A mail of one piece is not copied. After a problem
 * nothing more is stored; further bytes are only counted.
 */
export class MailBuffer {
  /** Bytes received, stored or not. */
  bytesSeen = 0;
  private buffer: Uint8Array = new Uint8Array(0);
  private length = 0;
  private problem: MailProblem | null = null;
  private isWhole: boolean = false;
  private reservedBytes = 0;

  constructor(
    private readonly memory: Pick<MailMemory, "reserve" | "free">,
    private readonly bytesMax: number,
  ) {}

  add(piece: Uint8Array): void {
    this.bytesSeen += piece.length;
    if (this.problem !== null || piece.length === 0) return;
    if (this.bytesSeen > this.bytesMax) this.fail("too_large");
    else if (!this.append(piece)) this.fail("no_memory");
  }

  /** The whole mail, or why there is none. `release` gives its memory back when it is no longer needed. */
  finish(): Result<Uint8Array, MailProblem> {
    if (this.problem !== null) return err(this.problem);
    this.isWhole = true;
    return ok(this.buffer.subarray(0, this.length));
  }

  /** Gives a mail up that did not come in whole. A whole one stays. */
  abandon(): void {
    if (!this.isWhole && this.problem === null) this.fail("abandoned");
  }

  release(): void {
    this.buffer = new Uint8Array(0);
    this.length = 0;
    this.memory.free(this.reservedBytes);
    this.reservedBytes = 0;
  }

  private append(piece: Uint8Array): boolean {
    if (this.length === 0) {
      if (!this.reserve(piece.length)) return false;
      this.buffer = piece;
      this.length = piece.length;
      return true;
    }
    const needed = this.length + piece.length;
    if (needed > this.buffer.length && !this.grow(needed)) return false;
    this.buffer.set(piece, this.length);
    this.length = needed;
    return true;
  }

  private grow(needed: number): boolean {
    const capacity = Math.min(Math.max(needed, this.length * 2, FIRST_BYTES), this.bytesMax);
    if (!this.reserve(capacity - this.reservedBytes)) return false;
    const grown = new Uint8Array(capacity);
    grown.set(this.buffer.subarray(0, this.length));
    this.buffer = grown;
    return true;
  }

  private reserve(bytes: number): boolean {
    if (!this.memory.reserve(bytes)) return false;
    this.reservedBytes += bytes;
    return true;
  }

  private fail(problem: MailProblem): void {
    this.problem = problem;
    this.release();
  }
}
