import type { Clock } from "../foundation/base/clock.ts";

/** What a mail host replied to a random recipient of a domain, and how long ago. */
export interface CachedCatchAll {
  readonly state: "yes" | "no";
  readonly ageMs: number;
}

interface Entry {
  readonly state: "yes" | "no";
  readonly setAtMs: number;
}

/** Long enough for the next addresses of the same domain, short enough for a mistake not to matter. */
const KEEP_MS = 15 * 60_000;
const ENTRIES_MAX = 50_000;

/**
 * Whether a domain is a catch-all at a mail host, so that not every address costs the server a second recipient. Only
 * what a server replied for certain belongs here. In memory: losing an entry costs one probe.
 */
export class CatchAllCache {
  readonly #clock: Clock;
  readonly #entries = new Map<string, Entry>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  find(domain: string, mailHost: string): CachedCatchAll | null {
    const key = `${domain} ${mailHost}`;
    const entry = this.#entries.get(key);
    if (entry === undefined) return null;
    const ageMs = this.#clock.monotonicMs() - entry.setAtMs;
    if (ageMs < KEEP_MS) return { state: entry.state, ageMs };
    this.#entries.delete(key);
    return null;
  }

  set(domain: string, mailHost: string, state: "yes" | "no"): void {
    const key = `${domain} ${mailHost}`;
    const [oldest] = this.#entries.keys();
    if (this.#entries.size >= ENTRIES_MAX && oldest !== undefined) this.#entries.delete(oldest);
    this.#entries.delete(key);
    this.#entries.set(key, { state, setAtMs: this.#clock.monotonicMs() });
  }

  get size(): number {
    return this.#entries.size;
  }
}
