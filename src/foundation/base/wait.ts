import type { Clock } from "./clock.ts";
import { err, ok, type Result } from "./errors.ts";

/** How long somebody waits: at most `timeoutMs`, and not after `signal` has fired. */
interface WaitLimits {
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal | undefined;
}

/** Why a wait ended before what it waited for. */
type GaveUp = "timeout" | "aborted";

/** Resolves after `delayMs` of the given clock, or as soon as `signal` fires. */
export const wait = (clock: Clock, delayMs: number, signal?: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const end = () => {
      cancel();
      signal?.removeEventListener("abort", end);
      resolve();
    };
    const cancel = clock.after(delayMs, end);
    signal?.addEventListener("abort", end);
    if (signal?.aborted) end();
  });

/**
 * Waits for `work` within the limits. Rejects when the work rejects in time. The work itself goes on after the wait was given
 * up; what comes of it then is dropped.
 */
export const waitFor = async <T>(
  clock: Clock,
  work: Promise<T>,
  { timeoutMs, signal }: WaitLimits,
): Promise<Result<T, GaveUp>> => {
  const { promise: gaveUp, resolve } = Promise.withResolvers<Result<never, GaveUp>>();
  const abort = () => resolve(err("aborted"));
  const cancel = timeoutMs === undefined ? undefined : clock.after(timeoutMs, () => resolve(err("timeout")));
  signal?.addEventListener("abort", abort);
  if (signal?.aborted) abort();
  try {
    return await Promise.race([gaveUp, work.then(ok)]);
  } finally {
    cancel?.();
    signal?.removeEventListener("abort", abort);
  }
};

/**
 * Runs `work` with a signal that fires at the limits; the signal's `reason` is a `GaveUp`. Settles when the work does, which
 * has to heed the signal.
 */
export const withDeadline = async <T>(
  clock: Clock,
  { timeoutMs, signal }: WaitLimits,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> => {
  const controller = new AbortController();
  const end = (reason: GaveUp) => controller.abort(reason);
  const abort = () => end("aborted");
  const cancel = timeoutMs === undefined ? undefined : clock.after(timeoutMs, () => end("timeout"));
  signal?.addEventListener("abort", abort);
  if (signal?.aborted) abort();
  try {
    return await work(controller.signal);
  } finally {
    cancel?.();
    signal?.removeEventListener("abort", abort);
  }
};

/** Waits until all of the work has settled, however it did; at most `timeoutMs`. Never rejects. */
export const drain = async (clock: Clock, timeoutMs: number, work: Iterable<unknown>): Promise<void> => {
  await waitFor(clock, Promise.allSettled(work), { timeoutMs });
};

/** Runs at most `concurrencyMax` pieces of work at a time; the others wait, first come, first served. */
export class Gate {
  readonly #waiting: Array<() => void> = [];
  #running = 0;

  constructor(private readonly concurrencyMax: number) {}

  /** How many wait for their start. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** Whether work would start at once. */
  get isOpen(): boolean {
    return this.#running < this.concurrencyMax;
  }

  /** Settles as the work does. A failure is its caller's and stops no other. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.isOpen) this.#running++;
    else await new Promise<void>((start) => void this.#waiting.push(start));
    try {
      return await work();
    } finally {
      // The place is handed on, so that nobody who comes now can take it from the first that waits.
      const next = this.#waiting.shift();
      if (next === undefined) this.#running--;
      else next();
    }
  }
}

/**
 * Runs `work` on every item, at most `concurrencyMax` at a time. The results are in the order of the items. After the first
 * rejection, with which it rejects, no further item is begun.
 */
export const mapConcurrently = async <T, R>(
  items: readonly T[],
  concurrencyMax: number,
  work: (item: T) => Promise<R>,
): Promise<readonly R[]> => {
  const results: R[] = [];
  const left = items.entries();
  let hasFailed = false;
  const runNext = async () => {
    for (const [index, item] of left) {
      if (hasFailed) return;
      try {
        results[index] = await work(item);
      } catch (error) {
        hasFailed = true;
        throw error;
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(concurrencyMax, items.length) }, runNext));
  return results;
};
