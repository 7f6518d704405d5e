import { AsyncLocalStorage } from "node:async_hooks";

/** Something that somebody does, with an entry in the audit log. */
export interface RecordedAct<T> {
  /** Writes the entry in a transaction of `work`; false when there is nothing to write yet. */
  readonly entry: () => boolean;
  readonly work: () => Promise<T>;
  /** Whether the entry is also written when `work` changed no row. Default: yes. */
  readonly isRecordedUnchanged?: ((value: T) => boolean) | undefined;
}

/** The work of a transaction, with the entry of the act that it belongs to. */
interface Part<T> {
  readonly run: () => T;
  /** The transaction was rolled back. */
  readonly undo: () => void;
}

/** An act under way, and whether a transaction has its entry. */
interface OpenAct {
  readonly entry: () => boolean;
  isRecorded: boolean;
}

/**
 * Writes the entry of an act in the first of its transactions that changes a row, so that neither exists without the other.
 * An act is what runs inside `perform`, in this asynchronous context; what it leaves running afterwards belongs to it no longer.
 */
export class RecordedActs {
  readonly #current = new AsyncLocalStorage<OpenAct | null>();

  /** `countChanges`: how many rows the connection has changed so far. */
  constructor(private readonly countChanges: () => number) {}

  /** `commit` runs work in a transaction; the entry of an act without a change is written by it. */
  async perform<T>(
    { entry, work, isRecordedUnchanged = () => true }: RecordedAct<T>,
    commit: (work: () => void) => Promise<void>,
  ): Promise<T> {
    const act: OpenAct = { entry, isRecorded: false };
    try {
      const value = await this.#current.run(act, work);
      if (!act.isRecorded && isRecordedUnchanged(value))
        await commit(() => {
          act.isRecorded ||= entry();
        });
      return value;
    } finally {
      act.isRecorded = true;
    }
  }

  /** Runs work whose transactions are not those of the act: preparations that nobody sees, and what all acts share. */
  apart<T>(work: () => T): T {
    return this.#current.run(null, work);
  }

  /** Adds the entry of the current act to the work of a transaction, which may run again after it was rolled back. Null: there is none to add. */
  join<T>(work: () => T): Part<T> | null {
    const act = this.#current.getStore() ?? null;
    if (act === null || act.isRecorded) return null;
    let isHere = false;
    const undo = () => {
      if (isHere) act.isRecorded = false;
      isHere = false;
    };
    const run = (): T => {
      undo();
      const before = this.countChanges();
      const value = work();
      if (!act.isRecorded && this.countChanges() > before) isHere = act.isRecorded = act.entry();
      return value;
    };
    return { run, undo };
  }
}
