/** Positions with the time at which each is due, the earliest first. */
export interface RetryHeap {
  add(dueAtMs: number, position: number): void;
  /** The earliest time, or null when nothing waits. */
  nextMs(): number | null;
  /** The latest time that was added and not yet taken, at least; null when nothing waits. */
  latestMs(): number | null;
  /** Takes out the earliest position that is due by then. */
  take(nowMs: number): number | null;
  size(): number;
}

/** A binary heap in two arrays of numbers: a whole list may wait for its retries. */
export const createRetryHeap = (): RetryHeap => {
  const times: number[] = [];
  const positions: number[] = [];
  let latest = 0;

  const timeAt = (at: number): number => times[at] ?? Number.POSITIVE_INFINITY;

  const swap = (a: number, b: number): void => {
    [times[a], times[b]] = [timeAt(b), timeAt(a)];
    [positions[a], positions[b]] = [positions[b] ?? 0, positions[a] ?? 0];
  };

  const rise = (from: number): void => {
    for (
      let at = from, parent = (at - 1) >> 1;
      at > 0 && timeAt(at) < timeAt(parent);
      at = parent, parent = (at - 1) >> 1
    )
      swap(at, parent);
  };

  const sink = (): void => {
    for (let at = 0; ;) {
      const [left, right] = [2 * at + 1, 2 * at + 2];
      const smaller = timeAt(right) < timeAt(left) ? right : left;
      if (timeAt(smaller) >= timeAt(at)) return;
      swap(at, smaller);
      at = smaller;
    }
  };

  return {
    add(dueAtMs, position) {
      latest = times.length === 0 ? dueAtMs : Math.max(latest, dueAtMs);
      times.push(dueAtMs);
      positions.push(position);
      rise(times.length - 1);
    },
    nextMs: () => times[0] ?? null,
    latestMs: () => (times.length === 0 ? null : latest),
    take(nowMs) {
      const position = positions[0];
      if (position === undefined || timeAt(0) > nowMs) return null;
      swap(0, times.length - 1);
      times.pop();
      positions.pop();
      sink();
      return position;
    },
    size: () => times.length,
  };
};
