import { ClockWatch } from "../../foundation/base/clock.ts";
import { Recurring } from "../../foundation/base/recurring.ts";
import { drain } from "../../foundation/base/wait.ts";
import type { Runtime } from "../../foundation/db/runtime.ts";
import { AttemptRecorder } from "./attempt-recorder.ts";
import { type DeliverySlot, DeliverySlots, type QueuedEndpoint, queuedEndpointOf } from "./delivery-slots.ts";
import { type Delivery, queueKey, type WebhookEndpoint } from "./delivery-store.ts";
import type { Sender } from "./send.ts";
import { type HoldDeps, Holds } from "./holds.ts";
import { EVENTS_AT_ONCE_MAX, OutboxRelay, type OutboxRelayDeps } from "./event-store.ts";

export interface DispatcherDeps extends OutboxRelayDeps, HoldDeps {
  readonly send: Sender;
}

/** Channels that a maintenance window holds, and those that one has held. */
interface Scanned {
  readonly held: QueuedEndpoint[];
  readonly released: QueuedEndpoint[];
}

/** A queue releases its slot after this many deliveries, so that a long one does not delay others. */
const SENT_IN_A_ROW_MAX = 100;
/** Interval between polls of the outbox and of due deliveries. */
export const POLL_MS = 1_000;
/** Endpoints examined in one poll; the next poll continues after them. */
const SCANNED_AT_ONCE_MAX = 2_000;
const DRAIN_MS_MAX = 2_000;
/** Pause of a queue after an attempt that could not be recorded (disk full): the attempt is repeated, but not in a loop. */
export const COOLDOWN_MS = 60_000;
/** With this many such queues nothing else could be recorded either, and nothing is sent. */
const COOLDOWNS_MAX = 256;

/**
 * Sends events from the outbox to their URLs. All state is in the rows: an attempt that a killed process did not record
 * is repeated with the same id. Events of one account and mode about one subject are sent to a URL in order; many
 * subjects and URLs are served concurrently, as `DeliverySlots` allows.
 */
export class Dispatcher {
  readonly #relay: OutboxRelay;
  readonly #recorder: AttemptRecorder;
  readonly #slots: DeliverySlots;
  readonly #holds: Holds;
  readonly #clockWatch: ClockWatch;
  /** Queues being sent. */
  readonly #running = new Map<string, Promise<void>>();
  /** Queues whose last attempt could not be recorded, with the function that cancels their timer. */
  readonly #cooldowns = new Map<string, () => void>();
  /** Endpoints with due deliveries, the longest waiting first. */
  readonly #due = new Map<string, QueuedEndpoint>();
  /** Until when paced and rate-limited endpoints are not called, on the monotonic clock. */
  readonly #quietUntilMs = new Map<string, number>();
  /** The last endpoint examined by `#scan`; null: start from the first. */
  #scanned: WebhookEndpoint | null = null;
  readonly #polling: Recurring;
  readonly #starting: Recurring;
  #isStopped: boolean = true;

  constructor(
    private readonly runtime: Runtime,
    private readonly deps: DispatcherDeps,
  ) {
    this.#relay = new OutboxRelay(runtime, deps);
    this.#recorder = new AttemptRecorder(runtime, deps.store);
    this.#slots = new DeliverySlots(runtime.clock);
    this.#holds = new Holds(runtime, deps);
    this.#clockWatch = new ClockWatch(runtime.clock);
    this.#polling = new Recurring(runtime, { name: "webhook dispatch", run: () => this.#poll(), retryMs: POLL_MS });
    // The next poll retries it.
    this.#starting = new Recurring(runtime, { name: "starting of webhook queues", run: () => this.#startDue() });
  }

  /** The number of queues being sent. */
  get running(): number {
    return this.#running.size;
  }

  start() {
    this.#isStopped = false;
    this.wake();
  }

