import type { Clock } from "../../foundation/base/clock.ts";

interface Observation {
  readonly seenMs: number;
  /** When a cached copy of the record expires. */
  readonly expiresMs: number;
  readonly sentAfterMs: number;
  /** The highest TTL seen for this name. */
  readonly ttlMaxS: number;
  /** Whether `ttlMaxS` is the TTL that the list itself sends. */
  readonly isTtlKnown: boolean;
}

const OBSERVATIONS_MAX = 20_000;
/** TTLs are whole seconds, rounded up or down at every hop. */
const ROUNDING_MS = 1500;
/** Operators set TTLs of whole minutes. One in sixty cached copies looks the same; relevant for the first response only. */
const WHOLE_MINUTE_S = 60;

/**
 * Distinguishes responses of a list from copies in a resolver's cache. A resolver counts the TTL of a cached record down,
 * so a TTL below the highest one seen is a copy, and the difference is its age.
 *
 * True for unbound (also with prefetch, serve-expired and cache-min-ttl), BIND, Knot Resolver and PowerDNS. Not true for
 * a resolver that returns copies with a constant TTL (dnsmasq with `max-ttl`).
 */
export class ResponseFreshness {
  readonly #observations = new Map<string, Observation>();

  constructor(private readonly clock: Clock) {}

  /**
   * Records the TTL of a positive response. Returns the monotonic time after which the list must have sent it: now for a
   * fresh response, -Infinity when the age of a copy is unknown.
   */
  observe(key: string, ttlS: number): number {
    const nowMs = this.clock.monotonicMs();
    const known = this.#observations.get(key);
    const { sentAfterMs, isTtlKnown } = judge(known, ttlS, nowMs);
    this.#observations.delete(key);
    for (const oldest of this.#observations.keys()) {
      if (this.#observations.size < OBSERVATIONS_MAX) break;
      this.#observations.delete(oldest);
    }
    const ttlMaxS = Math.max(ttlS, known?.ttlMaxS ?? 0);
    this.#observations.set(key, { seenMs: nowMs, expiresMs: nowMs + ttlS * 1000, sentAfterMs, ttlMaxS, isTtlKnown });
    return sentAfterMs;
  }

  /** Until when caches may hold a copy of a response that was observed (monotonic); -Infinity for none. */
  cachedUntilMs(key: string): number {
    return this.#observations.get(key)?.expiresMs ?? Number.NEGATIVE_INFINITY;
  }
}

const judge = (
  known: Observation | undefined,
  ttlS: number,
  nowMs: number,
): Pick<Observation, "sentAfterMs" | "isTtlKnown"> => {
  if (ttlS === 0) return { sentAfterMs: nowMs, isTtlKnown: known?.isTtlKnown ?? false };
  if (known === undefined) {
    const isTtlKnown = ttlS % WHOLE_MINUTE_S === 0;
    return { sentAfterMs: isTtlKnown ? nowMs : Number.NEGATIVE_INFINITY, isTtlKnown };
  }
  const expiresMs = nowMs + ttlS * 1000;
  if (nowMs < known.expiresMs && expiresMs <= known.expiresMs + ROUNDING_MS) return known;
  const isExpired = nowMs >= known.expiresMs;
  const isHighest = ttlS >= known.ttlMaxS && (known.isTtlKnown || isExpired);
  const byAgeMs = known.isTtlKnown ? nowMs - Math.max(0, known.ttlMaxS - ttlS) * 1000 : Number.NEGATIVE_INFINITY;
  const renewedMs = isExpired ? known.expiresMs : known.seenMs;
  return {
    sentAfterMs: isHighest ? nowMs : Math.max(known.sentAfterMs, byAgeMs, renewedMs),
    isTtlKnown: known.isTtlKnown || isExpired,
  };
};
