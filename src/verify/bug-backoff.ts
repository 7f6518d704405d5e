import type { Clock } from "../foundation/base/clock.ts";

/** Waits after a bug; when it occurs once more often, the check is given up. */
export const BUG_WAITS_MS: readonly number[] = [5_000, 30_000, 120_000];
/** A check that cannot even be given up is tried again this often. */
const LAST_WAIT_MS = 600_000;

interface BugCount {
  readonly times: number;
  /** Null once the wait is over. */
  readonly cancel: (() => void) | null;
}

/** Which checks ended in a bug, how often, and when each is tried again. In memory: a restart tries them all again. */
export class BugBackoff {
  readonly #clock: Clock;
  readonly #counts = new Map<string, BugCount>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Calls `again` after a wait that grows each time, and returns that wait. */
  schedule(id: string, again: () => void): number {
    const times = (this.#counts.get(id)?.times ?? 0) + 1;
    const waitMs = BUG_WAITS_MS[times - 1] ?? LAST_WAIT_MS;
    const cancel = this.#clock.after(waitMs, () => {
      this.#counts.set(id, { times, cancel: null });
      again();
    });
    this.#counts.set(id, { times, cancel });
    return waitMs;
  }

  isWaiting(id: string): boolean {
    return (this.#counts.get(id)?.cancel ?? null) !== null;
  }

  /** The waits are used up: the check is to be given up. */
  isExhausted(id: string): boolean {
    return (this.#counts.get(id)?.times ?? 0) >= BUG_WAITS_MS.length;
  }

  clear(id: string): void {
    this.#counts.delete(id);
  }

  stop(): void {
    for (const { cancel } of this.#counts.values()) cancel?.();
    this.#counts.clear();
  }
}
