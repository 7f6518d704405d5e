import type { Database as Sqlite } from "bun:sqlite";
import { type Clock, systemClock } from "../base/clock.ts";

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

/** A piece that ran in a transaction, and what to call once that transaction is durable. */
type Settle = () => void;

/**
 * Gathers the writes of one turn of the event loop into one transaction, in the order in which they came. A write is
 * resolved after the commit that holds it. Each runs within a savepoint: one that throws is undone alone and rejected,
 * and no other write runs again for it. When the transaction itself fails (disk full), all of its writes are rejected.
 */
export const createGroupCommit = (sqlite: Sqlite, clock: Pick<Clock, "monotonicMs" | "after"> = systemClock) => {
  let waiting: Waiting[] = [];
  let scheduled = false;
  let closed = false;

  const begin = sqlite.prepare("BEGIN IMMEDIATE");
  const commit = sqlite.prepare("COMMIT");
  const rollback = sqlite.prepare("ROLLBACK");
  const savepoint = sqlite.prepare("SAVEPOINT piece");
  const release = sqlite.prepare("RELEASE piece");
  const undo = sqlite.prepare("ROLLBACK TO piece");

  /** Runs one piece; throws only when SQLite has rolled back the whole transaction. */
  const runPiece = (piece: Waiting): Settle => {
    savepoint.run();
    try {
      piece.run();
    } catch (error) {
      if (!sqlite.inTransaction) throw error;
      undo.run();
      release.run();
      return () => piece.fail(error);
    }
    release.run();
    return piece.done;
  };

  /** Runs pieces as one transaction; returns what was thrown, or null when it is durable. */
  const attempt = (pieces: readonly Waiting[], settled: Settle[]): { readonly error: unknown } | null => {
    try {
      begin.run();
      for (const piece of pieces) settled.push(runPiece(piece));
      commit.run();
      return null;
    } catch (error) {
      // A full disk makes SQLite itself roll everything back.
      if (sqlite.inTransaction) rollback.run();
      return { error };
    }
  };

  const settle = (pieces: readonly Waiting[]): void => {
    const settled: Settle[] = [];
    const failure = attempt(pieces, settled);
    if (failure === null) for (const end of settled) end();
    else if (isBusy(failure.error) && !closed) postpone(pieces, failure.error);
    else for (const piece of pieces) piece.fail(failure.error);
  };

  /** Puts pieces back to the front, but for those whose patience is over. */
  const postpone = (pieces: readonly Waiting[], error: unknown): void => {
    const nowMs = clock.monotonicMs();
    for (const piece of pieces) if (piece.patienceEndsMs <= nowMs) piece.fail(error);
    waiting = [...pieces.filter(({ patienceEndsMs }) => patienceEndsMs > nowMs), ...waiting];
    if (waiting.length > 0) schedule(BUSY_AGAIN_MS);
  };

  const schedule = (delayMs = 0): void => {
    if (scheduled) return;
    scheduled = true;
    const start = delayMs === 0 ? setImmediate : (task: () => void) => clock.after(delayMs, task);
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
          patienceEndsMs: clock.monotonicMs() + BUSY_MS_MAX,
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
