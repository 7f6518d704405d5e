import type { Minimum } from "./score.ts";

/** What was reached; a change that falls below it is a step back. */
export const MINIMUM: Minimum = {
  classes: 0.66,
  weekClasses: 0.5,
  apart: 0.93,
  events: 1,
  causes: 1,
  advice: 0.45,
  claims: 1,
  falsePer30DaysMax: 0.5,
};
