import type { Clock } from "../base/clock.ts";

/** Waits after a bug met one check; when it met it once more often, the check is given up. */
export const SETBACK_WAITS_MS: readonly number[] = [5_000, 30_000, 120_000];
/** A check that cannot even be given up is tried again this often. */
const LAST_WAIT_MS = 600_000;

interface Setback {
  readonly times: number;
  /** Null once the wait is over. */
  readonly cancel: (() => void) | null;
}

/** Which checks ended in a bug, how often, and when each is tried again. In memory: a restart tries them all again. */
export const createSetbacks = (clock: Clock) => {
  const setbacks = new Map<string, Setback>();

  return {
    /** Plans `again` after a wait that grows each time, and answers how long it is. */
    note(id: string, again: () => void): number {
      const times = (setbacks.get(id)?.times ?? 0) + 1;
      const waitMs = SETBACK_WAITS_MS[times - 1] ?? LAST_WAIT_MS;
      const cancel = clock.after(waitMs, () => {
        setbacks.set(id, { times, cancel: null });
        again();
      });
      setbacks.set(id, { times, cancel });
      return waitMs;
    },
    isWaiting: (id: string): boolean => (setbacks.get(id)?.cancel ?? null) !== null,
    /** Nothing is left but to give the check up. */
    isUsedUp: (id: string): boolean => (setbacks.get(id)?.times ?? 0) >= SETBACK_WAITS_MS.length,
    forget: (id: string): void => void setbacks.delete(id),
    stop(): void {
      for (const { cancel } of setbacks.values()) cancel?.();
      setbacks.clear();
    },
  };
};

export type Setbacks = ReturnType<typeof createSetbacks>;
