import type { Clock } from "../base/clock.ts";
import { type OnBehalfOf, OPERATOR } from "../base/on-behalf-of.ts";
import { waitFor } from "../base/wait.ts";
import {
  type DnsResponse,
  type DnsResolver,
  type DnsServer,
  type DnsType,
  emptyResponse,
  type ResolveOptions,
} from "./dns.ts";
import { DnsQuerier, type DnsTimeouts, CNAMES_MAX } from "./dns-querier.ts";
import { DnsLimiter, type DnsTicket } from "./dns-limiter.ts";
import { normalizeName } from "./dns-name.ts";
import { createDnsTransport } from "./dns-transport.ts";

export interface DnsResolverOptions {
  /** Queried in this order; at least one. */
  readonly servers: readonly DnsServer[];
  readonly clock: Clock;
  /** A random number from 0 to 65535; cryptographic by default. */
  readonly random16?: () => number;
  readonly timeouts?: Partial<DnsTimeouts>;
  /** Cached responses; 20,000 by default, 0 for none. */
  readonly cacheEntriesMax?: number;
  /** Concurrent queries, each with one socket; 256 by default. */
  readonly underWayMax?: number;
  /** Queries that may wait; 20,000 by default. */
  readonly waitingMax?: number;
}

const DEFAULT_TIMEOUTS: DnsTimeouts = { firstAttemptMs: 2000, retransmitMs: 4000, tcpMs: 4000, totalMs: 10_000 };
const CACHE_ENTRIES_MAX = 20_000;
const UNDER_WAY_MAX = 256;
const WAITING_MAX = 20_000;

/**
 * Creates the client of recursive name servers. Equal queries at the same time are sent once; responses are
 * kept as the DNS allows. `close` ends what is under way with the outcome `aborted`, and every later query too.
 */
export const createDnsResolver = (options: DnsResolverOptions): DnsResolver & { close(): void } => {
  const { servers, clock, random16 = createRandom16() } = options;
  const timeouts = { ...DEFAULT_TIMEOUTS, ...options.timeouts };
  const transport = createDnsTransport({ clock });
  const querier = new DnsQuerier({ servers, transport, clock, random16, timeouts });
  const cache = createDnsCache({ clock, entriesMax: options.cacheEntriesMax ?? CACHE_ENTRIES_MAX });
  const { underWayMax = UNDER_WAY_MAX, waitingMax = WAITING_MAX } = options;
  const limiter = new DnsLimiter({ clock, underWayMax, waitingMax });
  const underWay = new Map<string, { readonly ticket: DnsTicket; readonly reply: Promise<DnsResponse> }>();

  const resolveAfresh = async (ticket: DnsTicket, key: string, { name, type }: Question): Promise<DnsResponse> => {
    const hasEntered = await ticket.entered;
    try {
      if (!hasEntered) return emptyResponse(name, type, "overloaded");
      const { reply, sizeBytes } = await resolveChain(querier, { name, type, deadlineMs: ticket.deadlineMs() });
      cache.keep(key, reply, sizeBytes);
      return reply;
    } finally {
      underWay.delete(key);
      if (hasEntered) ticket.leave();
    }
  };

  const share = (question: Question, who: OnBehalfOf): Promise<DnsResponse> => {
    const key = `${question.type} ${question.name}`;
    const kept = cache.find(key);
    if (kept) return Promise.resolve(kept);
    const deadlineMs = clock.monotonicMs() + timeouts.totalMs;
    const known = underWay.get(key);
    known?.ticket.join(who, deadlineMs);
    if (known !== undefined) return known.reply;
    const ticket = limiter.enter(who, deadlineMs);
    const reply = resolveAfresh(ticket, key, question);
    underWay.set(key, { ticket, reply });
    return reply;
  };

  /** Waits for the shared response within this caller's limits; the other callers are not affected. */
  const shareWithin = async (question: Question, options: ResolveOptions): Promise<DnsResponse> => {
    const { signal, timeoutMs, onBehalfOf = OPERATOR } = options;
    if (signal?.aborted) return emptyResponse(question.name, question.type, "aborted");
    const shared = share(question, onBehalfOf);
    if (signal === undefined && timeoutMs === undefined) return shared;
    const waited = await waitFor(clock, shared, options);
    return waited.ok ? waited.value : emptyResponse(question.name, question.type, waited.error);
  };

  return {
    async resolve<T extends DnsType>(name: string, type: T, options: ResolveOptions = {}): Promise<DnsResponse<T>> {
      const startedMs = clock.monotonicMs();
      const normalized = normalizeName(name);
      const response =
        normalized === undefined
          ? emptyResponse(name, type, "invalid_name")
          : await shareWithin({ name: normalized, type }, options);
      return { ...response, elapsedMs: Math.round(clock.monotonicMs() - startedMs) } as DnsResponse<T>;
    },
    close: () => transport.close(),
  };
};

