import type { Clock } from "./clock.ts";
import { FairQueue } from "./fair-queue.ts";
import { type OnBehalfOf, createShares } from "./on-behalf-of.ts";

interface Waiting {
  readonly start: () => void;
  isGone: boolean;
}

export interface FairGateLimits {
  readonly concurrencyMax: number;
  /** Over all; one caller may take four fifths of these places. */
  readonly waitingMax: number;
  readonly waitMsMax: number;
}

/** Some work at a time, the callers in turn: one that sends much waits behind its own. */
export class FairGate {
  readonly #queue = new FairQueue<Waiting>(({ isGone }) => isGone);
  readonly #places;
  #running = 0;

  constructor(
    private readonly limits: FairGateLimits,
    private readonly clock: Pick<Clock, "after">,
  ) {
    this.#places = createShares({ placesMax: limits.waitingMax, realtimeShare: 0 });
  }

  /**
   * Resolves when the caller may begin, with what it has to call at its end; null when too many of this caller wait, or its
   * turn did not come in time. `caller`: an account, the network of somebody unknown, or null for a command.
   */
  async enter(caller: string | null): Promise<(() => void) | null> {
    const who: OnBehalfOf = { account: caller, priority: "realtime" };
    if (this.#running < this.limits.concurrencyMax) this.#running++;
    else if (!this.#places.mayHold(who) || !(await this.#waitForTurn(who))) return null;
    return () => this.#handOn();
  }

  /** False when the turn did not come in time. */
  #waitForTurn(who: OnBehalfOf): Promise<boolean> {
    this.#places.hold(who);
    return new Promise((resolve) => {
      const end = (isTurn: boolean) => {
        waiting.isGone = true;
        cancel();
        this.#places.release(who);
        resolve(isTurn);
      };
      const waiting: Waiting = { start: () => end(true), isGone: false };
      const cancel = this.clock.after(this.limits.waitMsMax, () => end(false));
      this.#queue.add(who, waiting);
    });
  }

  /** The place goes to the next that waits, so that nobody who comes now can take it. */
  #handOn() {
    const next = this.#queue.take();
    if (next === undefined) this.#running--;
    else next.item.start();
  }
}
