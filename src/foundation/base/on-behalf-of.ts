/** `realtime`: a client waits for the response; such work comes first. */
export type Priority = "realtime" | "bulk";

/** For whom something is done. `account` is an account's id; null where there is one user only (the command line, tests). */
export interface OnBehalfOf {
  readonly account: string | null;
  readonly priority: Priority;
}

/** The service itself, or the only user. */
export const OPERATOR: OnBehalfOf = { account: null, priority: "realtime" };

interface SharesOptions {
  readonly placesMax: number;
  /** This part of the slots is never used for lists. */
  readonly realtimeShare: number;
}

/**
 * An account may hold this multiple of the slots that it leaves free: alone, 80 % of them for single checks and 90 % of
 * those that lists may have; beside another account with the same demand, less than half. Servers that do not respond hold
 * slots for seconds, so some have to be free before another account needs them.
 */
const TIMES_FREE: Readonly<Record<Priority, number>> = { realtime: 4, bulk: 9 };

const keyOf = ({ account, priority }: OnBehalfOf) => (account === null ? null : `${priority} ${account}`);

/** Counts the slots that accounts use of a limited resource (connections, queries under way). */
export const createShares = ({ placesMax, realtimeShare }: SharesOptions) => {
  const bulkMax = Math.max(1, placesMax - Math.ceil(placesMax * realtimeShare));
  /** Only of accounts that hold something. */
  const held = new Map<string, number>();
  let inUse = 0;
  const maxFor = (priority: Priority) => (priority === "realtime" ? placesMax : bulkMax);

  return {
    /** How many slots there are for such work in all. */
    maxFor,
    /** Whether one more slot may be used. */
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
    /** Accounts that hold slots, once for single checks and once for lists. */
    holders: () => held.size,
  };
};

export type Shares = ReturnType<typeof createShares>;
