import type { Clock } from "../base/clock.ts";

/**
 * Tells answers of a list from copies that a resolver kept. A resolver counts the time to live of a copy down, so an
 * answer with less than the most ever seen is a copy, and its age is the difference.
 *
 * Holds behind unbound (also with prefetch, serve-expired and cache-min-ttl), BIND, Knot Resolver and PowerDNS. Does not
 * hold behind a resolver that hands copies out with a constant time to live (dnsmasq with `max-ttl`).
 */
export interface Freshness {
  /**
   * Takes note of a positive answer, and returns the monotonic time after which the list itself must have given it:
   * now for a fresh answer, -Infinity when nothing is known of the age of a copy.
   */
  see(name: string, ttlS: number): number;
  /** Until when a copy of an answer that was seen may be in caches, in monotonic milliseconds; -Infinity for none. */
  cachedUntilMs(name: string): number;
}

interface Sighting {
  readonly seenMs: number;
  readonly untilMs: number;
  readonly afterMs: number;
  /** The most seconds to live that an answer for this name had. */
  readonly mostS: number;
  /** Whether `mostS` is what the list itself gives. */
  readonly isSettled: boolean;
}

/** Test points and names of targets whose change is being confirmed. */
const SIGHTINGS_MAX = 20_000;
/** Times to live are whole seconds, rounded up or down on each way. */
const ROUNDING_MS = 1500;
/** Operators set whole minutes; one in sixty copies looks the same. Counts for the first sight of a name only. */
const WHOLE_MINUTE_S = 60;

export const createFreshness = (clock: Clock): Freshness => {
  const sightings = new Map<string, Sighting>();

  const judge = (known: Sighting | undefined, ttlS: number, nowMs: number): Pick<Sighting, "afterMs" | "isSettled"> => {
    if (ttlS === 0) return { afterMs: nowMs, isSettled: known?.isSettled ?? false };
    if (known === undefined) {
      const isSettled = ttlS % WHOLE_MINUTE_S === 0;
      return { afterMs: isSettled ? nowMs : Number.NEGATIVE_INFINITY, isSettled };
    }
    const untilMs = nowMs + ttlS * 1000;
    if (nowMs < known.untilMs && untilMs <= known.untilMs + ROUNDING_MS) return known;
    const isExpired = nowMs >= known.untilMs;
    const isMost = ttlS >= known.mostS && (known.isSettled || isExpired);
    const ageBoundMs = known.isSettled ? nowMs - Math.max(0, known.mostS - ttlS) * 1000 : Number.NEGATIVE_INFINITY;
    const renewedMs = isExpired ? known.untilMs : known.seenMs;
    return {
      afterMs: isMost ? nowMs : Math.max(known.afterMs, ageBoundMs, renewedMs),
      isSettled: known.isSettled || isExpired,
    };
  };

  return {
    see(name, ttlS) {
      const nowMs = clock.monotonicMs();
      const known = sightings.get(name);
      const { afterMs, isSettled } = judge(known, ttlS, nowMs);
      sightings.delete(name);
      for (const oldest of sightings.keys()) {
        if (sightings.size < SIGHTINGS_MAX) break;
        sightings.delete(oldest);
      }
      const mostS = Math.max(ttlS, known?.mostS ?? 0);
      sightings.set(name, { seenMs: nowMs, untilMs: nowMs + ttlS * 1000, afterMs, mostS, isSettled });
      return afterMs;
    },
    cachedUntilMs: (name) => sightings.get(name)?.untilMs ?? Number.NEGATIVE_INFINITY,
  };
};