interface Question {
  readonly name: string;
  readonly type: DnsType;
}

/** Queries a name, and the target of an alias when a server responds with the alias only (RFC 1034 §5.2.2). */
const resolveChain = async (
  querier: DnsQuerier,
  { name, type, deadlineMs }: Question & { readonly deadlineMs: number },
): Promise<{ readonly reply: DnsResponse; readonly sizeBytes: number }> => {
  const cnames: string[] = [];
  let ttlS = Number.POSITIVE_INFINITY;
  let authenticated = true;
  let sizeBytes = 0;

  for (;;) {
    const target = cnames.at(-1) ?? name;
    const result = await querier.query(target, type, deadlineMs);
    const { reading, server } = result;
    sizeBytes += result.sizeBytes;
    authenticated &&= result.isAuthenticated;
    if (!("cnames" in reading)) {
      return { reply: { ...emptyResponse(name, type, reading.kind), cnames, server }, sizeBytes };
    }
    const isCircle = reading.cnames.some((cname) => cname === name || cnames.includes(cname));
    cnames.push(...reading.cnames);
    ttlS = Math.min(ttlS, reading.ttlS);
    if (isCircle || cnames.length > CNAMES_MAX || (reading.kind === "follow" && cnames.length === CNAMES_MAX)) {
      return { reply: { ...emptyResponse(name, type, "cname_loop"), cnames, server }, sizeBytes };
    }
    if (reading.kind === "follow") continue;
    const { kind: outcome, records } = reading;
    const found = { name, type, outcome, records, cnames, ttlS, authenticated, server };
    return { reply: { ...found, fromCache: false, elapsedMs: 0 } satisfies DnsResponse, sizeBytes };
  }
};

const RANDOM_POOL_NUMBERS = 2048;

/** Draws from the system's generator, many numbers at a time. */
const createRandom16 = (): (() => number) => {
  const pool = new Uint16Array(RANDOM_POOL_NUMBERS);
  let used = RANDOM_POOL_NUMBERS;
  return () => {
    if (used >= RANDOM_POOL_NUMBERS) {
      crypto.getRandomValues(pool);
      used = 0;
    }
    return pool[used++] ?? 0;
  };
};

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

/** Caches responses for as long as their TTLs allow. A full cache evicts what was unused longest. */
export const createDnsCache = ({ clock, entriesMax }: { clock: Clock; entriesMax: number }) => {
  /** In the order of last use. */
  const entries = new Map<
    string,
    { readonly reply: DnsResponse; readonly keptAtMs: number; readonly expiresAtMs: number }
  >();

  /** Drops many at once: finding the first key of a Map is slow while deleted ones lie before it. */
  const makeRoom = () => {
    let left = Math.ceil(entriesMax / EVICTED_SHARE);
    for (const key of entries.keys()) {
      if (left-- === 0) break;
      entries.delete(key);
    }
  };

  return {
    /** The response with its remaining TTL and `fromCache` set; undefined when there is none, or it has expired. */
    find(key: string): DnsResponse | undefined {
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

    /** Caches a response if its outcome may be cached. `sizeBytes` is its size as it was received. */
    keep(key: string, reply: DnsResponse, sizeBytes: number): void {
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

const clamp = (ttlS: number, maxS: number) => Math.min(Math.max(ttlS, TTL_S_MIN), maxS);
