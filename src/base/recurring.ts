import type { Clock } from "./clock.ts";
import type { Log } from "./log.ts";
import { RepeatedError } from "./repeated-error.ts";

export interface RecurringWork {
  /** Logged with the error of a run, at most every 10 seconds. */
  readonly failure: string;
  /** Returns in how many milliseconds it runs again. */
  readonly run: () => number;
  /** The same after a run that threw. */
  readonly retryMs: number;
}

/**
 * Runs work by a timer, again and again. An error, such as a failed read of the database, is logged and the work runs again:
 * thrown inside a timer it would end the process. `clock.after` is for deadlines.
 */
export class Recurring {
  readonly #clock: Clock;
  readonly #work: RecurringWork;
  readonly #failures: RepeatedError;
  #cancel: (() => void) | null = null;
  #atMs: number = Number.POSITIVE_INFINITY;
  #isStopped: boolean = false;

  constructor({ clock, log }: { readonly clock: Clock; readonly log: Log }, work: RecurringWork) {
    this.#clock = clock;
    this.#work = work;
    this.#failures = new RepeatedError(work.failure, { clock, log });
  }

  /** Runs the work after `delayMs` at the latest: an earlier plan stands. */
  within(delayMs: number): void {
    const atMs = this.#clock.monotonicMs() + delayMs;
    if (this.#isStopped || atMs >= this.#atMs) return;
    this.#cancel?.();
    this.#atMs = atMs;
    this.#cancel = this.#clock.after(delayMs, () => this.#run());
  }

  /** Ends it for good. */
  stop(): void {
    this.#isStopped = true;
    this.#cancel?.();
  }

  #run(): void {
    this.#cancel = null;
    this.#atMs = Number.POSITIVE_INFINITY;
    this.within(this.#tryRun());
  }

  /** Returns the delay of the next run. */
  #tryRun(): number {
    try {
      return this.#work.run();
    } catch (error) {
      this.#failures.log({ error });
      return this.#work.retryMs;
    }
  }
}
