import type { Clock } from "./clock.ts";
import type { Log, LogFields } from "./log.ts";

export interface RecurringWork {
  /** What it is in the log: `report ingestion` is logged as "report ingestion failed". */
  readonly name: string;
  /** Further fields of its lines in the log. */
  readonly fields?: LogFields;
  /**
   * One run, which ends soon after `signal` has fired. Returns in how many milliseconds the next begins at the latest; null: when it is requested. A run that
   * lasts calls `succeeded` when something has, which ends a failing period.
   */
  readonly run: (signal: AbortSignal, succeeded: () => void) => number | null | Promise<number | null>;
  /** The same after a run that threw, by the error and by how many runs have failed in a row. Without it: when it is requested. */
  readonly retryMs?: number | ((error: unknown, failures: number) => number);
}

/** Different errors that are logged of one failing period. */
const ERRORS_LOGGED_MAX = 8;

interface FailingPeriod {
  readonly sinceMs: number;
  readonly errors: Set<string>;
  failures: number;
}

/**
 * Runs work again and again, by a timer and on request, never twice at once. A run that throws, such as by a failed read of the
 * database, ends neither the process nor the work: each error is logged once in a failing period, and so is the end of the period.
 * All recurring work runs here; `clock.after` is for deadlines.
 */
export class Recurring {
  readonly #stopping = new AbortController();
  #cancel: (() => void) | null = null;
  /** When the next run begins, by the monotonic clock. */
  #atMs = Number.POSITIVE_INFINITY;
  #notBeforeMs = Number.NEGATIVE_INFINITY;
  #running: Promise<void> | null = null;
  #again: Promise<void> | null = null;
  #failing: FailingPeriod | null = null;

  constructor(
    private readonly runtime: { readonly clock: Clock; readonly log: Log },
    private readonly work: RecurringWork,
  ) {}

  /** Whether the last run failed. */
  get isFailing(): boolean {
    return this.#failing !== null;
  }

  /** Runs the work after `delayMs` at the latest: an earlier plan stands. After a run that failed, not before its retry. */
  within(delayMs: number): void {
    const atMs = Math.max(this.runtime.clock.monotonicMs() + delayMs, this.#notBeforeMs);
    if (this.#stopping.signal.aborted || atMs >= this.#atMs) return;
    this.#atMs = atMs;
    if (this.#running === null) this.#setTimer();
  }

  /** Runs the work now, or once more after the run under way. Resolves when that run has ended; never rejects. */
  run(): Promise<void> {
    if (this.#running === null) return this.#begin();
    this.#again ??= this.#running.then(() => {
      this.#again = null;
      return this.#begin();
    });
    return this.#again;
  }

  /** Resolves when no run is under way. */
  async idle(): Promise<void> {
    while (this.#running !== null) await (this.#again ?? this.#running);
  }

  /** Ends the work for good; resolves when the run under way has ended. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#cancel?.();
    await this.#running;
  }

  #setTimer() {
    this.#cancel?.();
    this.#cancel = this.runtime.clock.after(this.#atMs - this.runtime.clock.monotonicMs(), () => void this.run());
  }

  #begin() {
    if (this.#stopping.signal.aborted) return Promise.resolve();
    this.#cancel?.();
    this.#atMs = Number.POSITIVE_INFINITY;
    this.#notBeforeMs = Number.NEGATIVE_INFINITY;
    const running = this.#runOnce();
    this.#running = running;
    return running;
  }

  async #runOnce() {
    const delayMs = await this.#tryRun();
    this.#running = null;
    if (this.#stopping.signal.aborted) return;
    const nextMs = this.runtime.clock.monotonicMs() + (delayMs ?? Number.POSITIVE_INFINITY);
    if (this.isFailing && delayMs !== null) this.#notBeforeMs = nextMs;
    this.#atMs = Math.max(this.#notBeforeMs, Math.min(this.#atMs, nextMs));
    if (this.#atMs < Number.POSITIVE_INFINITY) this.#setTimer();
  }

  async #tryRun(): Promise<number | null> {
    try {
      const delayMs = await this.work.run(this.#stopping.signal, () => this.#endFailing());
      this.#endFailing();
      return delayMs;
    } catch (error) {
      return this.#stopping.signal.aborted ? null : this.#noteFailure(error);
    }
  }

  /** Returns the delay of the next run. */
  #noteFailure(error: unknown): number | null {
    const { name, fields, retryMs = null } = this.work;
    this.#failing ??= { sinceMs: this.runtime.clock.monotonicMs(), errors: new Set(), failures: 0 };
    const { errors } = this.#failing;
    const failures = ++this.#failing.failures;
    const delayMs = typeof retryMs === "function" ? retryMs(error, failures) : retryMs;
    const text = String(error);
    if (errors.has(text) || errors.size >= ERRORS_LOGGED_MAX) return delayMs;
    errors.add(text);
    this.runtime.log.error(`${name} failed`, {
      ...fields,
      error,
      ...(delayMs === null ? {} : { retry_in_ms: delayMs }),
    });
    return delayMs;
  }

  #endFailing() {
    if (this.#failing === null) return;
    const { name, fields } = this.work;
    const failedForMs = this.runtime.clock.monotonicMs() - this.#failing.sinceMs;
    this.#failing = null;
    this.runtime.log.info(`${name} works again`, { ...fields, failed_for_s: Math.round(failedForMs / 1_000) });
  }
}
