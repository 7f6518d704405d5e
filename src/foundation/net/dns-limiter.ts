import type { Clock } from "../base/clock.ts";
import { FairQueue } from "../base/fair-queue.ts";
import { type OnBehalfOf, createShares } from "../base/on-behalf-of.ts";

/** A query that wants to be sent. */
export interface DnsTicket {
  /** True when it may be sent, and `leave` must follow; false when that cannot be in time. */
  readonly entered: Promise<boolean>;
  /** Monotonic time after which a response is no longer useful. */
  deadlineMs(): number;
  /** Adds a caller to a waiting query: it is sent at the turn of the first caller, with the latest deadline of all. */
  join(who: OnBehalfOf, deadlineMs: number): void;
  leave(): void;
}

interface DnsLimiterOptions {
  readonly clock: Clock;
  readonly underWayMax: number;
  readonly waitingMax: number;
}

/** This share of the slots is reserved: lists cannot use it. */
const REALTIME_SHARE = 1 / 8;

interface PendingQuery {
  state: "waiting" | "in" | "over";
  deadlineMs: number;
  /** Who has its slot: first in the queue, then under way. */
  who: OnBehalfOf;
  /** All callers that wait for it; null until there is a second one. */
  waiters: Set<string> | null;
  settle: (isIn: boolean) => void;
  cancelDeadline: () => void;
}

const ENTERED = Promise.resolve(true);
const TURNED_AWAY = Promise.resolve(false);
const nothing = () => undefined;

const keyOf = ({ account, priority }: OnBehalfOf) => `${priority} ${account ?? ""}`;

/**
 * Lets a bounded number of queries be under way; the others wait: single checks before lists, the accounts in turn.
 * Some slots are for single checks only, and no account can have all of them.
 */
export class DnsLimiter {
  readonly #clock: Clock;
  readonly #underWay;
  readonly #waiting;
  readonly #queue = new FairQueue<PendingQuery>(({ state }) => state !== "waiting");

  constructor({ clock, underWayMax, waitingMax }: DnsLimiterOptions) {
    this.#clock = clock;
    this.#underWay = createShares({ placesMax: underWayMax, realtimeShare: REALTIME_SHARE });
    this.#waiting = createShares({ placesMax: waitingMax, realtimeShare: REALTIME_SHARE });
  }

  /** `deadlineMs` is monotonic. */
  enter(who: OnBehalfOf, deadlineMs: number): DnsTicket {
    const query: PendingQuery = {
      state: "over",
      deadlineMs,
      who,
      waiters: null,
      settle: nothing,
      cancelDeadline: nothing,
    };
    let entered = ENTERED;
    if (this.#underWay.mayHold(who)) this.#begin(query, who);
    else if (this.#waiting.mayHold(who)) entered = this.#enqueue(query);
    else entered = TURNED_AWAY;
    return {
      entered,
      deadlineMs: () => query.deadlineMs,
      join: (other, untilMs) => this.#join(query, other, untilMs),
      leave: () => this.#leave(query),
    };
  }

  #begin(query: PendingQuery, who: OnBehalfOf) {
    query.state = "in";
    query.who = who;
    this.#underWay.hold(who);
    query.settle(true);
  }

  #enqueue(query: PendingQuery): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    query.settle = resolve;
    query.state = "waiting";
    this.#waiting.hold(query.who);
    this.#queue.add(query.who, query);
    this.#setDeadline(query, query.deadlineMs);
    return promise;
  }

  #dequeue(query: PendingQuery) {
    query.cancelDeadline();
    this.#waiting.release(query.who);
  }

  #setDeadline(query: PendingQuery, deadlineMs: number) {
    query.cancelDeadline();
    query.deadlineMs = deadlineMs;
    query.cancelDeadline = this.#clock.after(deadlineMs - this.#clock.monotonicMs(), () => {
      this.#dequeue(query);
      query.state = "over";
      query.settle(false);
    });
  }

  #join(query: PendingQuery, who: OnBehalfOf, deadlineMs: number) {
    if (query.state !== "waiting") return;
    this.#setDeadline(query, Math.max(query.deadlineMs, deadlineMs));
    query.waiters ??= new Set([keyOf(query.who)]);
    if (query.waiters.has(keyOf(who))) return;
    query.waiters.add(keyOf(who));
    this.#queue.add(who, query);
    this.#beginNext();
  }

  #leave(query: PendingQuery) {
    query.state = "over";
    this.#underWay.release(query.who);
    this.#beginNext();
  }

  /** Begins all that may begin now. */
  #beginNext() {
    for (;;) {
      const next = this.#queue.take(this.#underWay.mayHold);
      if (next === undefined) return;
      this.#dequeue(next.item);
      this.#begin(next.item, next.who);
    }
  }
}
