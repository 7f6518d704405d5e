import type { Minimum } from "./score.ts";

/** What was reached; a change that falls below it is a step back. */
export const MINIMUM: Minimum = {
  classes: 0.08,
  weekClasses: 0,
  apart: 0.2,
  events: 0.6,
  causes: 0.6,
  advice: 0.45,
  claims: 0.8,
  falsePer30DaysMax: 26,
};
