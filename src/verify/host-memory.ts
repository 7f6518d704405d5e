import { BoundedMap } from "../foundation/base/bounded-map.ts";
import type { Clock } from "../foundation/base/clock.ts";
import type { PositiveControl } from "./findings.ts";

/** Where a recipient was accepted: a host may treat each egress and each domain differently. */
export interface AcceptancePlace {
  readonly domain: string;
  readonly host: string;
  readonly egress: string;
}

interface Refusal {
  readonly atMs: number;
}

interface Acceptance extends Refusal {
  readonly mailbox: string;
}

/** Short, because a host that accepts from us now may block us soon, and because an address is kept no longer than needed. */
const KEEP_MS = 5 * 60_000;
const ENTRIES_MAX = 20_000;

const placeKey = ({ domain, host, egress }: AcceptancePlace): string => `${domain} ${host} ${egress}`;
const hostKeyOf = ({ host, egress }: Omit<AcceptancePlace, "domain">): string => `${host} ${egress}`;

/**
 * The last recipient of each domain that a mail host accepted from an egress: it shows that the host does not refuse us. A
 * host that then blocks us or limits our rate must show it anew. In memory: losing an entry costs one probe. Any use
 * removes what counts no longer.
 */
export class RecentAcceptances {
  readonly #acceptances = new BoundedMap<string, Acceptance>(ENTRIES_MAX);
  readonly #refusals = new BoundedMap<string, Refusal>(ENTRIES_MAX);

  constructor(private readonly clock: Clock) {}

  /** Another recipient than `mailbox` that was accepted there lately; null when there is none. */
  find(place: AcceptancePlace, mailbox: string): PositiveControl | null {
    this.#dropExpired();
    const known = this.#acceptances.get(placeKey(place));
    if (known === undefined || known.mailbox === mailbox) return null;
    const refused = this.#refusals.get(hostKeyOf(place));
    if (refused !== undefined && refused.atMs >= known.atMs) return null;
    const ageMs = this.clock.monotonicMs() - known.atMs;
    const recipient = known.mailbox === postmasterOf(place.domain) ? "postmaster" : "another";
    return { recipient, age_s: Math.round(ageMs / 1000) };
  }

  noteAccepted(place: AcceptancePlace, mailbox: string): void {
    this.#dropExpired();
    this.#acceptances.set(placeKey(place), { mailbox, atMs: this.clock.monotonicMs() });
  }

  /** The host refuses us: what it accepted until now proves nothing any more. */
  noteRefused(host: Omit<AcceptancePlace, "domain">): void {
    this.#dropExpired();
    this.#refusals.set(hostKeyOf(host), { atMs: this.clock.monotonicMs() });
  }

  get size(): number {
    return this.#acceptances.size + this.#refusals.size;
  }

  /** Entries are in the order of their times: the first that still counts ends the search. */
  #dropExpired(): void {
    const sinceMs = this.clock.monotonicMs() - KEEP_MS;
    for (const entries of [this.#acceptances, this.#refusals] as const)
      for (const [key, { atMs }] of entries) {
        if (atMs > sinceMs) break;
        entries.delete(key);
      }
  }
}

/** The mailbox that every domain with mail has (RFC 5321 §4.5.1). */
export const postmasterOf = (domain: string): string => `postmaster@${domain}`;

/** What a mail host replied to a random recipient of a domain, and how long ago. */
export interface CachedCatchAll {
  readonly state: "yes" | "no";
  readonly ageMs: number;
}

interface CatchAllEntry {
  readonly state: "yes" | "no";
  readonly setAtMs: number;
}

/** Long enough for the next addresses of the same domain, short enough for a mistake not to matter. */
const CATCH_ALL_KEEP_MS = 15 * 60_000;
const CATCH_ALLS_MAX = 50_000;

/**
 * Whether a domain is a catch-all at a mail host, so that not every address costs the server a second recipient. Only
 * what a server replied for certain belongs here. In memory: losing an entry costs one probe.
 */
export class CatchAllCache {
  readonly #entries = new BoundedMap<string, CatchAllEntry>(CATCH_ALLS_MAX);

  constructor(private readonly clock: Clock) {}

  find(domain: string, mailHost: string): CachedCatchAll | null {
    const key = `${domain} ${mailHost}`;
    const entry = this.#entries.get(key);
    if (entry === undefined) return null;
    const ageMs = this.clock.monotonicMs() - entry.setAtMs;
    if (ageMs < CATCH_ALL_KEEP_MS) return { state: entry.state, ageMs };
    this.#entries.delete(key);
    return null;
  }

  set(domain: string, mailHost: string, state: "yes" | "no"): void {
    this.#entries.set(`${domain} ${mailHost}`, { state, setAtMs: this.clock.monotonicMs() });
  }

  get size(): number {
    return this.#entries.size;
  }
}
