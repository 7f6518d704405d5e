import { sumFields } from "../../../foundation/base/sums.ts";
import { ALERT_DAYS } from "./review-facts.ts";
import type { DayMail } from "./alert-rule-store.ts";

/** The mail of a source by day, in any order; days without mail are absent. */
interface SourceDays {
  readonly key: string;
  readonly days: readonly DayMail[];
}

/** An incident that was alerted. Shares are of failing messages, 0 to 1. */
export interface AlertedIncident {
  readonly startedDay: number;
  /** The day on which the mail passed again; null while it has not ended. */
  readonly endedDay: number | null;
  /** The share that was last alerted. */
  readonly share: number;
  readonly usualShare: number;
}

interface FailureThresholds {
  /** Failing messages of an incident, so far. */
  readonly messagesMin: number;
  /** How far the share of failing mail must be above the usual one, 0 to 1. */
  readonly riseMin: number;
}

export interface FailureChange extends Omit<AlertedIncident, "endedDay"> {
  readonly key: string;
  /** `ended`: the mail of `day` passes as usual again. */
  readonly state: "started" | "grew" | "ended";
  /** The last day that was evaluated. */
  readonly day: number;
  /** Since the incident started; when it ended, on the day that it ended. */
  readonly messages: number;
  readonly failing: number;
}

export interface FailureMeasure extends FailureThresholds {
  readonly today: number;
  /** Whether enough reports about a day have arrived to judge it. */
  readonly isComplete: (day: number) => boolean;
}

/** The usual share is that of this many days, the same weekday first. */
const USUAL_DAYS = 28;
const WEEK = 7;
/** Minimum of messages for a usual share, and for a day to be judged. */
const USUAL_MESSAGES_MIN = 20;
const DAY_MESSAGES_MIN = 3;
/** Failures vary from day to day; this many standard deviations above the usual number are not chance. */
const DEVIATIONS = 3;
/** An incident has ended when the share is within this part of the rise that starts one. */
const ENDED_PART = 1 / 3;
/** Usual days with fewer messages in sum do not end an incident: a quiet Sunday says nothing about a newsletter. */
const ENDED_MESSAGES_MIN = 20;
/** After this many days the failures are usual: their end raises no alert, and a further rise is another incident. */
const INCIDENT_DAYS_MAX = 60;
/** Shares are fractions: 0.30 - 0.15 is not exactly 0.15. */
const ROUNDING = 1e-6;

/**
 * What changed about the failures of one source. It is compared with itself: with the same weekday of the four weeks before, or with all
 * of their days where that weekday has too little mail. So neither a source that always failed nor a weekly newsletter is an incident.
 * Null when nothing changed, and when too little is known about the source.
 */
export const judgeFailures = (
  { key, days }: SourceDays,
  last: AlertedIncident | undefined,
  measure: FailureMeasure,
): FailureChange | null => {
  const sorted = days.map(failuresOf).toSorted((a, b) => a.day - b.day);
  const judged = sorted.filter(
    ({ day, messages }) =>
      messages >= DAY_MESSAGES_MIN &&
      day >= measure.today - ALERT_DAYS &&
      day <= measure.today &&
      measure.isComplete(day),
  );
  const isOpen = last !== undefined && last.endedDay === null && last.startedDay >= measure.today - INCIDENT_DAYS_MAX;
  if (isOpen) return followUp(key, last, judged, measure);
  const endedDay = last?.endedDay ?? 0;
  // The days of the last incident are not usual.
  const usual = sorted.filter(({ day }) => day < (last?.startedDay ?? 0) || day >= endedDay);
  return findStart(
    key,
    usual,
    judged.filter(({ day }) => day > endedDay),
    measure,
  );
};

interface Failures {
  readonly day: number;
  readonly messages: number;
  readonly failing: number;
}

const failuresOf = ({ day, messages, aligned, forwarded }: DayMail) => {
  const counted = messages - forwarded;
  return { day, messages: counted, failing: Math.max(0, counted - aligned) };
};

const failuresIn = (days: readonly Failures[]) => sumFields(days, "messages", "failing");