  /** Starts nothing more and waits briefly for running requests; unfinished ones are repeated after the next start. */
  async stop() {
    this.#isStopped = true;
    this.#due.clear();
    for (const cancel of this.#cooldowns.values()) cancel();
    this.#cooldowns.clear();
    await drain(this.runtime.clock, DRAIN_MS_MAX, [this.#polling.stop(), ...this.#running.values()]);
  }

  /** Polls now instead of within a second. */
  wake() {
    if (!this.#isStopped) void this.#polling.run();
  }

  /** Relays new events, frees slots of slow requests, finds endpoints with due deliveries and starts sending. */
  async #poll() {
    await this.#followClock();
    let relayed = EVENTS_AT_ONCE_MAX;
    while (!this.#isStopped && relayed === EVENTS_AT_ONCE_MAX) relayed = await this.#relay.relay();
    if (this.#isStopped) return POLL_MS;
    const othersWait = [...this.#due.values()].some((due) => !this.#isQuiet(due) && !this.#slots.isSlow(due));
    this.#slots.moveSlow(othersWait);
    const nowMs = this.runtime.clock.monotonicMs();
    for (const [key, untilMs] of this.#quietUntilMs) if (untilMs <= nowMs) this.#quietUntilMs.delete(key);
    await this.#follow(this.#scan());
    this.#startDue();
    return POLL_MS;
  }

  /** Retries keep their wait when the clock is set back. Set forward, they come early, which loses nothing. */
  async #followClock() {
    const stepMs = this.#clockWatch.stepMs();
    if (stepMs >= 0) return;
    this.runtime.log.warn("the system clock was set back; retries of webhooks keep their wait", { by_ms: -stepMs });
    await this.runtime.db.commit((tx) => this.deps.store.shiftTimes(tx, stepMs));
  }

  /** Notes which channels are held, and summarizes what happened where a maintenance window is over. */
  async #follow({ held, released }: Scanned) {
    if (held.length > 0)
      await this.runtime.db.commit((tx) => {
        for (const endpoint of held) this.#holds.hold(tx, endpoint);
      });
    for (const endpoint of released) {
      if (this.#isStopped) return;
      await this.#holds.release(endpoint);
      this.#due.set(endpoint.key, endpoint);
    }
  }

  /** Finds endpoints with due deliveries, a part of them at each poll. Returns the channels that are held or were. */
  #scan(): Scanned {
    const { store } = this.deps;
    const nowMs = this.runtime.clock.nowMs();
    const scanned: Scanned = { held: [], released: [] };
    for (let examined = 0; examined < SCANNED_AT_ONCE_MAX && this.#due.size < SCANNED_AT_ONCE_MAX; examined++) {
      const next = store.endpointAfter(this.#scanned);
      this.#scanned = next ?? null;
      if (next === undefined) break;
      if (next.dueAtMs > nowMs) continue;
      this.#examine(queuedEndpointOf(next), scanned);
    }
    return scanned;
  }

  /** Sorts an endpoint with due deliveries: it is held, it was held, or its deliveries are sent. */
  #examine(endpoint: QueuedEndpoint, { held, released }: Scanned) {
    const isRunning = this.#slots.countOf(endpoint) > 0;
    const state = endpoint.paceMs === 0 ? "none" : this.#holds.stateOf(endpoint);
    if (state === "hold") {
      this.#due.delete(endpoint.key);
      held.push(endpoint);
    } else if (state === "release") {
      // A request that began before the window is recorded first.
      if (!isRunning) released.push(endpoint);
    } else if (!isRunning || this.#nextHead(endpoint) !== undefined) this.#due.set(endpoint.key, endpoint);
  }

  #startDue() {
    for (const [key, endpoint] of this.#due) {
      if (this.#isStopped || this.#slots.isFull || this.#cooldowns.size >= COOLDOWNS_MAX) return null;
      const canStart = !this.#isQuiet(endpoint) && this.#slots.hasFree(endpoint);
      if (canStart && this.#startQueues(endpoint)) this.#due.delete(key);
    }
    return null;
  }

  /** Starts the due queues of an endpoint; false when some have to wait for a slot. */
  #startQueues(endpoint: QueuedEndpoint) {
    for (;;) {
      const head = this.#nextHead(endpoint);
      if (head === undefined) return true;
      const slot = this.#isQuiet(endpoint) ? null : this.#slots.acquire(endpoint);
      if (slot === null) return false;
      const key = queueKey(head);
      this.#running.set(key, this.#runQueue(head, slot));
    }
  }

  /** The first due delivery to an endpoint whose queue is not being sent. */
  #nextHead(endpoint: QueuedEndpoint): Delivery | undefined {
    const limit = this.#slots.countOf(endpoint) + this.#cooldowns.size + 1;
    const heads = this.deps.store.dueHeads(endpoint, this.runtime.clock.nowMs(), limit);
    return heads.find((head) => !this.#running.has(queueKey(head)) && !this.#cooldowns.has(queueKey(head)));
  }

  async #runQueue(head: Delivery, slot: DeliverySlot) {
    const { endpoint } = slot;
    if (endpoint.paceMs > 0) this.#keepQuiet(endpoint, endpoint.paceMs);
    try {
      await this.#sendQueue(head, slot);
    } catch (error) {
      this.#coolDown(head, error);
    }
    this.#running.delete(queueKey(head));
    this.#slots.release(slot);
    if (this.#isStopped) return;
    this.#due.delete(endpoint.key);
    this.#due.set(endpoint.key, endpoint);
    void this.#starting.run();
  }

  /** Sends the deliveries of a queue until one fails. The next is sent while the result of the last is being stored. */
  async #sendQueue(head: Delivery, slot: DeliverySlot) {
    const records: Array<Promise<void>> = [];
    try {
      for (const id of this.deps.store.queue(head, slot.endpoint.paceMs > 0 ? 1 : SENT_IN_A_ROW_MAX))
        if (!(await this.#sendOne(id, slot, records))) break;
    } finally {
      await Promise.all(records);
    }
  }

  /** Sends one delivery; false when the queue must not continue. Skips what was cancelled, moved or paused meanwhile. */
  async #sendOne(id: string, slot: DeliverySlot, records: Array<Promise<void>>) {
    const { store, secrets, send } = this.deps;
    const { endpoint, abort } = slot;
    const delivery = store.find(id);
    if (this.#isStopped || delivery?.status !== "pending" || delivery.url !== endpoint.url) return false;
    if (store.pausedUntil(delivery) > this.runtime.clock.nowMs()) return false;
    if (endpoint.paceMs === 0 && this.#isQuiet(endpoint)) return false;
    if (endpoint.paceMs > 0 && this.#holds.stateOf(endpoint) !== "none") return false;
    this.#slots.beginRequest(slot);
    const { eventId, url, body } = delivery;
    const signing = await secrets.signing(delivery);
    const result = await send({ id: eventId, url, body, secrets: signing, signal: abort.signal });
    const hasResponded = result.httpStatus !== null;
    this.#slots.endRequest(slot, { hasResponded, hasTimedOut: result.timedOut });
    // Aborted to free the slot, which is not a failed attempt.
    if (slot.isPreempted && !hasResponded) return false;
    const record = this.#recorder.record(delivery, result);
    records.push(record);
    if (result.rateLimited && result.retryAfterMs !== null) this.#keepQuietUntil(record, endpoint, result.retryAfterMs);
    return result.delivered && !slot.isPreempted;
  }

  #coolDown(head: Delivery, error: unknown) {
    const { clock, log } = this.runtime;
    log.error("could not send or record a webhook", { id: head.id, wait_ms: COOLDOWN_MS, error });
    if (this.#isStopped) return;
    const end = () => {
      this.#cooldowns.delete(queueKey(head));
      this.wake();
    };
    this.#cooldowns.set(queueKey(head), clock.after(COOLDOWN_MS, end));
  }

  #isQuiet({ key }: QueuedEndpoint) {
    return (this.#quietUntilMs.get(key) ?? 0) > this.runtime.clock.monotonicMs();
  }

  /** Stops the other queues of a rate-limited endpoint until its pause is stored, or for as long as it asked. */
  #keepQuietUntil(stored: Promise<void>, endpoint: QueuedEndpoint, forMs: number) {
    const beforeMs = this.#quietUntilMs.get(endpoint.key) ?? 0;
    this.#keepQuiet(endpoint, forMs);
    void stored.then(
      () => this.#quietUntilMs.set(endpoint.key, beforeMs),
      () => undefined,
    );
  }

  #keepQuiet({ key }: QueuedEndpoint, forMs: number) {
    const untilMs = this.runtime.clock.monotonicMs() + forMs;
    this.#quietUntilMs.set(key, Math.max(this.#quietUntilMs.get(key) ?? 0, untilMs));
  }
}
