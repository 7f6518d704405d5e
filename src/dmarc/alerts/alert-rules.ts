import { isLearned, type Learning } from "./alert-learning.ts";

/** What was sent on a day. Days are whole ones since 1970 (UTC). */
export interface DayMail {
  readonly day: number;
  readonly messages: number;
  readonly aligned: number;
  /** Not aligned, but passed on by somebody the receiver knows. */
  readonly forwarded: number;
}

/** A sender, or a name in `From`, of which the rules have not heard yet. */
export interface Newcomer {
  /** The first day that any report tells of it. */
  readonly firstDay: number;
  readonly days: readonly Pick<DayMail, "day" | "messages">[];
}

/** What a newcomer is measured by. */
export interface Measure {
  readonly today: number;
  readonly learning: Learning;
  /** All mail of the domain. */
  readonly days: readonly Pick<DayMail, "day" | "messages">[];
  /** From this share of a day's mail on a newcomer has weight; null: only its number of messages counts. */
  readonly shareMin: number | null;
}

/** Reports are about the past: what they tell of longer ago is history, and no news (imports, and reporters that are late). */
export const NEWS_DAYS = 7;
const NEWCOMER_MESSAGES_MIN = 10;
export const NEWCOMER_SHARE_MIN = 0.01;

/**
 * Whether a newcomer is worth an alert. `open`: not yet, it is looked at again when more reports come. `settled`: never, for it
 * belongs to the time in which the domain was learnt, or to the past.
 */
export const judgeNewcomer = ({ firstDay, days }: Newcomer, measure: Measure): "raise" | "settled" | "open" => {
  const { today, learning, shareMin } = measure;
  if (firstDay < today - NEWS_DAYS || !isLearned(learning, firstDay)) return "settled";
  const hasWeight = days.some(
    ({ day, messages }) =>
      messages >= NEWCOMER_MESSAGES_MIN ||
      (shareMin !== null && messages > 0 && messages >= shareMin * usualMessages(day, measure)),
  );
  return hasWeight ? "raise" : "open";
};

/** The mail of a day; while only a few reports about it are in, that of an average day of the week before. */
const usualMessages = (day: number, { days }: Measure): number => {
  const sum = (from: number, to: number) =>
    days.reduce((total, other) => (other.day >= from && other.day <= to ? total + other.messages : total), 0);
  return Math.max(sum(day, day), sum(day - NEWS_DAYS, day - 1) / NEWS_DAYS);
};
