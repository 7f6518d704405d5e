import { nextTurn } from "../base/clock.ts";
import type { Clock } from "../base/clock.ts";
import { FairQueue } from "../base/fair-queue.ts";

/** Time budget of a turn of the event loop: requests start at once within it. */
const TURN_MS_MAX = 5;
/** Queued requests started per turn. */
const BEGUN_PER_TURN = 8;

/**
 * Limits the requests that begin in one turn of the event loop: 2,000 that arrive at once would hold it for 200 ms. The others
 * wait for the next turns, the callers in turn. Nothing is refused.
 */
export class RequestGate {
  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #waiting = new FairQueue<() => void>();
  #isWaited: boolean = false;
  /** On the monotonic clock; null before the first request of a turn. */
  #turnEndsMs: number | null = null;

  constructor(clock: Pick<Clock, "monotonicMs">) {
    this.#clock = clock;
  }

  /** Null when the request may begin at once. `callerOf`: who sends it; it is not asked for when nobody waits. */
  enter(callerOf: () => string | null): Promise<void> | null {
    if (!this.#isWaited && this.#hasTime()) return null;
    return new Promise((resolve) => {
      this.#waiting.add({ account: callerOf(), priority: "realtime" }, resolve);
      if (this.#isWaited) return;
      this.#isWaited = true;
      void this.#admit();
    });
  }

  #hasTime(): boolean {
    const nowMs = this.#clock.monotonicMs();
    if (this.#turnEndsMs === null) {
      this.#turnEndsMs = nowMs + TURN_MS_MAX;
      void nextTurn().then(() => {
        this.#turnEndsMs = null;
      });
    }
    return nowMs < this.#turnEndsMs;
  }

  async #admit(): Promise<void> {
    while (!this.#waiting.isEmpty()) {
      await nextTurn();
      for (let begun = 0; begun < BEGUN_PER_TURN; begun++) this.#waiting.take()?.item();
    }
    this.#isWaited = false;
  }
}
