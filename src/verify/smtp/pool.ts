import type { Clock } from "../../foundation/base/clock.ts";
import type { Result } from "../../foundation/base/errors.ts";
import { type OnBehalfOf, OPERATOR, type Priority } from "../../foundation/base/on-behalf-of.ts";
import type { SmtpFailure } from "../../foundation/net/smtp-failure.ts";
import type { SmtpProbe, SmtpSession } from "../../foundation/net/smtp-session.ts";
import {
  type ConnectionGroup,
  type ConnectionLimitOptions,
  ConnectionLimits,
  isInGroup,
  type Pacing,
  type SessionOutcome,
} from "./pacing.ts";
import {
  HostQueue,
  hostKey,
  WaitingHosts,
  type NextProbe,
  type ProbeTarget,
  type QueuedProbe,
  type ServedProbe,
  type Connection,
  cooldownResult,
  isConnectionLimit,
  isUnresponsive,
  type ProbeResult,
  runProbe,
} from "./host-queue.ts";

export interface PoolOptions extends ConnectionLimitOptions {
  readonly open: (target: ProbeTarget) => Promise<Result<SmtpSession, SmtpFailure>>;
  readonly pacing: Pacing;
  /** For one address and port from one egress, under however many host names. */
  readonly connectionsPerHostMax: number;
  readonly rcptPerConnectionMax: number;
}

/** While other hosts wait for a connection, a host with a long queue keeps one no longer than this. */
export const TURN_MS = 5_000;
/** An idle connection stays open this long: the next recipient of the host then costs one round trip. */
export const IDLE_MS = 1_000;
/** A probe is put back this often when the host limits our connections; then its 421 is the result. */
const REQUEUES_MAX = 3;

/** The pool is closing: the probe was not sent. */
export class PoolClosed extends Error {}

/**
 * The SMTP sessions with mail hosts, within limits for all, for each account, address and egress, and for a known provider
 * what it tolerates. A connection serves up to `rcptPerConnectionMax` recipients.
 */
export class ProbePool {
  readonly #limits: ConnectionLimits;
  readonly #queues = new Map<string, HostQueue>();
  /** Queues that wait for any connection. While there are some, no connection stays idle. */
  readonly #waitingHosts = new WaitingHosts();
  /** Queues with idle connections, those that have had them longest first. */
  readonly #withIdle = new Set<HostQueue>();
  readonly #onDrained: Array<() => void> = [];
  #waiting = 0;
  #draining: boolean = false;

  constructor(
    private readonly clock: Clock,
    private readonly options: PoolOptions,
  ) {
    this.#limits = new ConnectionLimits(options);
  }

