import type { Database as Sqlite } from "bun:sqlite";

interface Waiting {
  run(): void;
  fail(error: unknown): void;
  done(): void;
}

/** Work beyond this many pieces waits for the next transaction, so that one does not hold the event loop for long. */
const WORK_PER_TRANSACTION_MAX = 512;

/**
 * Gathers the writes of one turn of the event loop into one transaction. A write is resolved after the commit that
 * holds it; one that throws is undone alone (a savepoint each) and takes nobody with it.
 */
export const createGroupCommit = (sqlite: Sqlite) => {
  let waiting: Waiting[] = [];
  let scheduled = false;
  let closed = false;

  const begin = sqlite.prepare("BEGIN IMMEDIATE");
  const commit = sqlite.prepare("COMMIT");
  const rollback = sqlite.prepare("ROLLBACK");
  const savepoint = sqlite.prepare("SAVEPOINT piece");
  const undo = sqlite.prepare("ROLLBACK TO piece");
  const release = sqlite.prepare("RELEASE piece");

  const runPiece = (piece: Waiting): boolean => {
    savepoint.run();
    try {
      piece.run();
      release.run();
      return true;
    } catch (error) {
      // A full disk makes SQLite itself roll everything back: then there is no transaction left to go on with.
      if (!sqlite.inTransaction) throw error;
      undo.run();
      release.run();
      piece.fail(error);
      return false;
    }
  };

  const runTogether = (pieces: readonly Waiting[]): void => {
    const kept: Waiting[] = [];
    try {
      begin.run();
      for (const piece of pieces) if (runPiece(piece)) kept.push(piece);
      commit.run();
    } catch (error) {
      if (sqlite.inTransaction) rollback.run();
      for (const piece of pieces) piece.fail(error);
      return;
    }
    for (const piece of kept) piece.done();
  };

  const flush = (): void => {
    while (waiting.length > 0) {
      const pieces = waiting.slice(0, WORK_PER_TRANSACTION_MAX);
      waiting = waiting.slice(WORK_PER_TRANSACTION_MAX);
      runTogether(pieces);
    }
  };

  const schedule = (): void => {
    if (scheduled) return;
    scheduled = true;
    setImmediate(() => {
      scheduled = false;
      const pieces = waiting.splice(0, WORK_PER_TRANSACTION_MAX);
      if (waiting.length > 0) schedule();
      if (pieces.length > 0) runTogether(pieces);
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
        });
        schedule();
      });
    },
    /** Writes all that waits, now, and refuses what comes later: for the end of the process. */
    close(): void {
      flush();
      closed = true;
    },
  };
};
