import { type DayMail, NEWS_DAYS } from "./alert-rules.ts";

/** What a reporter told of a day, with what was passed on. */
export interface ReporterDay {
  readonly reporter: string;
  readonly day: number;
  readonly messages: number;
  readonly aligned: number;
}

/** A day on which much more mail failed than before. */
export interface Spike {
  readonly day: number;
  readonly messages: number;
  readonly failing: number;
  readonly previousMessages: number;
  readonly previousFailing: number;
}

export interface SpikeFinding {
  readonly spikes: readonly Spike[];
  /** A day may turn out to be one when more reports about it are in, or when no more are to come. */
  readonly isOpen: boolean;
}

interface Failures {
  readonly day: number;
  readonly messages: number;
  readonly failing: number;
}

const SPIKE_MESSAGES_MIN = 100;
const SPIKE_POINTS_MIN = 0.15;
const SPIKE_DAYS_BEFORE = 7;
/** With less of a usual day's mail, the reports of many are not there yet. */
const WHOLE_SHARE_MIN = 0.5;
/** Reports about a day come in the course of the next one. */
const SETTLED_AFTER_DAYS = 2;
/** So many messages as all reporters together saw stand in for what a reporter has not told yet. */
const PRIOR_MESSAGES = 20;
/** Shares are fractions: 0.30 - 0.15 is not exactly 0.15. */
const ROUNDING = 1e-6;

/**
 * Finds the days whose share of aligned mail is at least 15 points below that of the seven days before, with at least 100
 * messages each. Mail that was passed on is left out; `days` are those without forwarders.
 *
 * Reports about a day come one after the other. So a day is judged when half of a usual day's mail is in, or two days later;
 * and like is compared with like: the failures must also be so many more than the same reporters told of before.
 */
export const findSpikes = (
  days: readonly DayMail[],
  reporters: readonly ReporterDay[],
  today: number,
): SpikeFinding => {
  const counted = days.map(({ day, messages, aligned, forwarded }) => {
    const judged = messages - forwarded;
    return { day, messages: judged, failing: Math.max(0, judged - aligned) };
  });
  const told = reporters.map(({ messages, aligned, ...rest }) => ({ ...rest, messages, failing: messages - aligned }));
  const spikes: Spike[] = [];
  let isOpen = false;
  for (const mail of counted) {
    const before = sumOf(daysBefore(counted, mail.day));
    if (mail.day < today - NEWS_DAYS || !isRise(mail, before)) continue;
    const isWhole = mail.messages >= WHOLE_SHARE_MIN * usualMessages(daysBefore(counted, mail.day));
    if (!isWhole && mail.day > today - SETTLED_AFTER_DAYS) isOpen = true;
    else if (additionalFailures(told, mail.day, isWhole) >= SPIKE_POINTS_MIN * mail.messages - ROUNDING)
      spikes.push({ ...mail, previousMessages: before.messages, previousFailing: before.failing });
  }
  return { spikes, isOpen };
};

/** Whether any day could be a spike: without a look at who forwards and who reports. */
export const maySpike = (days: readonly DayMail[]): boolean =>
  days.some(
    ({ messages, aligned }) => messages >= SPIKE_MESSAGES_MIN && messages - aligned >= messages * SPIKE_POINTS_MIN,
  );

const isRise = ({ messages, failing }: Failures, before: Omit<Failures, "day">): boolean =>
  messages >= SPIKE_MESSAGES_MIN &&
  before.messages >= SPIKE_MESSAGES_MIN &&
  failing / messages - before.failing / before.messages >= SPIKE_POINTS_MIN - ROUNDING;

const daysBefore = <T extends { readonly day: number }>(all: readonly T[], day: number): readonly T[] =>
  all.filter((other) => other.day < day && other.day >= day - SPIKE_DAYS_BEFORE);

const sumOf = (all: readonly Omit<Failures, "day">[]) => ({
  messages: all.reduce((total, { messages }) => total + messages, 0),
  failing: all.reduce((total, { failing }) => total + failing, 0),
});

/** The mail of a day in the middle of those that had any. */
const usualMessages = (all: readonly Failures[]): number => {
  const sorted = all.map(({ messages }) => messages).filter((messages) => messages > 0);
  sorted.sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
};

/**
 * How many more messages failed on a day than the same reporters' shares of the days before let expect. The less a reporter told
 * before, the more it is measured by all of them together; one that told nothing counts only on a day that is whole.
 */
const additionalFailures = (
  told: readonly (Failures & { readonly reporter: string })[],
  day: number,
  isWhole: boolean,
): number => {
  const before = daysBefore(told, day);
  const all = sumOf(before);
  const shareOfAll = all.messages === 0 ? 0 : all.failing / all.messages;
  const byReporter = Map.groupBy(before, ({ reporter }) => reporter);
  let additional = 0;
  for (const { reporter, messages, failing } of told.filter((mail) => mail.day === day)) {
    const own = byReporter.get(reporter);
    if (own === undefined && !isWhole) continue;
    const past = sumOf(own ?? []);
    const share = (past.failing + PRIOR_MESSAGES * shareOfAll) / (past.messages + PRIOR_MESSAGES);
    additional += failing - messages * share;
  }
  return additional;
};
