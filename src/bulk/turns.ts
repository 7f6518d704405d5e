import { AppError } from "../base/errors.ts";

const RETRY_AFTER_S = 30;

/**
 * Lets so many tasks run at a time; up to `waitingMax` others wait, in the order in which they came. Beyond that a task
 * is turned away with 503 `unavailable`.
 */
export const createTurns = (atOnceMax: number, waitingMax: number) => {
  const waiting: Array<() => void> = [];
  let running = 0;

  const enter = (): Promise<void> => {
    if (running < atOnceMax) {
      running++;
      return Promise.resolve();
    }
    if (waiting.length >= waitingMax) {
      throw new AppError("unavailable", {
        message: "Too many lists are being taken in at the moment.",
        headers: { "retry-after": String(RETRY_AFTER_S) },
      });
    }
    return new Promise((resolve) => {
      waiting.push(resolve);
    });
  };

  return async function inTurn<T>(task: () => Promise<T>): Promise<T> {
    await enter();
    try {
      return await task();
    } finally {
      // The place passes on directly, so that nobody overtakes those who wait.
      const next = waiting.shift();
      if (next === undefined) running--;
      else next();
    }
  };
};
