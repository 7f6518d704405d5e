import { canonicalIp, clientKey, networkKey } from "../base/cidr.ts";
import type { ReceiverLimits } from "./smtp-receiver-limits.ts";

/** Memory for mails, given out within the ceilings. */
export interface MailMemory {
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
  readonly #limits: ReceiverLimits;
  readonly #clients = new Map<string, ClientUse>();
  /** Connections by network. This machine does not count. */
  readonly #networks = new Map<string, number>();
  #connections = 0;
  #bytes = 0;

  constructor(limits: ReceiverLimits) {
    this.#limits = limits;
  }

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
    const bytesMax = isLocal ? this.#limits.heldBytes : this.#limits.heldBytesPerClient;
    const change = (bytes: number): void => {
      this.#bytes += bytes;
      use.bytes += bytes;
      if (use.connections === 0 && use.bytes === 0) this.#clients.delete(key);
    };
    const canReserve = (bytes: number): boolean =>
      this.#bytes + bytes <= this.#limits.heldBytes && use.bytes + bytes <= bytesMax;
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

  #count(use: ClientUse, network: string | null, change: 1 | -1): void {
    this.#connections += change;
    use.connections += change;
    if (network === null) return;
    const count = (this.#networks.get(network) ?? 0) + change;
    if (count === 0) this.#networks.delete(network);
    else this.#networks.set(network, count);
  }

  /** Whether this client has its share already, of the slots of a client or of a network. */
  #hasShare(client: string): boolean {
    const ofClient = this.#clients.get(clientKey(client))?.connections ?? 0;
    if (isLoopback(client)) return ofClient >= this.#limits.connectionsPerLocalClient;
    const ofNetwork = this.#networks.get(networkKey(client)) ?? 0;
    return ofClient >= this.#limits.connectionsPerClient || ofNetwork >= this.#limits.connectionsPerNetwork;
  }

  /** Whether a slot is free; the last ones only for networks that have none, and for this machine. */
  #hasFreeSlot(client: string): boolean {
    const isNew = isLoopback(client) || !this.#networks.has(networkKey(client));
    return this.#connections < this.#limits.connections - (isNew ? 0 : this.#limits.reservedConnections);
  }
}

/** The address as people write it: no IPv4-mapped form (RFC 4291 §2.5.5.2), no zone. Empty for what is no address. */
export const plainAddress = (address: string): string => canonicalIp(address.split("%", 1)[0] ?? "") ?? "";

const isLoopback = (client: string): boolean => client === "::1" || client.startsWith("127.");
