import type { Minimum } from "./score.ts";

/** What was reached; a change that falls below it is a step back. */
export const MINIMUM: Minimum = {
  classes: 0.98,
  weekClasses: 0.95,
  apart: 1,
  events: 1,
  causes: 1,
  advice: 0.96,
  claims: 1,
  falsePer30DaysMax: 0.5,
};