  /** Probes a host, as soon as the limits permit. Never rejects for what a server does; `PoolClosed` when draining. */
  probe(target: ProbeTarget, probe: SmtpProbe, onBehalfOf: OnBehalfOf = OPERATOR): Promise<ProbeResult> {
    if (this.#draining) return Promise.reject(new PoolClosed());
    return new Promise((resolve, reject) => {
      const queue = this.#queueFor(target);
      queue.add({ probe, onBehalfOf, resolve, reject, requeues: 0 });
      this.#waiting++;
      this.#feed(queue);
    });
  }

  /** The host replied that it limits our rate or has shut us out, or (again) not. */
  notePace(target: ProbeTarget, outcome: Exclude<SessionOutcome, { readonly kind: "unresponsive" }>): void {
    this.options.pacing.note(hostKey(target), outcome);
    const queue = this.#queues.get(hostKey(target)); // The host may accept another connection by now.
    if (queue !== undefined) this.#feed(queue);
  }

  /** The egresses from which a probe would wait: they are at their limit, and no connection from them is idle. */
  fullEgresses(): ReadonlySet<string> {
    return this.#limits.fullEgresses(this.#withIdle);
  }

  /** Sessions that are open or being opened. */
  connections(): number {
    return this.#limits.total;
  }

  /** Probes that wait in queues. */
  waiting(): number {
    return this.#waiting;
  }

  /** Addresses with probes, connections or a pause. */
  hosts(): number {
    return this.#queues.size;
  }

  /** Closes idle connections, rejects waiting probes, and resolves when the last session has ended. */
  drain(): Promise<void> {
    this.#draining = true;
    this.#waitingHosts.takeAll();
    for (const queue of this.#queues.values()) {
      queue.cancelPause?.();
      queue.cancelPause = null;
      for (const queued of queue.takeAll()) {
        this.#waiting--;
        queued.reject(new PoolClosed());
      }
    }
    for (const queue of [...this.#withIdle]) while (queue.hasIdle) this.#closeOldestIdle(queue);
    if (this.#limits.total === 0) return Promise.resolve();
    return new Promise((resolve) => this.#onDrained.push(resolve));
  }

  #queueFor(target: ProbeTarget): HostQueue {
    const key = hostKey(target);
    const queue = this.#queues.get(key) ?? new HostQueue(target);
    this.#queues.set(key, queue);
    return queue;
  }

  /** Starts as many of a queue's probes as the limits permit. */
  #feed(queue: HostQueue): void {
    for (let next = this.#next(queue); next !== undefined; next = this.#next(queue)) {
      queue.active++;
      void this.#work(queue, next);
    }
  }

  /** Takes a probe, with an idle connection or the right to open one; undefined when the queue has to wait. */
  #next(queue: HostQueue): NextProbe | undefined {
    while (queue.waiting > 0) {
      if (this.#isPaused(queue)) return undefined;
      if (queue.hasIdle) {
        const queued = queue.take(this.#limits.mayUse);
        if (queued !== undefined) return { queued, idle: this.#takeIdle(queue) };
      }
      if (queue.active >= this.#admitted(queue) || queue.waiting === 0) return undefined;
      const opened = this.#limits.open(queue);
      if (typeof opened === "object" && "probe" in opened) return { queued: opened.probe, idle: null };
      const group = typeof opened === "object" ? opened : null;
      // A queue that has waited longer may take what is closed here first: everything is checked again.
      if (opened !== "account" && this.#closeIdleOf(group)) continue;
      if (group === null) this.#waitingHosts.add(queue);
      else this.#limits.awaitGroup(queue, group);
      return undefined;
    }
    return undefined;
  }

  /** How many connections the queue may have now; none while it pauses, nor on cooldown, where its probes get a result at once. */
  #admitted(queue: HostQueue): number {
    const admission = this.options.pacing.admit(queue.key);
    switch (admission.kind) {
      case "go":
        return Math.min(this.options.connectionsPerHostMax, admission.connectionsMax);
      case "wait":
      case "pause":
        queue.wakeAfter(this.clock, admission.waitMs, () => {
          this.#feed(queue);
          this.#removeIfEmpty(queue);
        });
        return 0;
      case "cooldown":
        for (const { probe, resolve } of queue.takeAll()) {
          this.#waiting--;
          resolve(cooldownResult(probe, admission, this.clock.nowMs()));
        }
        this.#removeIfEmpty(queue);
        return 0;
      default:
        return admission satisfies never;
    }
  }

  /** Whether nothing may be sent to the host, not even on its open connections; then its probes wait. */
  #isPaused(queue: HostQueue): boolean {
    if (queue.waiting === 0 || this.options.pacing.admit(queue.key).kind !== "pause") return false;
    return this.#admitted(queue) === 0;
  }

  /** Runs a probe, and further ones on its connection. The caller is notified last: its next probe then finds it idle. */
  async #work(queue: HostQueue, { queued, idle }: NextProbe): Promise<void> {
    this.#waiting--;
    this.#limits.use(queued.onBehalfOf);
    const { connection, settle } = await this.#serve(queue, queued, idle);
    const next = connection === null || this.#isPaused(queue) ? undefined : queue.take(this.#limits.mayUse);
    if (next === undefined) this.#release(queue, connection);
    else {
      void this.#work(queue, { queued: next, idle: connection });
      // Where the connection went over to another account, this one may open another.
      if (next.onBehalfOf !== queued.onBehalfOf) this.#wakeWaiting();
    }
    settle();
  }

  async #serve(queue: HostQueue, queued: QueuedProbe, idle: Connection | null): Promise<ServedProbe> {
    const { probe, onBehalfOf, resolve, reject } = queued;
    try {
      const calls = { open: () => this.options.open(queue.target), ended: () => this.#limits.release(onBehalfOf) };
      const { result, connection } = await runProbe(this.clock, probe, { idle, ...calls });
      const { failure } = result;
      if (isUnresponsive(failure)) this.options.pacing.note(queue.key, { kind: "unresponsive", failure });
      if (isConnectionLimit(failure) && queue.active > 1 && queued.requeues < REQUEUES_MAX && !this.#draining) {
        this.#requeue(queue, queued);
        return { connection: null, settle: () => undefined };
      }
      const settle = () => resolve(result);
      if (connection !== null && this.#mayReuse(queue, connection, probe)) return { connection, settle };
      connection?.session.close();
      return { connection: null, settle };
    } catch (error) {
      return { connection: null, settle: () => reject(error) };
    }
  }

  #requeue(queue: HostQueue, queued: QueuedProbe): void {
    this.options.pacing.note(queue.key, { kind: "rate_limited" });
    queued.requeues++;
    this.#waiting++;
    queue.putBack(queued);
  }

  #mayReuse(queue: HostQueue, { session, recipients, openedMs }: Connection, probe: SmtpProbe): boolean {
    if (!session.usable || recipients + probe.recipients.length > this.options.rcptPerConnectionMax) return false;
    const waiting = this.#waitingPriority(queue);
    if (waiting === "realtime" && queue.priority === "bulk") return false;
    return waiting === null || this.clock.monotonicMs() - openedMs < TURN_MS;
  }

  /** The most urgent probe of other hosts that waits for a connection such as this queue's, and may have one. */
  #waitingPriority(queue: HostQueue): Priority | null {
    const waiting = [this.#waitingHosts.priority(this.#limits.mayUse), ...this.#limits.prioritiesInGroups(queue)];
    return waiting.includes("realtime") ? "realtime" : (waiting.find((priority) => priority !== null) ?? null);
  }

  #release(queue: HostQueue, connection: Connection | null): void {
    queue.active--;
    const mayIdle = !this.#draining && queue.waiting === 0 && this.#waitingPriority(queue) === null;
    if (connection !== null && mayIdle) {
      this.#addIdle(queue, connection);
      return;
    }
    connection?.session.close();
    this.#onClosed(queue);
  }

  /** One connection less: who waits for one gets it, a queue that has just had one last. */
  #onClosed(queue: HostQueue): void {
    for (const other of this.#limits.close(queue)) this.#waitingHosts.add(other);
    this.#waitingHosts.delete(queue);
    if (queue.waiting > 0) this.#waitingHosts.add(queue);
    else this.#removeIfEmpty(queue);
    this.#wakeWaiting();
    if (this.#limits.total === 0) for (const resolve of this.#onDrained.splice(0)) resolve();
  }

  /** Feeds the queues that wait for any connection, as far as there are some. */
  #wakeWaiting(): void {
    for (let looks = this.#waitingHosts.size; looks > 0; looks--) {
      const next = this.#waitingHosts.shift(this.#limits.mayOpen);
      if (next === undefined) return;
      this.#feed(next);
    }
  }

  #removeIfEmpty(queue: HostQueue): void {
    if (queue.isEmpty) this.#queues.delete(queue.key);
  }

  /** Every connection is idle for the same time, so the timer that fires is the oldest one's. */
  #addIdle(queue: HostQueue, connection: Connection): void {
    const cancelTimer = this.clock.after(IDLE_MS, () => this.#closeOldestIdle(queue));
    queue.addIdle(connection, cancelTimer);
    this.#withIdle.add(queue);
  }

  #takeIdle(queue: HostQueue): Connection | null {
    const connection = queue.takeIdle();
    if (!queue.hasIdle) this.#withIdle.delete(queue);
    return connection;
  }

  /** Closes an idle connection, of that group if one is given, so that another host can be dialled. False: none. */
  #closeIdleOf(group: ConnectionGroup | null): boolean {
    for (const queue of this.#withIdle) {
      if (group !== null && !isInGroup(queue, group)) continue;
      this.#closeOldestIdle(queue);
      return true;
    }
    return false;
  }

  #closeOldestIdle(queue: HostQueue): void {
    const connection = queue.takeOldestIdle();
    if (!queue.hasIdle) this.#withIdle.delete(queue);
    if (connection === null) return;
    connection.session.close();
    this.#onClosed(queue);
  }
}
