import { AppError } from "../base/errors.ts";
import { createFairQueue } from "../base/fair-queue.ts";
import type { OnBehalfOf } from "../base/on-behalf-of.ts";
import { createShares } from "../base/shares.ts";

/** Lists taken in at a time; a large one may need 40 MB meanwhile, a workbook 100 MB. One place is never taken by large lists, one never by small ones. */
const AT_ONCE_MAX = 3;
const AT_ONCE_MAX_OF_A_KIND = AT_ONCE_MAX - 1;
/** Lists that wait for that: 80 small and 20 large ones, and neither all of them of one account. */
const WAITING_MAX = { realtime: 80, bulk: 20 } as const;
/** A list of so many rows, or a file of so many bytes, is taken in within a second. */
export const SMALL_ROWS_MAX = 10_000;
export const SMALL_BYTES_MAX = 512 * 1024;
const RETRY_AFTER_S = 30;

/** Whose list it is, and whether it is a small one. */
export interface TurnOf {
  readonly accountId: string;
  readonly isSmall: boolean;
}

const busy = (): AppError =>
  new AppError("unavailable", {
    message: "Too many lists are being taken in at the moment.",
    headers: { "retry-after": String(RETRY_AFTER_S) },
  });

/**
 * Lets a few lists be read and taken in at a time. The others wait: small ones before large ones, within each the accounts in
 * turn. Beyond what may wait, in all or of one account, a list is turned away with 503 `unavailable`.
 */
export const createIntakeSlots = () => {
  const waiting = createFairQueue<() => void>();
  const roomFor = (placesMax: number) => createShares({ placesMax, realtimeShare: 0 });
  const room = { realtime: roomFor(WAITING_MAX.realtime), bulk: roomFor(WAITING_MAX.bulk) };
  const running = { realtime: 0, bulk: 0 };

  const mayRun = ({ priority }: OnBehalfOf): boolean =>
    running.realtime + running.bulk < AT_ONCE_MAX && running[priority] < AT_ONCE_MAX_OF_A_KIND;

  const enter = (who: OnBehalfOf): Promise<void> | undefined => {
    if (mayRun(who)) {
      running[who.priority]++;
      return undefined;
    }
    if (!room[who.priority].mayHold(who)) throw busy();
    room[who.priority].hold(who);
    return new Promise((resolve) => waiting.add(who, resolve));
  };

  const leave = ({ priority }: OnBehalfOf): void => {
    running[priority]--;
    for (let next = waiting.take(mayRun); next !== undefined; next = waiting.take(mayRun)) {
      room[next.who.priority].release(next.who);
      running[next.who.priority]++;
      next.item();
    }
  };

  return async function inTurn<T>({ accountId, isSmall }: TurnOf, task: () => Promise<T>): Promise<T> {
    const who: OnBehalfOf = { account: accountId, priority: isSmall ? "realtime" : "bulk" };
    await enter(who);
    try {
      return await task();
    } finally {
      leave(who);
    }
  };
};
