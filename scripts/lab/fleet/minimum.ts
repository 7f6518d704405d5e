import type { Minimum } from "./score.ts";

/** What was reached; a change that falls below it is a step back. */
export const MINIMUM: Minimum = {
  classes: 0.1,
  weekClasses: 0,
  apart: 0.22,
  events: 0.69,
  causes: 0.7,
  advice: 0.46,
  claims: 0.83,
  falsePer30DaysMax: 23,
};
