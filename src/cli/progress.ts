import { systemClock } from "../base/clock.ts";
import type { Io } from "./io.ts";

const REDRAWN_EVERY_MS = 250;
const SAID_EVERY_MS = 5_000;
const BAR_CHARACTERS = 30;

/** A number with what it counts: `1 row`, `1,000 rows`. */
export const counted = (count: number, one: string, many: string): string =>
  `${count.toLocaleString("en")} ${count === 1 ? one : many}`;

/** How much of a whole is done, as a picture and a number: `[#####     ]  50%`. Nothing of nothing is 0%. */
export const progressBar = (done: number, total: number): string => {
  const share = total === 0 ? 0 : done / total;
  const bar = "#".repeat(Math.floor(share * BAR_CHARACTERS)).padEnd(BAR_CHARACTERS);
  return `[${bar}] ${`${Math.floor(share * 100)}%`.padStart(4)}`;
};

/**
 * Shows a line until the answer is called: at once and again and again on a terminal, else every few seconds on
 * standard error.
 */
export const showWhile = (io: Io, line: () => string): (() => void) => {
  const { status } = io;
  const everyMs = status === null ? SAID_EVERY_MS : REDRAWN_EVERY_MS;
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
