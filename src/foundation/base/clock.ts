/** The only source of time. Tests use `testing/clock`, which stands still until it is advanced. */
export interface Clock {
  /** Wall time in milliseconds since 1970 (for what is stored or shown). */
  nowMs(): number;
  /** Milliseconds since some fixed moment, never going back (for durations, deadlines, token buckets). */
  monotonicMs(): number;
  /** Runs `task` once after `delayMs`; the returned function cancels it. */
  after(delayMs: number, task: () => void): () => void;
}

/** Longer delays overflow the 32-bit counter of the platform and would fire at once. */
const LONGEST_DELAY_MS = 2_147_483_647;

export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  after(delayMs, task) {
    const timer = setTimeout(task, Math.min(Math.max(0, delayMs), LONGEST_DELAY_MS));
    return () => clearTimeout(timer);
  },
};

/**
 * Wall time as it was at this call, moved on by the monotonic clock: what is planned by it comes after its wait,
 * however the system's clock is set meanwhile. Equal to wall time until somebody sets the clock.
 */
export const steadyTime = (clock: Clock): (() => number) => {
  const startedMs = clock.nowMs() - clock.monotonicMs();
  return () => Math.round(startedMs + clock.monotonicMs());
};

/** A smaller difference is what NTP corrects gradually, or the precision of the clocks. */
const STEP_MS_MIN = 1_000;

/** Notices when the system's clock is set, by comparing it with the monotonic clock. */
export class ClockWatch {
  #offsetMs: number;
  readonly #startOffsetMs: number;

  constructor(private readonly clock: Pick<Clock, "nowMs" | "monotonicMs">) {
    this.#offsetMs = this.#offsetNow();
    this.#startOffsetMs = this.#offsetMs;
  }

  /** By how much the clock was set since the last call, in milliseconds; negative: back; 0: it was not set. */
  stepMs(): number {
    const stepMs = this.#offsetNow() - this.#offsetMs;
    if (Math.abs(stepMs) < STEP_MS_MIN) return 0;
    this.#offsetMs += stepMs;
    return Math.round(stepMs);
  }

  /** By how much the clock is ahead of what it should show, going by its time at the start. */
  aheadMs(): number {
    return Math.round(this.#offsetNow() - this.#startOffsetMs);
  }

  #offsetNow() {
    return this.clock.nowMs() - this.clock.monotonicMs();
  }
}

/** ISO 8601 in UTC with milliseconds and `Z`, the one form of time the interface speaks. */
export const isoTime = (ms: number): string => new Date(ms).toISOString();

/** A time for a person who reads a text without a page around it: "2026-01-02 02:30 UTC". */
export const minuteText = (ms: number): string => `${isoTime(ms).slice(0, 16).replace("T", " ")} UTC`;

/** Lets everything else that is waiting (sockets, other requests) have its turn. */
export const nextTurn = (): Promise<void> =>
  new Promise((resolve) => {
    setImmediate(resolve);
  });
