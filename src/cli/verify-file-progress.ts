import type { JobForecast } from "../bulk/forecast.ts";
import type { JobRow } from "../bulk/job-store.ts";
import type { Io } from "./io.ts";
import { counted, progressBar, showWhile } from "./progress.ts";

const MINUTE_S = 60;
const HOUR_S = 3_600;

export interface Progress {
  readonly job: JobRow;
  readonly forecast: JobForecast;
}

const duration = (seconds: number): string => {
  if (seconds < 2 * MINUTE_S) return `${seconds} s`;
  if (seconds < 2 * HOUR_S) return `${Math.round(seconds / MINUTE_S)} min`;
  return `${Math.round(seconds / HOUR_S)} h`;
};

/** How far a list is, in a line: `[#####     ]  50%  500 of 1,000 addresses, about 12 s left`. */
export const progressLine = ({ job, forecast }: Progress): string => {
  const { addressesFinished: finished, addressesTotal: total } = job;
  const left = forecast.secondsLeft === null ? "" : `, about ${duration(forecast.secondsLeft)} left`;
  return `${progressBar(finished, total)}  ${finished.toLocaleString("en")} of ${counted(total, "address", "addresses")}${left}`;
};

/** Shows how far a list is until the answer is called. */
export const showProgress = (io: Io, look: () => Progress): (() => void) => showWhile(io, () => progressLine(look()));
