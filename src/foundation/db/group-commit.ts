import type { Database as Sqlite } from "bun:sqlite";
import { type Clock, systemClock } from "../base/clock.ts";
import { CommittedFacts } from "./facts.ts";
import { AppError, errorCode } from "../base/errors.ts";

/** A write that waits for a transaction. */
interface PendingWrite {
  /** Makes the writes of these items, and returns what each came to, in their order. */
  work(items: readonly unknown[]): readonly unknown[];
  readonly item: unknown;
  fail(error: unknown): void;
  done(value: unknown): void;
  /** On the monotonic clock: how long to wait while another process holds the database. */
  readonly giveUpMs: number;
}

/** Interval of attempts while another process holds the database; the event loop is not blocked meanwhile. */
const BUSY_AGAIN_MS = 20;
const BUSY_MS_MAX = 5_000;
/** Further writes wait for the next transaction, so that one does not hold the event loop for more than some 15 ms. */
const WRITES_PER_TRANSACTION_MAX = 128;
/** How long a transaction waits while every turn of the event loop brings further writes. */
const GATHER_MS_MAX = 2;

/** Whether another connection holds the database. */
export const isBusy = (error: unknown): boolean => errorCode(error).startsWith("SQLITE_BUSY");

const prepare = (sqlite: Sqlite) => ({
  begin: sqlite.prepare("BEGIN IMMEDIATE"),
  commit: sqlite.prepare("COMMIT"),
  rollback: sqlite.prepare("ROLLBACK"),
  savepoint: sqlite.prepare("SAVEPOINT piece"),
  release: sqlite.prepare("RELEASE piece"),
  undo: sqlite.prepare("ROLLBACK TO piece"),
});

/** The writes in their order, those that follow each other and have the same work together. */
const runsOf = (writes: readonly PendingWrite[]): PendingWrite[][] => {
  const runs: PendingWrite[][] = [];
  for (const write of writes) {
    const run = runs.at(-1);
    if (run?.[0]?.work === write.work) run.push(write);
    else runs.push([write]);
  }
  return runs;
};

/**
 * Combines writes into one transaction, in order: those of one turn of the event loop and, for a moment, of the next ones as
 * long as there are more, because a commit costs as much as many writes. A write resolves after the commit. Each
 * runs in a savepoint: if it throws, it alone is undone and rejected, and no other write is repeated. Writes of one kind share a
 * savepoint (`enqueueItem`). If the transaction fails (disk full), all its writes are rejected.
 */
export class GroupCommit {
  readonly #statements: ReturnType<typeof prepare>;
  #pending: PendingWrite[] = [];
  #isScheduled: boolean = false;
  #isClosed: boolean = false;

  constructor(
    private readonly sqlite: Sqlite,
    private readonly clock: Pick<Clock, "monotonicMs" | "after"> = systemClock,
    private readonly facts: CommittedFacts = new CommittedFacts(),
  ) {
    this.#statements = prepare(sqlite);
  }

  enqueue<T>(work: () => T): Promise<T> {
    return this.enqueueItem(() => [work()], undefined);
  }

  /**
   * Enqueues the write of an item. `work` makes those that follow each other at once, and returns what each came to, in their
   * order. When it throws, each item is written alone.
   */
  enqueueItem<I, T>(work: (items: readonly I[]) => readonly T[], item: I): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      if (this.#isClosed) return reject(new Error("the database is closed"));
      const giveUpMs = this.clock.monotonicMs() + BUSY_MS_MAX;
      this.#pending.push({ work, item, fail: reject, done: resolve, giveUpMs });
      this.#schedule();
    });
  }

  /** Writes what is pending now and accepts no more. */
  close(): void {
    this.#isClosed = true;
    for (let writes = this.#pending; writes.length > 0; writes = this.#pending) {
      this.#pending = writes.slice(WRITES_PER_TRANSACTION_MAX);
      this.#write(writes.slice(0, WRITES_PER_TRANSACTION_MAX));
    }
  }

  #schedule(delayMs = 0) {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    if (delayMs > 0) this.clock.after(delayMs, () => this.#writeNext());
    else this.#gather(this.#pending.length, this.clock.monotonicMs() + GATHER_MS_MAX);
  }

  /** Writes after the first turn that brings no further writes, or at the time given. */
  #gather(seen: number, untilMs: number) {
    setImmediate(() => {
      const { length } = this.#pending;
      const isGrowing = length > seen && length < WRITES_PER_TRANSACTION_MAX && this.clock.monotonicMs() < untilMs;
      if (isGrowing) this.#gather(length, untilMs);
      else this.#writeNext();
    });
  }

  #writeNext() {
    this.#isScheduled = false;
    const writes = this.#pending.splice(0, WRITES_PER_TRANSACTION_MAX);
    if (writes.length > 0) this.#write(writes);
    if (this.#pending.length > 0) this.#schedule();
  }

  /** Runs writes as one transaction and settles them. */
  #write(writes: readonly PendingWrite[]) {
    const settled: Array<() => void> = [];
    try {
      this.#statements.begin.run();
      for (const run of runsOf(writes)) settled.push(...this.#runTogether(run));
      this.#statements.commit.run();
    } catch (error) {
      // When the disk is full, SQLite has already rolled back.
      if (this.sqlite.inTransaction) this.#statements.rollback.run();
      this.facts.undoTo(0);
      if (isBusy(error) && !this.#isClosed) this.#postpone(writes, error);
      else for (const write of writes) write.fail(error);
      return;
    }
    for (const settle of settled) settle();
    this.facts.publish();
  }

  /**
   * Writes in one savepoint; when that throws, each in its own. Returns how to settle each after the commit. Throws only when
   * SQLite has rolled back the transaction.
   */
  #runTogether(writes: readonly PendingWrite[]): Array<() => void> {
    const { savepoint, release, undo } = this.#statements;
    const noted = this.facts.size;
    let values: readonly unknown[];
    savepoint.run();
    try {
      values = writes[0]?.work(writes.map(({ item }) => item)) ?? [];
    } catch (error) {
      if (!this.sqlite.inTransaction) throw error;
      this.facts.undoTo(noted);
      undo.run();
      release.run();
      if (writes.length > 1) return writes.flatMap((write) => this.#runTogether([write]));
      return writes.map((write) => () => write.fail(error));
    }
    release.run();
    return writes.map((write, at) => () => write.done(values[at]));
  }

  /** Puts writes back to the front; those that have waited too long fail. */
  #postpone(writes: readonly PendingWrite[], error: unknown) {
    const nowMs = this.clock.monotonicMs();
    for (const write of writes) if (write.giveUpMs <= nowMs) write.fail(error);
    this.#pending = [...writes.filter(({ giveUpMs }) => giveUpMs > nowMs), ...this.#pending];
    if (this.#pending.length > 0) this.#schedule(BUSY_AGAIN_MS);
  }
}

/**
 * Returns an AppError that `work` throws, so that a refusal is a value of a `commit`; other errors are thrown. For work
 * that decides before it writes, because a value undoes nothing.
 */
export const orRefusal = <T>(work: () => T): T | AppError => {
  try {
    return work();
  } catch (error) {
    if (error instanceof AppError) return error;
    throw error;
  }
};
