import { nextTurn } from "./clock.ts";

/** What ends work in steps early. */
export interface StepLimits {
  /** Checked before each step. May throw instead. */
  readonly isStopping?: () => boolean;
  /** Steps of one run. Default: no limit. */
  readonly stepsMax?: number;
}

/** The result of work in steps. */
interface StepsDone {
  /** The sum of what the steps returned. */
  readonly count: number;
  /** Whether the last step found nothing more to do; false: stopped, or `stepsMax` was reached. */
  readonly isComplete: boolean;
}

const NO_LIMITS: StepLimits = {};
const never = () => false;

/**
 * Repeats `step`, one short transaction that changes a limited number of rows and returns how many, until it returns 0.
 * Everything else has its turn after each step: a purge never holds the event loop for longer than one step.
 */
export const inSteps = async (
  step: () => number | Promise<number>,
  { isStopping = never, stepsMax = Number.POSITIVE_INFINITY }: StepLimits = NO_LIMITS,
): Promise<StepsDone> => {
  let count = 0;
  for (let steps = 0; steps < stepsMax && !isStopping(); steps += 1) {
    const changed = await step();
    if (changed === 0) return { count, isComplete: true };
    count += changed;
    await nextTurn();
  }
  return { count, isComplete: false };
};

/** Rows that are read in one order, some at a time. `C`: the position of a row in that order. */
export interface Pages<R, C> {
  /** The position before the first row. */
  readonly start: C;
  /** The next rows after a position; none at the end. */
  readonly read: (after: C) => readonly R[];
  readonly positionOf: (row: R) => C;
}

/**
 * Page after page of rows, to change some of them in a transaction each. Everything else has its turn after each page. Ends
 * early as `limits` say, or when the caller leaves the loop.
 */
export async function* pagesOf<R, C>(
  { start, read, positionOf }: Pages<R, C>,
  { isStopping = never, stepsMax = Number.POSITIVE_INFINITY }: StepLimits = NO_LIMITS,
): AsyncGenerator<readonly R[], void, undefined> {
  let after = start;
  for (let steps = 0; steps < stepsMax && !isStopping(); steps += 1) {
    const rows = read(after);
    const last = rows.at(-1);
    if (last === undefined) return;
    yield rows;
    after = positionOf(last);
    await nextTurn();
  }
}

/** Work that yields wherever everything else may have its turn. */
export type Steps<T> = Generator<undefined, T, undefined>;

/** Does all steps without a turn in between. */
export const atOnce = <T>(work: Steps<T>): T => {
  for (;;) {
    const step = work.next();
    if (step.done === true) return step.value;
  }
};

/** Everything else has its turn between the steps. */
export const inTurns = async <T>(work: Steps<T>): Promise<T> => {
  for (;;) {
    const step = work.next();
    if (step.done === true) return step.value;
    await nextTurn();
  }
};

const ITEMS_PER_STEP = 250;

/** Maps items, some in each step. */
export function* mapInSteps<T, R>(items: readonly T[], map: (item: T) => R): Steps<R[]> {
  const mapped: R[] = [];
  for (const item of items) {
    mapped.push(map(item));
    if (mapped.length % ITEMS_PER_STEP === 0) yield;
  }
  return mapped;
}

interface Isolation<T> {
  /** Called for each item that failed; the others go on. */
  readonly onFailure: (item: T, error: unknown) => void | Promise<void>;
  /** No further item is begun once it returns true. */
  readonly isStopping?: () => boolean;
}

/**
 * Does the same for each item, one after the other. A failure of one stops none of the others: every pass over
 * domains, targets or recipients goes through here.
 */
export const forEachIsolated = async <T>(
  items: Iterable<T>,
  work: (item: T) => unknown,
  { onFailure, isStopping }: Isolation<T>,
): Promise<void> => {
  for (const item of items) {
    if (isStopping?.() === true) return;
    try {
      await work(item);
    } catch (error) {
      await onFailure(item, error);
    }
  }
};
