import { usePage } from "../visit.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
/** Older times are shown as a date. */
const FRESH_MS = 2 * DAY_MS;

/** A duration of at least 0 ms in its two largest units: "3 h 29 min". */
export const durationText = (ms: number): string => {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 10_000) return `${(ms / 1_000).toFixed(1).replace(/\.0$/, "")} s`;
  const seconds = Math.round(ms / 1_000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return minutes % 60 === 0 ? `${hours} h` : `${hours} h ${minutes % 60} min`;
  const days = Math.floor(hours / 24);
  if (days >= 10 || hours % 24 === 0) return days === 1 ? "1 day" : `${days} days`;
  return `${days === 1 ? "1 day" : `${days} days`} ${hours % 24} h`;
};

const coarse = (ms: number): string => {
  if (ms < MINUTE_MS) return "a moment";
  if (ms < HOUR_MS) return `${Math.floor(ms / MINUTE_MS)} min`;
  return ms < DAY_MS
    ? `${Math.floor(ms / HOUR_MS)} h`
    : `${Math.floor(ms / DAY_MS)} ${ms < 2 * DAY_MS ? "day" : "days"}`;
};

/** "6 h ago", "in 12 min"; null when a date says more. */
const relativeText = (atMs: number, nowMs: number): string | null => {
  const ago = nowMs - atMs;
  if (Math.abs(ago) >= FRESH_MS) return null;
  return ago >= 0 ? `${coarse(ago)} ago` : `in ${coarse(-ago)}`;
};

const formatters = new Map<string, Intl.DateTimeFormat>();

/** A time in a zone; formatters are kept. */
export const formatted = (atMs: number, timeZone: string, options: Intl.DateTimeFormatOptions): string => {
  const key = `${timeZone} ${JSON.stringify(options)}`;
  const formatter = formatters.get(key) ?? new Intl.DateTimeFormat("en-GB", { ...options, timeZone });
  if (!formatters.has(key) && formatters.size < 1_000) formatters.set(key, formatter);
  return formatter.format(atMs);
};

/** "Sep", where the language of the formatter says "Sept". */
const MONTH_CHARACTERS = 3;

/** "22 Nov" or, in another year, "22 Nov 2025". */
const dateText = (atMs: number, nowMs: number, timeZone: string): string => {
  const year = (ms: number) => formatted(ms, timeZone, { year: "numeric" });
  const day = formatted(atMs, timeZone, { day: "numeric" });
  const month = formatted(atMs, timeZone, { month: "short" }).slice(0, MONTH_CHARACTERS);
  return year(atMs) === year(nowMs) ? `${day} ${month}` : `${day} ${month} ${year(atMs)}`;
};

const clockText = (atMs: number, timeZone: string): string =>
  formatted(atMs, timeZone, { hour: "2-digit", minute: "2-digit", hour12: false });

/** The exact time in ISO 8601 order, with seconds and zone, "2026-11-22 18:30:12 CET": what a hover shows. */
export const exactText = (atMs: number, timeZone: string): string =>
  formatted(atMs, timeZone, {
    year: "numeric",
    month: "2-digit",
    day: "2-digit",
    hour: "2-digit",
    minute: "2-digit",
    second: "2-digit",
    hour12: false,
    timeZoneName: "short",
  }).replace(/^(\d+)\/(\d+)\/(\d+), /, "$3-$2-$1 ");

export interface TimeProps {
  readonly atMs: number;
  /** `relative`: while it is fresh, else the date; `full`: date and time; `day`: the date; `clock`: the time of day. */
  readonly style?: "relative" | "full" | "day" | "clock";
}

/** A time in the viewer's zone, exact on hover. */
export const Time = ({ atMs, style = "relative" }: TimeProps) => {
  const { nowMs, timeZone } = usePage();
  const day = () => dateText(atMs, nowMs, timeZone);
  const clock = () => clockText(atMs, timeZone);
  // Formatting is what takes time on a page with many times.
  const texts = {
    relative: () => relativeText(atMs, nowMs) ?? day(),
    full: () => `${day()}, ${clock()}`,
    day,
    clock,
  };
  return (
    <time dateTime={new Date(atMs).toISOString()} title={exactText(atMs, timeZone)} data-style={style}>
      {texts[style]()}
    </time>
  );
};

/** A day of the calendar, `YYYY-MM-DD`, which has no time zone. */
export const Day = ({ day }: { readonly day: string }) => {
  const { nowMs } = usePage();
  return (
    <time dateTime={day} title={day}>
      {dateText(Date.parse(day), nowMs, "UTC")}
    </time>
  );
};

const GROUPED = new Intl.NumberFormat("en-US");

/** A number with its thousands grouped. */
export const numberText = (value: number): string => GROUPED.format(value);

export const Num = ({ value }: { readonly value: number }) => <span class="num">{numberText(value)}</span>;

const WHOLE = 100;

/** A share of 0 to 1 as a percentage. It is 100 or 0 only when it is exactly that. */
export const percentText = (share: number): string => {
  const percent = share * WHOLE;
  if (percent > 0 && percent < 0.1) return "< 0.1 %";
  if (percent < WHOLE && percent > 99.9) return "> 99.9 %";
  const text =
    percent >= 10 && Number.isInteger(Math.round(percent * 10) / 10) ? percent.toFixed(0) : percent.toFixed(1);
  return `${text.replace(/\.0$/, "")} %`;
};

/** The share of `part` in `whole`; a dash when there is nothing to share. */
export const Percent = ({ part, whole }: { readonly part: number; readonly whole: number }) => (
  <span class="num">{whole === 0 ? "–" : percentText(part / whole)}</span>
);

const KIB = 1024;
const UNITS = ["bytes", "kB", "MB", "GB", "TB"] as const;

/** A size in bytes, in the unit that suits it. */
export const bytesText = (bytes: number): string => {
  const power = bytes < KIB ? 0 : Math.min(UNITS.length - 1, Math.floor(Math.log(bytes) / Math.log(KIB)));
  const value = bytes / KIB ** power;
  return `${power === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${UNITS[power] ?? "bytes"}`;
};

/** "1 list", "2 lists". */
export const countText = (count: number, one: string, many = `${one}s`): string =>
  `${numberText(count)} ${count === 1 ? one : many}`;

/** How much of something is done, as a ring with the count inside. */
export const Ring = ({ done, total }: { readonly done: number; readonly total: number }) => (
  <svg class="ring" viewBox="0 0 40 40" role="img" aria-label={`${done} of ${total} done`}>
    <circle class="ground" cx={20} cy={20} r={17} />
    {done > 0 && (
      <circle class="part" cx={20} cy={20} r={17} pathLength={total} stroke-dasharray={`${done} ${total}`} />
    )}
    <text x={20} y={24} text-anchor="middle">
      {done}/{total}
    </text>
  </svg>
);
