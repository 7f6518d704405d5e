import { DAY_MS } from "../../foundation/base/days.ts";

/** What the database had at a time, in bytes. */
interface SizeAt {
  readonly atMs: number;
  readonly bytes: number;
}

/** How the database grows. */
export interface Growth {
  readonly bytesPerDay: number;
  /** The days that it was measured over. */
  readonly days: number;
  /** Whole days until the disk is full; null when the database does not grow. */
  readonly daysLeft: number | null;
}

/** Fewer daily backups say nothing about a trend. */
const BACKUPS_MIN = 3;
const DAYS_MIN = 2;

/**
 * The growth by the sizes of backups, as the slope of the line with the least squares through them; null while there are too few. A
 * backup has no unused space, so its size is that of the data.
 */
export const growthOf = (sizes: readonly SizeAt[], freeBytes: number): Growth | null => {
  const times = sizes.map(({ atMs }) => atMs);
  const days = (Math.max(...times) - Math.min(...times)) / DAY_MS;
  if (sizes.length < BACKUPS_MIN || days < DAYS_MIN) return null;
  const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;
  const [meanMs, meanBytes] = [mean(times), mean(sizes.map(({ bytes }) => bytes))];
  const covariance = mean(sizes.map(({ atMs, bytes }) => (atMs - meanMs) * (bytes - meanBytes)));
  const variance = mean(times.map((atMs) => (atMs - meanMs) ** 2));
  const bytesPerDay = Math.round((covariance / variance) * DAY_MS);
  return {
    bytesPerDay,
    days: Math.round(days),
    daysLeft: bytesPerDay > 0 ? Math.floor(freeBytes / bytesPerDay) : null,
  };
};
