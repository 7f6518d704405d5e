const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;

/** By how many milliseconds a zone is ahead of UTC at a time. */
const offsetMs = (atMs: number, timeZone: string): number => {
  const parts = new Intl.DateTimeFormat("en-US", {
    ...{ timeZone, hourCycle: "h23", year: "numeric", month: "numeric", day: "numeric" },
    ...{ hour: "numeric", minute: "numeric", second: "numeric" },
  }).formatToParts(atMs);
  const numberOf = (type: string) => Number(parts.find((part) => part.type === type)?.value ?? 0);
  const shown = Date.UTC(
    ...([numberOf("year"), numberOf("month") - 1, numberOf("day"), numberOf("hour"), numberOf("minute")] as const),
    numberOf("second"),
  );
  return shown - Math.floor(atMs / 1_000) * 1_000;
};

/** When the day that comes `days` days after `day` (`YYYY-MM-DD`) begins in a zone, in milliseconds since 1970. */
export const localMidnight = (day: string, days: number, timeZone: string): number => {
  const utcMs = Date.parse(`${day}T00:00:00Z`) + days * DAY_MS;
  const firstGuess = utcMs - offsetMs(utcMs, timeZone);
  // The offset at the guess decides: it differs where the clocks change in between.
  return utcMs - offsetMs(firstGuess, timeZone);
};
