import type { Clock } from "../base/clock.ts";

/** What a mail host said to a random recipient of a domain, and how long ago. */
export interface CachedCatchAll {
  readonly state: "yes" | "no";
  readonly ageMs: number;
}

interface Entry {
  readonly state: "yes" | "no";
  /** Of the monotonic clock. */
  readonly keptAtMs: number;
}

/** Long enough for the next addresses of the same domain, short enough for a mistake not to matter. */
const KEEP_MS = 15 * 60_000;
const ENTRIES_MAX = 50_000;

/**
 * Remembers for a while whether a domain is a catch-all at a mail host, so that not every address costs the server a
 * second recipient. Only what a server said for certain is remembered. In memory: forgetting costs one question.
 */
export const createCatchAllCache = (clock: Clock) => {
  const entries = new Map<string, Entry>();
  const key = (domain: string, mailHost: string): string => `${domain} ${mailHost}`;

  return {
    find(domain: string, mailHost: string): CachedCatchAll | null {
      const entry = entries.get(key(domain, mailHost));
      if (entry === undefined) return null;
      const ageMs = clock.monotonicMs() - entry.keptAtMs;
      if (ageMs < KEEP_MS) return { state: entry.state, ageMs };
      entries.delete(key(domain, mailHost));
      return null;
    },

    keep(domain: string, mailHost: string, state: "yes" | "no"): void {
      const [oldest] = entries.keys();
      if (entries.size >= ENTRIES_MAX && oldest !== undefined) entries.delete(oldest);
      entries.delete(key(domain, mailHost));
      entries.set(key(domain, mailHost), { state, keptAtMs: clock.monotonicMs() });
    },

    size: (): number => entries.size,
  };
};

export type CatchAllCache = ReturnType<typeof createCatchAllCache>;
