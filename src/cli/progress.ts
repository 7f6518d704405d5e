import { systemClock } from "../foundation/base/clock.ts";
import type { JobForecast } from "../bulk/results/job-object.ts";
import type { JobRow } from "../bulk/results/job-store.ts";
import type { Io } from "./io.ts";

const REDRAW_EVERY_MS = 250;
const PRINT_EVERY_MS = 5_000;
const BAR_CHARACTERS = 30;

/** A number with what it counts: `1 row`, `1,000 rows`. */
export const counted = (count: number, one: string, many: string): string =>
  `${count.toLocaleString("en")} ${count === 1 ? one : many}`;

/** A share as a bar and a percentage: `[#####     ]  50%`. */
export const progressBar = (done: number, total: number): string => {
  const share = total === 0 ? 0 : done / total;
  const bar = "#".repeat(Math.floor(share * BAR_CHARACTERS)).padEnd(BAR_CHARACTERS);
  return `[${bar}] ${`${Math.floor(share * 100)}%`.padStart(4)}`;
};

/** Shows a line until the returned function is called: redrawn on a terminal, else every few seconds on standard error. */
export const showWhile = (io: Io, line: () => string): (() => void) => {
  const { status } = io;
  const everyMs = status === null ? PRINT_EVERY_MS : REDRAW_EVERY_MS;
  const show = (): void => (status ?? io.err)(line());
  let cancel = systemClock.after(everyMs, again);
  function again(): void {
    show();
    cancel = systemClock.after(everyMs, again);
  }
  if (status !== null) show();
  return () => {
    cancel();
    status?.("");
  };
};

const MINUTE_S = 60;
const HOUR_S = 3_600;

export interface ListProgress {
  readonly job: JobRow;
  readonly forecast: JobForecast;
}

const duration = (seconds: number): string => {
  if (seconds < 2 * MINUTE_S) return `${seconds} s`;
  if (seconds < 2 * HOUR_S) return `${Math.round(seconds / MINUTE_S)} min`;
  return `${Math.round(seconds / HOUR_S)} h`;
};

/** The progress of a list in one line: `[#####     ]  50%  500 of 1,000 addresses, about 12 s left`. */
export const progressLine = ({ job, forecast }: ListProgress): string => {
  const { addressesFinished: finished, addressesTotal: total } = job;
  const left = forecast.secondsLeft === null ? "" : `, about ${duration(forecast.secondsLeft)} left`;
  return `${progressBar(finished, total)}  ${finished.toLocaleString("en")} of ${counted(total, "address", "addresses")}${left}`;
};

/** Shows the progress of a list until the returned function is called. */
export const showProgress = (io: Io, look: () => ListProgress): (() => void) =>
  showWhile(io, () => progressLine(look()));
