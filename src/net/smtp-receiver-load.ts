import { isIPv6 } from "node:net";
import ipaddr from "ipaddr.js";
import type { ReceiverLimits } from "./smtp-receiver-limits.ts";

/** The room of one connection. */
export interface Place {
  /** Reserves memory for a mail; false when there is none left, for all or for this client. */
  hold(bytes: number): boolean;
  /** Gives back what `hold` reserved. */
  letGo(bytes: number): void;
  /** Whether so much more could be held now. */
  hasRoomFor(bytes: number): boolean;
  /** Gives the connection's place back. What is held stays held. Harmless when done twice. */
  leave(): void;
}

interface Share {
  connections: number;
  bytes: number;
}

/** Counts connections and held bytes, of all clients and of each. */
export const createReceiverLoad = (limits: ReceiverLimits) => {
  const shares = new Map<string, Share>();
  /** Connections by network. This machine is none. */
  const networks = new Map<string, number>();
  const all: Share = { connections: 0, bytes: 0 };

  const forget = (key: string, share: Share) => {
    if (share.connections === 0 && share.bytes === 0) shares.delete(key);
  };

  const countIn = (network: string, change: 1 | -1): void => {
    const count = (networks.get(network) ?? 0) + change;
    if (count === 0) networks.delete(network);
    else networks.set(network, count);
  };

  /** Whether this client has its share already, of the places of a client or of a network. */
  const hasShare = (client: string): boolean => {
    const ofClient = shares.get(clientKey(client))?.connections ?? 0;
    if (isLoopback(client)) return ofClient >= limits.connectionsPerLocalClient;
    const ofNetwork = networks.get(networkKey(client)) ?? 0;
    return ofClient >= limits.connectionsPerClient || ofNetwork >= limits.connectionsPerNetwork;
  };

  /** Whether a place is free; the last ones only for networks that have none, and for this machine. */
  const hasPlace = (client: string): boolean => {
    const isNew = isLoopback(client) || !networks.has(networkKey(client));
    return all.connections < limits.connections - (isNew ? 0 : limits.reservedConnections);
  };

  return {
    /** Whether a client would get a place if somebody left: it has not had its share. */
    isWaiting: (client: string): boolean => !hasShare(client) && !hasPlace(client),
    /** A place for a connection of this client; null when there are too many. */
    enter(client: string): Place | null {
      const isLocal = isLoopback(client);
      const key = clientKey(client);
      const network = isLocal ? null : networkKey(client);
      const bytesMax = isLocal ? limits.heldBytes : limits.heldBytesPerClient;
      if (hasShare(client) || !hasPlace(client)) return null;
      const share = shares.get(key) ?? { connections: 0, bytes: 0 };
      shares.set(key, share);
      if (network !== null) countIn(network, 1);
      all.connections++;
      share.connections++;
      let hasLeft = false;
      const hasRoomFor = (bytes: number) => all.bytes + bytes <= limits.heldBytes && share.bytes + bytes <= bytesMax;
      return {
        hasRoomFor,
        hold(bytes) {
          if (!hasRoomFor(bytes)) return false;
          all.bytes += bytes;
          share.bytes += bytes;
          return true;
        },
        letGo(bytes) {
          all.bytes -= bytes;
          share.bytes -= bytes;
          forget(key, share);
        },
        leave() {
          if (hasLeft) return;
          hasLeft = true;
          all.connections--;
          share.connections--;
          if (network !== null) countIn(network, -1);
          forget(key, share);
        },
      };
    },

    connections: (): number => all.connections,
    bytes: (): number => all.bytes,
    /** How many clients are being counted. */
    clients: (): number => shares.size,
  };
};

export type ReceiverLoad = ReturnType<typeof createReceiverLoad>;

/** The address as people write it: no IPv4-mapped form (RFC 4291 §2.5.5.2), no zone. */
export const plainAddress = (address: string): string => {
  const bare = address.split("%", 1)[0] ?? "";
  return isIPv6(bare) ? ipaddr.process(bare).toString() : bare;
};

/** What counts as one client: an IPv4 address, or the 64 bits of an IPv6 address that one customer commonly owns. */
export const clientKey = (client: string): string => {
  if (!isIPv6(client)) return client;
  const groups = ipaddr.IPv6.parse(client).toNormalizedString().split(":");
  return `${groups.slice(0, 4).join(":")}::/64`;
};

/** The network of a client: its /24, or the /48 of an IPv6 address, which is what one site commonly gets. */
const networkKey = (client: string): string => {
  if (!isIPv6(client)) return client.slice(0, client.lastIndexOf("."));
  const groups = ipaddr.IPv6.parse(client).toNormalizedString().split(":");
  return `${groups.slice(0, 3).join(":")}::/48`;
};

const isLoopback = (client: string): boolean => client === "::1" || client.startsWith("127.");
