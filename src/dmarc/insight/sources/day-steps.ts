import { type Clock, systemClock } from "../../../foundation/base/clock.ts";
import type { DayRange } from "../../../foundation/base/days.ts";
import type { Steps } from "../../../foundation/base/in-steps.ts";

const DAYS_FIRST = 4;
/** A step of fewer days would mostly look up which sources are meant. */
const DAYS_LEAST = 2;
/** A step that takes longer is followed by one of half as many days, one that takes less than half of it by one of twice as many. */
const STEP_MS_MAX = 12;

/** Reads a range of days, some of them in each step: a domain with 20,000 sources has thousands of daily sums for each day. */
export function* readDays<T>(
  { fromDay, toDay }: DayRange,
  read: (days: DayRange) => readonly T[],
  clock: Pick<Clock, "monotonicMs"> = systemClock,
): Steps<T[]> {
  const parts: Array<readonly T[]> = [];
  let days = DAYS_FIRST;
  for (let at = fromDay; at <= toDay;) {
    if (at > fromDay) yield;
    const startMs = clock.monotonicMs();
    const lastDay = Math.min(toDay, at + days - 1);
    parts.push(read({ fromDay: at, toDay: lastDay }));
    at = lastDay + 1;
    const tookMs = clock.monotonicMs() - startMs;
    if (tookMs > STEP_MS_MAX) days = Math.max(DAYS_LEAST, Math.floor(days / 2));
    else if (tookMs < STEP_MS_MAX / 2) days *= 2;
  }
  return parts.flat();
}
