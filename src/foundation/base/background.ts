import { nextTurn, systemClock } from "./clock.ts";
import { wait } from "./wait.ts";
import { FairQueue } from "./fair-queue.ts";

/** The pause between two steps when several accounts or requests compete. */
const PAUSE_MS_MAX = 10;

const waiting = new FairQueue<() => void>();
let waitingCount = 0;
let isRunning = false;

/**
 * Runs one waiting step at a time, the accounts in turn. While more than one waits, the event loop is free for as long as
 * the last step took: a check needs several turns of the loop, and each of them would otherwise be as long as a step.
 */
const run = async (): Promise<void> => {
  await nextTurn();
  for (let next = waiting.take(); next !== undefined; next = waiting.take()) {
    waitingCount--;
    const startedMs = systemClock.monotonicMs();
    next.item();
    await nextTurn();
    const tookMs = systemClock.monotonicMs() - startedMs;
    if (waitingCount > 1) await wait(systemClock, Math.min(PAUSE_MS_MAX, tookMs));
  }
  isRunning = false;
};

/**
 * Resolves when one step of background work may run: a page, a part of an export, some rows of an upload. Such a step holds
 * the event loop for a few milliseconds and has to end with the next await. `account` is whose work it is; null: the service's own.
 */
export const backgroundTurn = (account: string | null): Promise<void> =>
  new Promise((resolve) => {
    waiting.add({ account, priority: "bulk" }, resolve);
    waitingCount++;
    if (isRunning) return;
    isRunning = true;
    void run();
  });