/** The last run of days with a rise, if it has enough failures. */
const findStart = (
  key: string,
  all: readonly Failures[],
  judged: readonly Failures[],
  measure: FailureMeasure,
): FailureChange | null => {
  let run: Failures[] = [];
  let usualShare = 0;
  for (const day of judged) {
    const usual = usualShareOf(all, run[0]?.day ?? day.day, day.day);
    const isRise = usual !== null && isAbove(day, usual, measure.riseMin);
    // A run with enough failures is alerted although it has ended.
    if (!isRise && failuresIn(run).failing >= measure.messagesMin) break;
    if (!isRise) run = [];
    if (!isRise) continue;
    if (run.length === 0) usualShare = usual;
    run.push(day);
  }
  const [first, last] = [run[0], run.at(-1)];
  if (first === undefined || last === undefined || failuresIn(run).failing < measure.messagesMin) return null;
  const earlier = daysBefore(first.day, all, measure);
  const { messages, failing } = failuresIn([...earlier, ...run]);
  const incident = { startedDay: earlier.at(-1)?.day ?? first.day, share: failing / messages, usualShare };
  return { key, state: "started", day: last.day, messages, failing, ...incident };
};

/** The days with a rise directly before a day, newest first: reports about an incident can arrive more than a week after it began. */
const daysBefore = (first: number, all: readonly Failures[], { riseMin }: Pick<FailureMeasure, "riseMin">) => {
  const before = all.filter(({ day, messages }) => day < first && messages >= DAY_MESSAGES_MIN).toReversed();
  const end = before.findIndex((day) => {
    const usual = usualShareOf(all, day.day, day.day);
    return usual === null || !isAbove(day, usual, riseMin);
  });
  return end < 0 ? before : before.slice(0, end);
};

const followUp = (
  key: string,
  { startedDay, share: alertedShare, usualShare }: AlertedIncident,
  judged: readonly Failures[],
  { messagesMin, riseMin }: FailureMeasure,
): FailureChange | null => {
  const since = judged.filter(({ day }) => day > startedDay);
  const last = since.at(-1);
  if (last === undefined) return null;
  const share = last.failing / last.messages;
  const found = { key, ...last, startedDay, share, usualShare };
  const isUsual = (day: Failures) => day.failing / day.messages <= usualShare + riseMin * ENDED_PART + ROUNDING;
  if (isUsual(last)) {
    const usual = failuresIn(since.slice(since.findLastIndex((day) => !isUsual(day)) + 1));
    return usual.messages >= ENDED_MESSAGES_MIN ? { ...found, state: "ended" } : null;
  }
  const rise = share - alertedShare;
  const isGrown = rise >= Math.max(alertedShare, riseMin) - ROUNDING && last.failing >= messagesMin;
  return isGrown ? { ...found, state: "grew" } : null;
};

/** The weight, in messages, of the usual share of all reporters where one reporter has little history. */
const PRIOR_MESSAGES = 20;
/** This part of the rise must remain when each reporter is compared with itself. */
const COMPARABLE_PART = 0.5;

/**
 * Whether the same reporters saw the failures rise. Some reporters always see more failures than others, and reports about a day arrive
 * one after the other: those that arrive first must not look like a rise. True when no reporter is known.
 */
export const isSeenByReporters = (
  { startedDay, day, messages, failing, usualShare }: FailureChange,
  reporters: ReadonlyArray<DayMail & { readonly reporter: string }>,
): boolean => {
  if (reporters.length === 0) return true;
  let additional = 0;
  for (const of of Map.groupBy(reporters, ({ reporter }) => reporter).values()) {
    const days = of.map(failuresOf);
    const before = failuresIn(days.filter((one) => one.day < startedDay));
    const since = failuresIn(days.filter((one) => one.day >= startedDay && one.day <= day));
    const share = (before.failing + PRIOR_MESSAGES * usualShare) / (before.messages + PRIOR_MESSAGES);
    additional += since.failing - since.messages * share;
  }
  return additional >= COMPARABLE_PART * (failing - usualShare * messages);
};

/** The usual share before an incident, on the weekday of a day; null when too little is known. */
const usualShareOf = (all: readonly Failures[], beforeDay: number, day: number) => {
  const before = all.filter((other) => other.day < beforeDay && other.day >= beforeDay - USUAL_DAYS);
  const sameWeekday = failuresIn(before.filter((other) => (day - other.day) % WEEK === 0));
  const recent = failuresIn(before);
  // Monthly mail was last sent a little longer ago.
  const earlier =
    recent.messages >= USUAL_MESSAGES_MIN ? recent : failuresIn(all.filter((other) => other.day < beforeDay));
  const usual = sameWeekday.messages >= USUAL_MESSAGES_MIN ? sameWeekday : earlier;
  return usual.messages < USUAL_MESSAGES_MIN ? null : usual.failing / usual.messages;
};

const isAbove = ({ messages, failing }: Failures, usualShare: number, riseMin: number) => {
  const expected = usualShare * messages;
  const isLarge = failing / messages - usualShare >= riseMin - ROUNDING;
  return isLarge && failing - expected >= DEVIATIONS * Math.sqrt(expected);
};
