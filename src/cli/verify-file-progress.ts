import { systemClock } from "../base/clock.ts";
import type { Forecast } from "../bulk/job-object.ts";
import type { JobRow } from "../bulk/store.ts";
import type { Io } from "./io.ts";

const REDRAWN_EVERY_MS = 250;
const SAID_EVERY_MS = 5_000;
const BAR_CHARACTERS = 30;
const MINUTE_S = 60;
const HOUR_S = 3_600;

export interface Progress {
  readonly job: JobRow;
  readonly forecast: Forecast;
}

const duration = (seconds: number): string => {
  if (seconds < 2 * MINUTE_S) return `${seconds} s`;
  if (seconds < 2 * HOUR_S) return `${Math.round(seconds / MINUTE_S)} min`;
  return `${Math.round(seconds / HOUR_S)} h`;
};

/** A number with what it counts: `1 row`, `1,000 rows`. */
export const counted = (count: number, one: string, many: string): string =>
  `${count.toLocaleString("en")} ${count === 1 ? one : many}`;

/** How far a list is, in a line: `[#####     ]  50%  500 of 1,000 addresses, about 12 s left`. */
export const progressLine = ({ job, forecast }: Progress): string => {
  const { addressesFinished: finished, addressesTotal: total } = job;
  const share = total === 0 ? 0 : finished / total;
  const bar = "#".repeat(Math.floor(share * BAR_CHARACTERS)).padEnd(BAR_CHARACTERS);
  const percent = `${Math.floor(share * 100)}%`.padStart(4);
  const left = forecast.secondsLeft === null ? "" : `, about ${duration(forecast.secondsLeft)} left`;
  return `[${bar}] ${percent}  ${finished.toLocaleString("en")} of ${counted(total, "address", "addresses")}${left}`;
};

/**
 * Shows how far a list is until the answer is called: a line that is drawn again on a terminal, else one every few
 * seconds on standard error.
 */
export const showProgress = (io: Io, look: () => Progress): (() => void) => {
  const { status } = io;
  const everyMs = status === null ? SAID_EVERY_MS : REDRAWN_EVERY_MS;
  const show = (): void => (status ?? io.err)(progressLine(look()));
  let cancel = systemClock.after(everyMs, again);
  function again(): void {
    show();
    cancel = systemClock.after(everyMs, again);
  }
  if (status !== null) show();
  return () => {
    cancel();
    if (status === null) return;
    status("");
  };
};
