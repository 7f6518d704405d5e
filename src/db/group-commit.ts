import type { Database as Sqlite } from "bun:sqlite";
import { systemClock } from "../base/clock.ts";

interface Waiting {
  run(): void;
  fail(error: unknown): void;
  done(): void;
  /** Monotonic: how long it may wait for another process that holds the database. */
  readonly patienceEndsMs: number;
}

/** Another process holds the database: asked again so often, without standing in the event loop's way meanwhile. */
const BUSY_AGAIN_MS = 20;
const BUSY_MS_MAX = 5_000;

const isBusy = (error: unknown): boolean =>
  error instanceof Error && "code" in error && String(error.code).startsWith("SQLITE_BUSY");

/** Work beyond this many pieces waits for the next transaction, so that one does not hold the event loop for long. */
const WORK_PER_TRANSACTION_MAX = 512;

/**
 * Gathers the writes of one turn of the event loop into one transaction. A write is resolved after the commit that
 * holds it. When one of them throws, everything is undone and each is run again by itself, so that a failing write
 * takes nobody with it: a write must do nothing but read and write the database, for it may run twice.
 */
export const createGroupCommit = (sqlite: Sqlite) => {
  let waiting: Waiting[] = [];
  let scheduled = false;
  let closed = false;

  const begin = sqlite.prepare("BEGIN IMMEDIATE");
  const commit = sqlite.prepare("COMMIT");
  const rollback = sqlite.prepare("ROLLBACK");

  /** Runs pieces as one transaction; answers what was thrown, or null when all are durable. */
  const attempt = (pieces: readonly Waiting[]): { readonly error: unknown } | null => {
    try {
      begin.run();
      for (const piece of pieces) piece.run();
      commit.run();
      return null;
    } catch (error) {
      // A full disk makes SQLite itself roll everything back.
      if (sqlite.inTransaction) rollback.run();
      return { error };
    }
  };

  const settle = (pieces: readonly Waiting[]): void => {
    const failure = attempt(pieces);
    if (failure === null) for (const piece of pieces) piece.done();
    else if (isBusy(failure.error) && !closed) postpone(pieces, failure.error);
    else if (pieces.length === 1) pieces[0]?.fail(failure.error);
    else for (const piece of pieces) settle([piece]);
  };

  /** Puts pieces back to the front, but for those whose patience is over. */
  const postpone = (pieces: readonly Waiting[], error: unknown): void => {
    const nowMs = systemClock.monotonicMs();
    for (const piece of pieces) if (piece.patienceEndsMs <= nowMs) piece.fail(error);
    waiting = [...pieces.filter(({ patienceEndsMs }) => patienceEndsMs > nowMs), ...waiting];
    if (waiting.length > 0) schedule(BUSY_AGAIN_MS);
  };

  const schedule = (delayMs = 0): void => {
    if (scheduled) return;
    scheduled = true;
    const start = delayMs === 0 ? setImmediate : (task: () => void) => systemClock.after(delayMs, task);
    start(() => {
      scheduled = false;
      const pieces = waiting.splice(0, WORK_PER_TRANSACTION_MAX);
      if (pieces.length > 0) settle(pieces);
      if (waiting.length > 0) schedule();
    });
  };

  return {
    enqueue<T>(work: () => T): Promise<T> {
      return new Promise<T>((resolve, reject) => {
        if (closed) return reject(new Error("the database is closed"));
        let value: T;
        waiting.push({
          run: () => {
            value = work();
          },
          fail: reject,
          done: () => resolve(value),
          patienceEndsMs: systemClock.monotonicMs() + BUSY_MS_MAX,
        });
        schedule();
      });
    },
    /** Writes all that waits, now, and refuses what comes later: for the end of the process. */
    close(): void {
      closed = true;
      for (let pieces = waiting; pieces.length > 0; pieces = waiting) {
        waiting = pieces.slice(WORK_PER_TRANSACTION_MAX);
        settle(pieces.slice(0, WORK_PER_TRANSACTION_MAX));
      }
    },
  };
};
