import { type Clock, nextTurn } from "./clock.ts";
import { FairQueue } from "./fair-queue.ts";

/** What a turn of the event loop may take before work has to wait for the next one. */
const TURN_MS_MAX = 3;
/** What begins in a turn when others wait: so much however long the turn already is, and no more even when it is short. */
const BEGUN_PER_TURN = { least: 2, most: 4 };

/**
 * Limits the work that begins in one turn of the event loop: 2,000 requests that arrive at once would hold it for 200 ms. The
 * others wait for the next turns, the callers in turn. Work also takes time in the turns after its first: in a long one
 * less begins, because a check of somebody else needs many turns. Nothing is refused.
 */
export class TurnGate {
  readonly #waiting = new FairQueue<() => void>();
  #isWaited: boolean = false;
  /** On the monotonic clock; null before the first work of a turn. */
  #turnEndsMs: number | null = null;

  constructor(private readonly clock: Pick<Clock, "monotonicMs">) {}

  /** Null when the work may begin at once. `callerOf`: whose it is; it is not asked for when nobody waits. */
  enter(callerOf: () => string | null): Promise<void> | null {
    if (!this.#isWaited && this.#hasTime()) return null;
    return new Promise((resolve) => {
      this.#waiting.add({ account: callerOf(), priority: "realtime" }, resolve);
      if (this.#isWaited) return;
      this.#isWaited = true;
      void this.#admit();
    });
  }

  #hasTime() {
    const nowMs = this.clock.monotonicMs();
    if (this.#turnEndsMs === null) {
      this.#turnEndsMs = nowMs + TURN_MS_MAX;
      void nextTurn().then(() => {
        this.#turnEndsMs = null;
      });
    }
    return nowMs < this.#turnEndsMs;
  }

  async #admit() {
    for (let turnBeganMs = this.clock.monotonicMs(); !this.#waiting.isEmpty();) {
      await nextTurn();
      for (let begun = 0; begun < BEGUN_PER_TURN.most; begun++) {
        if (begun >= BEGUN_PER_TURN.least && this.clock.monotonicMs() >= turnBeganMs + TURN_MS_MAX) break;
        const next = this.#waiting.take();
        if (next === undefined) break;
        next.item();
        // The work begins before this goes on.
        await undefined;
      }
      turnBeganMs = this.clock.monotonicMs();
    }
    this.#isWaited = false;
  }
}
