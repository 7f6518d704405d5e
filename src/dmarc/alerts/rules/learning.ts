/** What is known about a domain's reports. Days are whole days since 1970 (UTC). */
export interface Learning {
  /** The day on which the domain was enrolled. */
  readonly enrolledDay: number;
  /** The different days that reports are about; the last hundred are enough. */
  readonly reportedDays: readonly number[];
}

/** A domain is learned after reports about this many days. */
const LEARNING_DAYS = 7;
/** This many days before a week has passed are imported history: it teaches as much as waiting does. */
const IMPORTED_DAYS = 10;
const IMPORT_WINDOW_DAYS = 30;

/** Reports about days longer ago (imports, late reporters) raise no alert. */
export const ALERT_DAYS = 7;

/** The first day whose reports matter for what is new from `day` on. */
export const learningFromDay = (enrolledDay: number, day: number): number =>
  Math.min(enrolledDay, day - IMPORT_WINDOW_DAYS);

/**
 * Whether enough was known about a domain before a day for something new on that day to be worth an alert: reports about seven days
 * since the enrolment or in the last 30, and a week since the enrolment (unless history was imported). A single report with a wrong
 * date, or about a day long ago, neither ends nor prolongs the learning.
 */
export const isLearned = ({ enrolledDay, reportedDays }: Learning, day: number): boolean => {
  const fromDay = learningFromDay(enrolledDay, day);
  const known = new Set(reportedDays.filter((reported) => reported >= fromDay && reported < day)).size;
  return known >= LEARNING_DAYS && (day >= enrolledDay + LEARNING_DAYS || known >= IMPORTED_DAYS);
};

/** A source or a subdomain that the rules have not reviewed yet. */
export interface Newcomer {
  /** The first day in any report. */
  readonly firstDay: number;
  /** Whether it sent enough mail for an alert. */
  readonly hasWeight: boolean;
}

/**
 * What to do about a newcomer. `wait`: review it again when more reports arrive. `reviewed`: never alert, because it was first seen
 * while the domain was learned, or too long ago.
 */
export const judgeNewcomer = (
  { firstDay, hasWeight }: Newcomer,
  { today, learning }: { readonly today: number; readonly learning: Learning },
): "alert" | "reviewed" | "wait" => {
  if (firstDay < today - ALERT_DAYS || !isLearned(learning, firstDay)) return "reviewed";
  return hasWeight ? "alert" : "wait";
};
