import { nextTurn } from "../base/clock.ts";
import type { Runtime } from "../db/runtime.ts";
import type { JobStore } from "./job-store.ts";
import type { ListStore } from "./list-store.ts";

const REMOVED_AT_ONCE = 1_000;

/** Removes jobs in the background, one after another and in small transactions. What a crash leaves is removed after the next start. */
export class JobRemoval {
  #work: Promise<void> = Promise.resolve();
  #isStopped: boolean = false;

  constructor(
    private readonly runtime: Runtime,
    private readonly jobs: JobStore,
    private readonly lists: ListStore,
  ) {}

  /** Removes a job that is hidden. */
  remove(number: number): void {
    this.#enqueue(number, () => this.#removeRows(number));
  }

  /** Hides a job now and removes it. */
  discard(number: number): void {
    const hidden = this.runtime.db.commit((tx) => this.jobs.hide(tx, number));
    this.#enqueue(number, () => hidden);
    this.remove(number);
  }

  /** Resolves when nothing is left to remove. */
  done(): Promise<void> {
    return this.#work;
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#work;
  }

  #enqueue(number: number, step: () => Promise<void>): void {
    this.#work = this.#work.then(step).catch((error: unknown) => {
      if (this.#isStopped) return;
      this.runtime.log.error("could not remove a list; trying again after the next start", { number, error });
    });
  }

  async #removeRows(number: number): Promise<void> {
    const { db } = this.runtime;
    for (let isMore = true; isMore; await nextTurn()) {
      if (this.#isStopped) return;
      isMore = await db.commit((tx) => this.lists.removeSome(tx, number, REMOVED_AT_ONCE));
    }
    await db.commit((tx) => this.jobs.remove(tx, number));
  }
}
