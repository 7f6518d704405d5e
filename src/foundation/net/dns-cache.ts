import type { Clock } from "../base/clock.ts";
import type { DnsResponse } from "./dns.ts";

/** Caches responses for as long as their TTLs allow. A full cache evicts what was unused longest. */
export interface DnsCache {
  /** The response with its remaining TTL and `fromCache` set; undefined when there is none, or it has expired. */
  find(key: string): DnsResponse | undefined;
  /** Caches a response if its outcome may be cached. `sizeBytes` is its size as it was received. */
  keep(key: string, reply: DnsResponse, sizeBytes: number): void;
}

const TTL_S_MIN = 5;
const TTL_S_MAX = 3600;
/** Negative responses are cached for less time than RFC 2308 §5 allows, so that a corrected domain soon becomes deliverable. */
const NEGATIVE_TTL_S_MAX = 300;
/** Failures are cached only to avoid repeating the same query (RFC 2308 §7.1), and are returned as failures. */
const FAILURE_TTL_S = 3;
/** Larger responses are not cached, so that the limit on entries is one on memory too. */
const REPLY_BYTES_MAX = 16_384;

/** One in this number of entries is evicted when the cache is full. */
const EVICTED_SHARE = 64;

interface Entry {
  readonly reply: DnsResponse;
  readonly keptAtMs: number;
  readonly expiresAtMs: number;
}

export const createDnsCache = ({ clock, entriesMax }: { clock: Clock; entriesMax: number }): DnsCache => {
  /** In the order of last use. */
  const entries = new Map<string, Entry>();

  /** Drops many at once: finding the first key of a Map is slow while deleted ones lie before it. */
  const makeRoom = (): void => {
    let left = Math.ceil(entriesMax / EVICTED_SHARE);
    for (const key of entries.keys()) {
      if (left-- === 0) break;
      entries.delete(key);
    }
  };

  return {
    find(key) {
      const entry = entries.get(key);
      if (!entry) return undefined;
      const nowMs = clock.monotonicMs();
      const hasExpired = nowMs >= entry.expiresAtMs;
      // Moving an entry of a large Map takes 5 µs: the order is of no interest while there is room.
      if (hasExpired || entries.size * 2 > entriesMax) entries.delete(key);
      if (hasExpired) return undefined;
      entries.set(key, entry);
      const ageS = Math.floor((nowMs - entry.keptAtMs) / 1000);
      return { ...entry.reply, ttlS: Math.max(0, entry.reply.ttlS - ageS), fromCache: true };
    },

    keep(key, reply, sizeBytes) {
      const keepS = findKeepS(reply);
      if (keepS === undefined || sizeBytes > REPLY_BYTES_MAX || entriesMax < 1) return;
      entries.delete(key);
      if (entries.size >= entriesMax) makeRoom();
      const keptAtMs = clock.monotonicMs();
      entries.set(key, { reply, keptAtMs, expiresAtMs: keptAtMs + keepS * 1000 });
    },
  };
};

const findKeepS = ({ outcome, ttlS }: DnsResponse): number | undefined => {
  switch (outcome) {
    case "response":
      return clamp(ttlS, TTL_S_MAX);
    case "no_data":
    case "nxdomain":
      return clamp(ttlS, NEGATIVE_TTL_S_MAX);
    case "unconfirmed":
    case "servfail":
    case "cname_loop":
      return FAILURE_TTL_S;
    case "refused":
    case "timeout":
    case "malformed":
    case "network_error":
    case "invalid_name":
    case "local_failure":
    case "overloaded":
    case "aborted":
      return undefined;
    default:
      return outcome satisfies never;
  }
};

const clamp = (ttlS: number, maxS: number): number => Math.min(Math.max(ttlS, TTL_S_MIN), maxS);
