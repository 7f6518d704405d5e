/** What is known of a domain's reports. Days are whole ones since 1970 (UTC). */
export interface Learning {
  /** The day on which the domain was enrolled. */
  readonly enrolledDay: number;
  /** The different days that reports tell of; the last hundred are enough. */
  readonly reportedDays: readonly number[];
}

/** A domain is learnt when reports told of so many days. */
const LEARNING_DAYS = 7;
/** So many days, before a week has passed, are history that was imported: it teaches as much as waiting does. */
const IMPORTED_DAYS = 10;
const IMPORT_WINDOW_DAYS = 30;

/** The first day whose reports matter for what is new from `day` on. */
export const learningFromDay = (enrolledDay: number, day: number): number =>
  Math.min(enrolledDay, day - IMPORT_WINDOW_DAYS);

/**
 * Whether enough was known of a domain before a day, that what is new on it is news. At first everything is new, and nothing is
 * news: until reports told of seven days since the enrolment or in the last 30, and a week has passed since the enrolment (not
 * where history was imported). A single report with a wrong date, or about a day long ago, neither ends nor prolongs it.
 */
export const isLearned = ({ enrolledDay, reportedDays }: Learning, day: number): boolean => {
  const fromDay = learningFromDay(enrolledDay, day);
  const known = new Set(reportedDays.filter((reported) => reported >= fromDay && reported < day)).size;
  return known >= LEARNING_DAYS && (day >= enrolledDay + LEARNING_DAYS || known >= IMPORTED_DAYS);
};
