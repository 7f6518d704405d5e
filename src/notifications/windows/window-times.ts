import { BoundedMap } from "../../foundation/base/bounded-map.ts";
import { DAY_MS } from "../../foundation/base/days.ts";

/** The days of a week, as Intl abbreviates them. */
export const WEEKDAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"] as const;
export type Weekday = (typeof WEEKDAYS)[number];

/** A window that comes back: it begins on these days, by the clock of a time zone. */
export interface WeeklyTimes {
  readonly days: readonly Weekday[];
  /** Minutes since midnight. An end before the beginning is on the next day. */
  readonly fromMinute: number;
  readonly toMinute: number;
  readonly timeZone: string;
}

/** Nothing waits longer, whatever windows are set: forgotten ones do not silence for ever. */
export const QUIET_MS_MAX = 7 * DAY_MS;

const MINUTE_MS = 60_000;
const HOUR_MINUTES = 60;
const DAY_MINUTES = 24 * HOUR_MINUTES;
const ZONES_MAX = 100;

const formatters = new BoundedMap<string, Intl.DateTimeFormat>(ZONES_MAX);

const formatterOf = (timeZone: string) => {
  const known = formatters.get(timeZone);
  if (known !== undefined) return known;
  const made = new Intl.DateTimeFormat("en-GB", {
    timeZone,
    year: "numeric",
    month: "2-digit",
    day: "2-digit",
    weekday: "short",
    hour: "2-digit",
    minute: "2-digit",
    hourCycle: "h23",
  });
  formatters.set(timeZone, made);
  return made;
};

const localParts = (ms: number, timeZone: string) => {
  const parts = new Map(
    formatterOf(timeZone)
      .formatToParts(ms)
      .map(({ type, value }) => [type, value]),
  );
  const part = (type: Intl.DateTimeFormatPartTypes) => parts.get(type) ?? "";
  return {
    weekday: (WEEKDAYS as readonly string[]).indexOf(part("weekday").toLowerCase()),
    minute: Number(part("hour")) * HOUR_MINUTES + Number(part("minute")),
    text: `${part("year")}-${part("month")}-${part("day")}T${part("hour")}:${part("minute")}`,
  };
};

/** The difference of two times of day, from -12 to 12 hours. */
const minutesBetween = (from: number, to: number) => {
  const difference = (to - from + DAY_MINUTES) % DAY_MINUTES;
  return difference > DAY_MINUTES / 2 ? difference - DAY_MINUTES : difference;
};

/** When a weekly window ends that is on at a time; null when it is not on. */
export const weeklyEndMs = ({ days, fromMinute, toMinute, timeZone }: WeeklyTimes, nowMs: number): number | null => {
  const { weekday, minute } = localParts(nowMs, timeZone);
  const beginsOn = (day: number) =>
    days.some((name) => WEEKDAYS.indexOf(name) === (day + WEEKDAYS.length) % WEEKDAYS.length);
  const isOvernight = toMinute <= fromMinute;
  const hasBegun = beginsOn(weekday) && minute >= fromMinute && (isOvernight || minute < toMinute);
  const beganYesterday = isOvernight && beginsOn(weekday - 1) && minute < toMinute;
  if (!hasBegun && !beganYesterday) return null;
  const left = (toMinute - minute + DAY_MINUTES) % DAY_MINUTES;
  const endMs = Math.floor(nowMs / MINUTE_MS) * MINUTE_MS + left * MINUTE_MS;
  // The clock of the zone can be set meanwhile.
  const offMinutes = minutesBetween(toMinute, localParts(endMs, timeZone).minute);
  const correctedMs = endMs - offMinutes * MINUTE_MS;
  // A time that the clock skips is that of the clock before (RFC 5545 §3.3.5).
  return localParts(correctedMs, timeZone).minute === toMinute ? correctedMs : endMs;
};

/** `2026-01-01T06:00` by the clock of a zone, in milliseconds; null for anything else. Of a time that exists twice, the first. */
export const msOfLocalTime = (text: string, timeZone: string): number | null => {
  const wanted = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}$/.test(text) ? Date.parse(`${text}Z`) : Number.NaN;
  if (Number.isNaN(wanted)) return null;
  let ms = wanted;
  for (let tries = 0; tries < 3; tries++) ms += wanted - Date.parse(`${localParts(ms, timeZone).text}Z`);
  return ms;
};

/** `06:00` in minutes since midnight; null for anything else. */
export const minuteOfDay = (text: string): number | null => {
  const [, hours = "", minutes = ""] = /^([01]\d|2[0-3]):([0-5]\d)$/.exec(text) ?? [];
  return hours === "" ? null : Number(hours) * HOUR_MINUTES + Number(minutes);
};

/** Minutes since midnight as `06:00`. */
export const clockTime = (minute: number): string =>
  [Math.floor(minute / HOUR_MINUTES), minute % HOUR_MINUTES].map((part) => String(part).padStart(2, "0")).join(":");
