import type { Clock } from "../../foundation/base/clock.ts";
import type { Log } from "../../foundation/base/log.ts";

export interface OutageSignsOptions {
  readonly clock: Clock;
  readonly log: Log;
  readonly reason: string;
  readonly finding: string;
}

/** Failures further apart than this are not one series. */
const SERIES_GAP_MS = 2 * 60_000;
/** Failures, and outages that come and go, are logged at most this often. */
const WARNED_AGAIN_MS = 10 * 60_000;
const OUTAGE_LOGGED_AGAIN_MS = 60_000;

interface Outage {
  readonly sinceMs: number;
  readonly untilMs: number;
  readonly isLogged: boolean;
}

/** Signs for and against an outage on one channel, and the outage while there is one. Times are monotonic. */
export class OutageSigns {
  readonly #waiting = new Set<() => void>();
  #lastResponseMs = Number.NEGATIVE_INFINITY;
  #series: { readonly sinceMs: number; lastMs: number } | null = null;
  #outage: Outage | null = null;
  #isGivenUp: boolean = false;
  #warnedMs = Number.NEGATIVE_INFINITY;
  #loggedMs = Number.NEGATIVE_INFINITY;

  constructor(private readonly options: OutageSignsOptions) {}

  get isOut(): boolean {
    return this.#outage !== null;
  }

  /** The outage lasted too long to be assumed; until something responds, failures count as the hosts' own. */
  get isGivenUp(): boolean {
    return this.#isGivenUp;
  }

  hasResponseSince(sinceMs: number): boolean {
    return this.#lastResponseMs >= sinceMs;
  }

  /** For how long there have been failures and no success; null when there are none. */
  failingForMs(): number | null {
    return this.#series === null ? null : this.#nowMs() - this.#series.sinceMs;
  }

  /** True when this failure is the first of a series. */
  noteFailure(): boolean {
    const nowMs = this.#nowMs();
    if (this.#series !== null && nowMs - this.#series.lastMs <= SERIES_GAP_MS) {
      this.#series.lastMs = nowMs;
      return false;
    }
    this.#series = { sinceMs: nowMs, lastMs: nowMs };
    return true;
  }

  /** Logs, now and then, failures that are not an outage. */
  warn(): void {
    const nowMs = this.#nowMs();
    if (this.isOut || nowMs - this.#warnedMs < WARNED_AGAIN_MS) return;
    this.#warnedMs = nowMs;
    const { log, finding, reason } = this.options;
    log.warn(finding, { reason });
  }

  /** Something responds; true when an outage ends with it. */
  noteResponse(): boolean {
    this.#lastResponseMs = this.#nowMs();
    this.#series = null;
    this.#isGivenUp = false;
    for (const wake of this.#waiting) wake();
    const wasOut = this.isOut;
    this.#end("The outage is over: lists continue.");
    return wasOut;
  }

  /** Resolves when something responds, or after that time. */
  responseWithin(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        cancel();
        this.#waiting.delete(wake);
        resolve();
      };
      const cancel = this.options.clock.after(ms, wake);
      this.#waiting.add(wake);
    });
  }

  /** False when there is an outage already. */
  begin(lastsMsMax: number): boolean {
    if (this.isOut) return false;
    const nowMs = this.#nowMs();
    const isLogged = nowMs - this.#loggedMs >= OUTAGE_LOGGED_AGAIN_MS;
    this.#outage = { sinceMs: nowMs, untilMs: nowMs + lastsMsMax, isLogged };
    if (!isLogged) return true;
    this.#loggedMs = nowMs;
    const { log, finding, reason } = this.options;
    log.warn(`Lists are paused. ${finding}`, { reason });
    return true;
  }

  /** True when the outage has lasted as long as one is assumed. */
  giveUpWhenOver(): boolean {
    if (this.#outage === null || this.#nowMs() < this.#outage.untilMs) return false;
    this.#isGivenUp = true;
    this.#end("Nothing has responded for so long that lists continue; failures are concluded from now on.");
    return true;
  }

  #end(message: string): void {
    if (this.#outage === null) return;
    const { sinceMs, isLogged } = this.#outage;
    this.#outage = null;
    const { log, reason } = this.options;
    if (isLogged) log.warn(message, { reason, seconds: Math.round((this.#nowMs() - sinceMs) / 1000) });
  }

  #nowMs(): number {
    return this.options.clock.monotonicMs();
  }
}
