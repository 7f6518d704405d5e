import { BoundedMap } from "../../foundation/base/bounded-map.ts";
import type { Clock } from "../../foundation/base/clock.ts";
import type { WebhookEndpoint } from "./delivery-store.ts";
import { channelOf } from "../channels/channels.ts";

/** Concurrent requests in total: the runtime allows 256 for the process, and test calls need some. */
export const FAST_MAX = 144;
export const SLOW_MAX = 96;
/** Fast slots for endpoints that have not responded yet; the others are for those that have. */
export const UNKNOWN_MAX = 112;
/** For one account, and for one host. */
const FAST_PER_OWNER_MAX = 104;
const UNKNOWN_PER_OWNER_MAX = 80;
const SLOW_PER_OWNER_MAX = 64;
/** Concurrent requests to a URL that responds; one to any other. */
export const PER_URL_MAX = 8;
/** A request without a response for this long is slow. */
export const SLOW_AFTER_MS = 1_000;
/** Endpoints whose health is cached; the one used longest ago is evicted. */
const CACHED_MAX = 10_000;

type Health = "responsive" | "unknown" | "slow";

/** An endpoint with pending deliveries, with the keys of its limits. */
export interface QueuedEndpoint extends WebhookEndpoint {
  readonly key: string;
  readonly host: string;
  /** Time between two requests, one at a time; 0: as many as `DeliverySlots` allows. */
  readonly paceMs: number;
}

/** Held by a queue of an endpoint while its deliveries are sent. */
export interface DeliverySlot {
  readonly endpoint: QueuedEndpoint;
  readonly abort: AbortController;
  readonly health: Health;
  pool: "fast" | "slow";
  /** Start of the current request on the monotonic clock. */
  startedMs: number;
  /** Whether the current request was aborted to free the slot for others. */
  isPreempted: boolean;
}

export const queuedEndpointOf = ({ accountId, mode, url }: WebhookEndpoint): QueuedEndpoint => ({
  accountId,
  mode,
  url,
  key: `${accountId} ${mode} ${url}`,
  host: new URL(url).host,
  paceMs: channelOf(url)?.paceMs ?? 0,
});

/**
 * Limits concurrent requests. Endpoints that respond have slots that no others can take. An endpoint whose last request
 * timed out uses a pool of slow slots, and a request that takes long is moved there. When that pool is full and others
 * wait, the request is aborted and repeated later from the slow pool, with its full timeout. So neither many hanging URLs nor an account
 * with many of them delays others for long.
 */
export class DeliverySlots {
  readonly #slots = new Set<DeliverySlot>();
  /** Least recently used first. */
  readonly #health = new BoundedMap<string, Health>(CACHED_MAX);
  /** Slots in use by URL, and by pool in total, by account and by host. */
  readonly #counts = new Map<string, number>();

  constructor(private readonly clock: Clock) {}

  /** Whether no request at all can start. */
  get isFull(): boolean {
    return this.#count("fast ") >= FAST_MAX && this.#count("slow ") >= SLOW_MAX;
  }

  /** Whether `acquire` would return a slot. */
  hasFree(endpoint: QueuedEndpoint): boolean {
    return this.#poolFor(endpoint) !== null;
  }

  /** Whether the last request to an endpoint timed out. */
  isSlow(endpoint: QueuedEndpoint): boolean {
    return this.#healthOf(endpoint) === "slow";
  }

  /** The number of slots that an endpoint holds. */
  countOf({ key }: QueuedEndpoint): number {
    return this.#count(`url ${key}`);
  }

  /** Null while the endpoint has to wait. */
  acquire(endpoint: QueuedEndpoint): DeliverySlot | null {
    const pool = this.#poolFor(endpoint);
    if (pool === null) return null;
    const health = this.#healthOf(endpoint);
    const startedMs = this.clock.monotonicMs();
    const slot = { endpoint, abort: new AbortController(), health, pool, startedMs, isPreempted: false };
    this.#slots.add(slot);
    this.#add(slot, 1);
    return slot;
  }

  release(slot: DeliverySlot) {
    if (this.#slots.delete(slot)) this.#add(slot, -1);
  }

  /** The next request of a slot starts. */
  beginRequest(slot: DeliverySlot) {
    slot.startedMs = this.clock.monotonicMs();
  }

  /** The current request of a slot ended. */
  endRequest(
    { endpoint: { key }, startedMs }: DeliverySlot,
    { hasResponded, hasTimedOut }: { hasResponded: boolean; hasTimedOut: boolean },
  ) {
    this.#health.delete(key);
    const isFast = this.clock.monotonicMs() - startedMs < SLOW_AFTER_MS;
    if (hasTimedOut) this.#health.set(key, "slow");
    else if (hasResponded && isFast) this.#health.set(key, "responsive");
  }

  /** Moves slow requests to the slow pool; aborts them when it is full and others wait. */
  moveSlow(othersWait: boolean) {
    for (const slot of this.#slots) {
      if (slot.pool === "slow" || this.clock.monotonicMs() - slot.startedMs < SLOW_AFTER_MS) continue;
      if (this.#fits("slow", slot.endpoint, SLOW_MAX, SLOW_PER_OWNER_MAX)) {
        this.#add(slot, -1);
        slot.pool = "slow";
        this.#add(slot, 1);
      } else if (othersWait && !slot.isPreempted) {
        slot.isPreempted = true;
        slot.abort.abort();
      }
    }
  }

  #healthOf({ key }: QueuedEndpoint): Health {
    return this.#health.get(key) ?? "unknown";
  }

  #poolFor(endpoint: QueuedEndpoint): DeliverySlot["pool"] | null {
    const health = this.#healthOf(endpoint);
    const perUrl = health === "responsive" && endpoint.paceMs === 0 ? PER_URL_MAX : 1;
    if (this.countOf(endpoint) >= perUrl) return null;
    if (health === "slow") return this.#fits("slow", endpoint, SLOW_MAX, SLOW_PER_OWNER_MAX) ? "slow" : null;
    if (!this.#fits("fast", endpoint, FAST_MAX, FAST_PER_OWNER_MAX)) return null;
    if (health === "responsive") return "fast";
    return this.#fits("unknown", endpoint, UNKNOWN_MAX, UNKNOWN_PER_OWNER_MAX) ? "fast" : null;
  }

  #fits(group: string, { accountId, host }: QueuedEndpoint, max: number, perOwnerMax: number) {
    return (
      this.#count(`${group} `) < max &&
      this.#count(`${group} account ${accountId}`) < perOwnerMax &&
      this.#count(`${group} host ${host}`) < perOwnerMax
    );
  }

  #count(key: string) {
    return this.#counts.get(key) ?? 0;
  }

  #add({ endpoint, pool, health }: DeliverySlot, by: 1 | -1) {
    const groups = [pool, ...(pool === "fast" && health === "unknown" ? ["unknown"] : [])];
    const scopes = ["", `account ${endpoint.accountId}`, `host ${endpoint.host}`];
    const keys = [`url ${endpoint.key}`, ...groups.flatMap((group) => scopes.map((scope) => `${group} ${scope}`))];
    for (const key of keys) {
      const count = this.#count(key) + by;
      if (count === 0) this.#counts.delete(key);
      else this.#counts.set(key, count);
    }
  }
}
