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
  const all: Share = { connections: 0, bytes: 0 };

  const forget = (key: string, share: Share) => {
    if (share.connections === 0 && share.bytes === 0) shares.delete(key);
  };

  return {
    /** A place for a connection of this client; null when there are too many. */
    enter(client: string): Place | null {
      const isLocal = isLoopback(client);
      const key = clientKey(client);
      const share = shares.get(key) ?? { connections: 0, bytes: 0 };
      const connectionsMax = isLocal ? limits.connectionsPerLocalClient : limits.connectionsPerClient;
      const bytesMax = isLocal ? limits.heldBytes : limits.heldBytesPerClient;
      if (all.connections >= limits.connections || share.connections >= connectionsMax) return null;
      shares.set(key, share);
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

const isLoopback = (client: string): boolean => client === "::1" || client.startsWith("127.");
