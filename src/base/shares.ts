import type { OnBehalfOf, Priority } from "./on-behalf-of.ts";

export interface SharesOptions {
  readonly placesMax: number;
  /** This part of the places is never taken for lists. */
  readonly realtimeShare: number;
}

/**
 * An account may hold so many times the places that it leaves free: alone, 80 % of them for single checks and 90 % of
 * those that lists may have; with another account that wants as much, less than half. Places are held for seconds by
 * servers that are silent and cannot be taken back, so some have to be free before somebody else comes.
 */
const TIMES_FREE: Readonly<Record<Priority, number>> = { realtime: 4, bulk: 9 };

const keyOf = ({ account, priority }: OnBehalfOf): string | null =>
  account === null ? null : `${priority} ${account}`;

/** Counts who uses the places of something scarce (connections, queries under way). */
export const createShares = ({ placesMax, realtimeShare }: SharesOptions) => {
  const bulkMax = Math.max(1, placesMax - Math.ceil(placesMax * realtimeShare));
  /** Only of accounts that hold something. */
  const held = new Map<string, number>();
  let inUse = 0;
  const maxFor = (priority: Priority): number => (priority === "realtime" ? placesMax : bulkMax);

  return {
    /** How many places there are for such work, whoever wants them. */
    maxFor,
    /** Whether one more place may be used. */
    mayHold(who: OnBehalfOf): boolean {
      const free = maxFor(who.priority) - inUse;
      const key = keyOf(who);
      return free > 0 && (key === null || (held.get(key) ?? 0) < TIMES_FREE[who.priority] * free);
    },
    hold(who: OnBehalfOf): void {
      inUse++;
      const key = keyOf(who);
      if (key !== null) held.set(key, (held.get(key) ?? 0) + 1);
    },
    release(who: OnBehalfOf): void {
      inUse--;
      const key = keyOf(who);
      if (key === null) return;
      const left = (held.get(key) ?? 0) - 1;
      if (left > 0) held.set(key, left);
      else held.delete(key);
    },
    /** Accounts that hold places, once for single checks and once for lists. */
    holders: (): number => held.size,
  };
};

export type Shares = ReturnType<typeof createShares>;
