/** Milliseconds of a day. */
export const DAY_MS = 86_400_000;

/** Whole days since 1970 (UTC), both inclusive. */
export interface DayRange {
  readonly fromDay: number;
  readonly toDay: number;
}

/** The UTC day of a point in time, in days since 1970. */
export const dayOfTime = (ms: number): number => Math.floor(ms / DAY_MS);

/** `YYYY-MM-DD`. */
export const isoDay = (day: number): string => new Date(day * DAY_MS).toISOString().slice(0, 10);

/** `YYYY-MM` of a day. */
export const isoMonth = (day: number): string => isoDay(day).slice(0, 7);

/** The days of a calendar month, `YYYY-MM`; null for anything else. */
export const daysOfMonth = (text: string): DayRange | null => {
  if (!/^[12]\d{3}-(?:0[1-9]|1[0-2])$/.test(text)) return null;
  const fromDay = dayOfTime(Date.parse(text));
  return { fromDay, toDay: firstOfMonth(fromDay, 1) - 1 };
};

/** The month before a month, both as `YYYY-MM`. */
export const monthBefore = (month: string): string => isoMonth(dayOfTime(Date.parse(month)) - 1);

/** How often a digest comes, where one comes. */
export type DigestPeriod = "daily" | "weekly" | "monthly";

const HOUR_MS = 60 * 60_000;
/** Reports about a day trickle in through the night after it. */
const HOUR_UTC = 6;
const WEEK_DAYS = 7;
/** 1970-01-05, the first Monday there is. */
const FIRST_MONDAY = 4;

/** The first moment after `nowMs` at which a digest is due: 06:00 UTC of a day, a Monday, a first of the month. Null for `off`. */
export const nextDigestMs = (digest: DigestPeriod | "off", nowMs: number): number | null => {
  switch (digest) {
    case "off":
      return null;
    case "daily":
      return firstAfter(nowMs, (today, n) => today + n);
    case "weekly":
      return firstAfter(nowMs, (today, n) => mondayOf(today) + n * WEEK_DAYS);
    case "monthly":
      return firstAfter(nowMs, firstOfMonth);
    default:
      return digest satisfies never;
  }
};

/** The last moment up to `nowMs` at which a digest was due that has been due since `dueMs`: after a long stop only the last one matters. */
export const latestDueMs = (digest: DigestPeriod, dueMs: number, nowMs: number): number => {
  let latest = dueMs;
  for (let next = nextDigestMs(digest, latest); next !== null && next <= nowMs; next = nextDigestMs(digest, latest)) {
    latest = next;
  }
  return latest;
};

/** The days that a digest due at `dueMs` is about: the day, the Monday to Sunday, or the month before. */
export const digestRange = (digest: DigestPeriod, dueMs: number): DayRange => {
  const today = Math.floor(dueMs / DAY_MS);
  if (digest === "daily") return { fromDay: today - 1, toDay: today - 1 };
  if (digest === "weekly") {
    const monday = mondayOf(today);
    return { fromDay: monday - WEEK_DAYS, toDay: monday - 1 };
  }
  return { fromDay: firstOfMonth(today, -1), toDay: firstOfMonth(today, 0) - 1 };
};

/** The days before a range that it is compared with: as many as it has, but for a month the month before. */
export const rangeBefore = (digest: DigestPeriod, { fromDay, toDay }: DayRange): DayRange =>
  digest === "monthly"
    ? { fromDay: firstOfMonth(fromDay, -1), toDay: fromDay - 1 }
    : { fromDay: fromDay - (toDay - fromDay + 1), toDay: fromDay - 1 };

const firstAfter = (nowMs: number, dayOf: (today: number, n: number) => number) => {
  const today = Math.floor(nowMs / DAY_MS);
  const thisMs = dayOf(today, 0) * DAY_MS + HOUR_UTC * HOUR_MS;
  return thisMs > nowMs ? thisMs : dayOf(today, 1) * DAY_MS + HOUR_UTC * HOUR_MS;
};

const mondayOf = (day: number) => day - ((((day - FIRST_MONDAY) % WEEK_DAYS) + WEEK_DAYS) % WEEK_DAYS);

/** The first day of the month that is `months` after the one of `day`. */
const firstOfMonth = (day: number, months: number) => {
  const date = new Date(day * DAY_MS);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + months, 1) / DAY_MS;
};

/** Whether a text names a zone of the IANA time zone database, such as Europe/Berlin. An offset such as +01:00 does not. */
export const isTimeZone = (name: string): boolean => {
  try {
    return /^[A-Za-z]/.test(new Intl.DateTimeFormat("en", { timeZone: name }).resolvedOptions().timeZone);
  } catch {
    // RangeError: there is no such zone.
    return false;
  }
};
