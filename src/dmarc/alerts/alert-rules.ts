import { isLearned, type Learning } from "./alert-learning.ts";

/** What was sent on a day. Days are whole ones since 1970 (UTC). */
export interface DayMail {
  readonly day: number;
  readonly messages: number;
  readonly aligned: number;
  /** Not aligned, but recognized as forwarded by the receiver. */
  readonly forwarded: number;
}

/** A sender, or a name in `From`, that the rules have not seen yet. */
export interface Newcomer {
  /** The first day in any report. */
  readonly firstDay: number;
  /** Whether its mail is enough to alert. */
  readonly hasWeight: boolean;
}

/** Reports are about the past: what they tell of longer ago is history, and no news (imports, and reporters that are late). */
export const NEWS_DAYS = 7;

/**
 * Whether a newcomer is worth an alert. `open`: not yet, it is looked at again when more reports come. `settled`: never, because it
 * belongs to the time in which the domain was learnt, or to the past.
 */
export const judgeNewcomer = (
  { firstDay, hasWeight }: Newcomer,
  { today, learning }: { readonly today: number; readonly learning: Learning },
): "raise" | "settled" | "open" => {
  if (firstDay < today - NEWS_DAYS || !isLearned(learning, firstDay)) return "settled";
  return hasWeight ? "raise" : "open";
};
