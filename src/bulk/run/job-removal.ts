import { inSteps } from "../../foundation/base/in-steps.ts";
import { wait } from "../../foundation/base/wait.ts";
import type { Runtime } from "../../foundation/db/runtime.ts";
import { isDatabaseState } from "../../foundation/base/database-errors.ts";
import type { JobStore } from "../results/job-store.ts";
import type { ListStore } from "../results/list-store.ts";

const REMOVED_AT_ONCE = 1_000;
const AGAIN_MS = 10_000;

/**
 * Removes jobs in the background, one after another and in small transactions. While the disk takes no writes it waits and
 * tries again; what a crash leaves is removed after the next start.
 */
export class JobRemoval {
  #work: Promise<void> = Promise.resolve();
  readonly #stopping = new AbortController();

  constructor(
    private readonly runtime: Runtime,
    private readonly jobs: JobStore,
    private readonly lists: ListStore,
  ) {}

  /** Removes a job that is hidden. */
  remove(number: number): void {
    this.#enqueue(number, () => this.#removeRows(number));
  }

  /** Removes a job that was being received; it is hidden already. */
  discard(number: number): void {
    this.#enqueue(number, () => this.runtime.db.commit((tx) => this.jobs.hide(tx, number)));
    this.remove(number);
  }

  /** Resolves when nothing is left to remove. */
  done(): Promise<void> {
    return this.#work;
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#work;
  }

  #enqueue(number: number, step: () => Promise<void>): void {
    this.#work = this.#work.then(() => this.runtime.db.apart(() => this.#untilDone(number, step)));
  }

  async #untilDone(number: number, step: () => Promise<void>): Promise<void> {
    const { clock, log } = this.runtime;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      try {
        return await step();
      } catch (error) {
        if (signal.aborted) return;
        const isTemporary = isDatabaseState(error);
        const when = isTemporary ? "in 10 seconds" : "after the next start";
        log.error(`could not remove a list; trying again ${when}`, { number, error });
        if (!isTemporary) return;
        await wait(clock, AGAIN_MS, signal);
      }
    }
  }

  async #removeRows(number: number): Promise<void> {
    const { db } = this.runtime;
    const step = () => db.commit((tx) => Number(this.lists.removeSome(tx, number, REMOVED_AT_ONCE)));
    const { isComplete } = await inSteps(step, { isStopping: () => this.#stopping.signal.aborted });
    if (isComplete) await db.commit((tx) => this.jobs.remove(tx, number));
  }
}
