import type { Clock } from "../base/clock.ts";
import { createFairQueue } from "../base/fair-queue.ts";
import type { OnBehalfOf } from "../base/on-behalf-of.ts";
import { createShares } from "../base/shares.ts";

/** A question that wants to be under way. */
export interface DnsTicket {
  /** True when the turn has come, and `leave` must follow; false when it cannot come in time. */
  readonly entered: Promise<boolean>;
  /** Monotonic: until when the question is worth asking. */
  deadlineMs(): number;
  /** Somebody else waits for the same question: it comes when the first of them has a turn, and may take as long as the last allows. */
  join(who: OnBehalfOf, deadlineMs: number): void;
  leave(): void;
}

/**
 * Lets a bounded number of questions be under way; the others wait: single checks before lists, the accounts in turn.
 * Some places are for single checks only, and no account can have all of them.
 */
export interface DnsLimiter {
  /** `deadlineMs` is monotonic. */
  enter(who: OnBehalfOf, deadlineMs: number): DnsTicket;
}

export interface DnsLimiterOptions {
  readonly clock: Clock;
  readonly underWayMax: number;
  readonly waitingMax: number;
}

/** This part of the places is kept free of lists. */
const REALTIME_SHARE = 1 / 8;

interface Waiting {
  state: "waiting" | "in" | "over";
  deadlineMs: number;
  /** For whom it has a place: first in the queue, then under way. */
  who: OnBehalfOf;
  readonly asked: Set<string>;
  readonly settle: (isIn: boolean) => void;
  cancel: () => void;
}

const keyOf = ({ account, priority }: OnBehalfOf): string => `${priority} ${account ?? ""}`;

export const createDnsLimiter = ({ clock, underWayMax, waitingMax }: DnsLimiterOptions): DnsLimiter => {
  const places = createShares({ placesMax: underWayMax, realtimeShare: REALTIME_SHARE });
  const room = createShares({ placesMax: waitingMax, realtimeShare: REALTIME_SHARE });
  const queue = createFairQueue<Waiting>(({ state }) => state !== "waiting");

  const leaveQueue = (one: Waiting): void => {
    one.cancel();
    room.release(one.who);
  };

  const begin = (one: Waiting, who: OnBehalfOf): void => {
    one.state = "in";
    one.who = who;
    places.hold(who);
    one.settle(true);
  };

  /** Lets in whoever may come in now. */
  const letIn = (): void => {
    for (let next = queue.take(places.mayHold); next !== undefined; next = queue.take(places.mayHold)) {
      leaveQueue(next.item);
      begin(next.item, next.who);
    }
  };

  const giveUpAt = (one: Waiting, deadlineMs: number): void => {
    one.cancel();
    one.deadlineMs = deadlineMs;
    one.cancel = clock.after(deadlineMs - clock.monotonicMs(), () => {
      leaveQueue(one);
      one.state = "over";
      one.settle(false);
    });
  };

  const wait = (one: Waiting): void => {
    room.hold(one.who);
    queue.add(one.who, one);
    giveUpAt(one, one.deadlineMs);
  };

  const join = (one: Waiting, who: OnBehalfOf, deadlineMs: number): void => {
    if (one.state !== "waiting") return;
    giveUpAt(one, Math.max(one.deadlineMs, deadlineMs));
    if (one.asked.has(keyOf(who))) return;
    one.asked.add(keyOf(who));
    queue.add(who, one);
    letIn();
  };

  const leave = (one: Waiting): void => {
    one.state = "over";
    places.release(one.who);
    letIn();
  };

  return {
    enter(who, deadlineMs) {
      const { promise: entered, resolve: settle } = Promise.withResolvers<boolean>();
      const asked = new Set([keyOf(who)]);
      const one: Waiting = { state: "waiting", deadlineMs, who, asked, settle, cancel: () => undefined };
      if (places.mayHold(who)) begin(one, who);
      else if (room.mayHold(who)) wait(one);
      else {
        one.state = "over";
        settle(false);
      }
      return {
        entered,
        deadlineMs: () => one.deadlineMs,
        join: (other, untilMs) => join(one, other, untilMs),
        leave: () => leave(one),
      };
    },
  };
};
