import type { Clock } from "./clock.ts";
import type { Log, LogFields } from "./log.ts";

const LOGGED_EVERY_MS = 10_000;

/**
 * Logs an error that repeats as often as others make it repeat, such as a full disk: once in ten seconds, with the number
 * of those in between, so that the log does not grow with their rate.
 */
export class RepeatedError {
  #lastMs: number = Number.NEGATIVE_INFINITY;
  #unlogged = 0;

  constructor(
    private readonly message: string,
    private readonly deps: { readonly log: Log; readonly clock: Pick<Clock, "monotonicMs"> },
  ) {}

  log(fields: LogFields): void {
    const nowMs = this.deps.clock.monotonicMs();
    if (nowMs - this.#lastMs < LOGGED_EVERY_MS) {
      this.#unlogged++;
      return;
    }
    const others = this.#unlogged === 0 ? {} : { others: this.#unlogged };
    this.deps.log.error(this.message, { ...fields, ...others });
    this.#lastMs = nowMs;
    this.#unlogged = 0;
  }
}
