import { dayOfTime } from "../../base/days.ts";

/** The UTC day that most of a report is about: that of the middle of its period. */
export const dayOf = ({ beginMs, endMs }: { readonly beginMs: number; readonly endMs: number }): number =>
  dayOfTime(beginMs + (endMs - beginMs) / 2);
