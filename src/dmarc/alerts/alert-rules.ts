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
  /** The first day that any report about the domain tells of. */
  readonly learnsFromDay: number;
  /** All mail of the domain. */
  readonly days: readonly Pick<DayMail, "day" | "messages">[];
  /** From this share of a day's mail on a newcomer has weight; null: only its number of messages counts. */
  readonly shareMin: number | null;
}

/** Reports are about the past: what they tell of longer ago is history, and no news (imports, and reporters that are late). */
export const NEWS_DAYS = 7;
/** In its first week nothing about a domain is news: all of it is. */
const LEARNING_DAYS = 7;
const NEWCOMER_MESSAGES_MIN = 10;
export const NEWCOMER_SHARE_MIN = 0.01;

const SPIKE_MESSAGES_MIN = 100;
const SPIKE_POINTS_MIN = 0.15;
const SPIKE_DAYS_BEFORE = 7;
/** Shares are fractions: 0.30 - 0.15 is not exactly 0.15. */
const ROUNDING = 1e-9;

/**
 * Whether a newcomer is worth an alert. `open`: not yet, it is looked at again when more reports come. `settled`: never, for it
 * belongs to the first week or to the past.
 */
export const judgeNewcomer = ({ firstDay, days }: Newcomer, measure: Measure): "raise" | "settled" | "open" => {
  const { today, learnsFromDay, shareMin } = measure;
  if (firstDay < today - NEWS_DAYS || firstDay < learnsFromDay + LEARNING_DAYS) return "settled";
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

/** A day on which much more mail failed than before. */
export interface Spike {
  readonly day: number;
  readonly messages: number;
  readonly failing: number;
  readonly previousMessages: number;
  readonly previousFailing: number;
}

/**
 * Finds the days whose share of aligned mail is at least 15 points below that of the seven days before, with at least 100
 * messages each. Mail that was passed on is left out; `days` are those without forwarders. Parts of a day may still be on
 * their way, so that a day is judged again as it grows.
 */
export const findSpikes = (days: readonly DayMail[], today: number): readonly Spike[] => {
  const counted = days.map(({ day, messages, aligned, forwarded }) => {
    const judged = messages - forwarded;
    return { day, messages: judged, failing: Math.max(0, judged - aligned) };
  });
  return counted.flatMap(({ day, messages, failing }) => {
    if (day < today - NEWS_DAYS || messages < SPIKE_MESSAGES_MIN) return [];
    const before = counted.filter((other) => other.day < day && other.day >= day - SPIKE_DAYS_BEFORE);
    const previousMessages = before.reduce((total, other) => total + other.messages, 0);
    const previousFailing = before.reduce((total, other) => total + other.failing, 0);
    if (previousMessages < SPIKE_MESSAGES_MIN) return [];
    const rise = failing / messages - previousFailing / previousMessages;
    return rise >= SPIKE_POINTS_MIN - ROUNDING ? [{ day, messages, failing, previousMessages, previousFailing }] : [];
  });
};

/** Whether any day could be a spike: without a look at who forwards. */
export const maySpike = (days: readonly DayMail[]): boolean =>
  days.some(
    ({ messages, aligned }) => messages >= SPIKE_MESSAGES_MIN && messages - aligned >= messages * SPIKE_POINTS_MIN,
  );
