import type { Clock } from "../foundation/base/clock.ts";
import { Gate } from "../foundation/base/wait.ts";

/** Finished checks that are stored together: a commit costs as much as a few of them. */
export const STORED_AT_ONCE = 16;
/** The first of them waits this long for the others. */
const GATHER_MS_MAX = 250;

/**
 * The scheduled checks of a pass: some are looked up at a time, and those that are finished wait for each other, so that one
 * transaction stores many. After a crash, the checks that were not stored are due again.
 */
export class PassStorage {
  readonly #lookups: Gate;
  #lookingUp = 0;
  #waiting: Array<() => void> = [];
  #cancelTimer = (): void => undefined;

  constructor(
    private readonly clock: Pick<Clock, "after">,
    lookupsAtOnce: number,
  ) {
    this.#lookups = new Gate(lookupsAtOnce);
  }

  /** Looks up when it is its turn. */
  async lookUp<T>(work: () => Promise<T>): Promise<T> {
    this.#lookingUp++;
    try {
      return await this.#lookups.run(work);
    } finally {
      this.#lookingUp--;
      if (this.#lookingUp === 0) this.flush();
    }
  }

  /** Resolves when the finished checks are to be stored: many, or all there are. */
  async untilStored(): Promise<void> {
    const turn = new Promise<void>((resolve) => void this.#waiting.push(resolve));
    if (this.#lookingUp === 0 || this.#waiting.length >= STORED_AT_ONCE) this.flush();
    else if (this.#waiting.length === 1) this.#cancelTimer = this.clock.after(GATHER_MS_MAX, () => this.flush());
    await turn;
  }

  /** Stores what waits now. */
  flush(): void {
    this.#cancelTimer();
    for (const resolve of this.#waiting.splice(0)) resolve();
  }
}
