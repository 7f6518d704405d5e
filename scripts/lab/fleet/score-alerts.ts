import { DAY_MS } from "../../../src/foundation/base/days.ts";
import type { SeenAdvice, SeenAlert } from "./observed.ts";
import type { Checkpoint, PlannedEvent } from "./plan.ts";
import type { Simulated } from "./simulate.ts";

/** What became of an event. */
export interface EventScore {
  readonly domain: string;
  readonly what: string;
  readonly isOptional: boolean;
  /** How often it was told, without the word that it is over. */
  readonly told: number;
  /** Days from the event to the first alert; null when there was none. */
  readonly delayDays: number | null;
  readonly namesCause: boolean;
  /** Summaries of its alerts. */
  readonly texts: readonly string[];
  readonly isRight: boolean;
}

export interface AlertScore {
  readonly domain: string;
  readonly events: readonly EventScore[];
  /** Alerts about nothing new. */
  readonly false: readonly SeenAlert[];
  readonly falsePer30Days: number;
  readonly alerts: number;
  readonly alertMails: number;
  readonly digests: number;
}

/** An alert says that something is over, or has grown to twice its size. */
const IS_FOLLOW_UP =
  /\b(ended|is over|over since|recovered|resolved|back to|again (?:active|valid|arriv)|restored|doubled|reports arrive again|stopped failing|passes again|pass again)\b/i;
/** After its end an event is over for whoever reads the alerts. */
const AFTER_DAYS = 7;
/** The end may be told by two rules: the status, and the record. */
const ENDS_MAX = 2;

const textOf = ({ summary, subject, data }: SeenAlert): string => `${summary}\n${subject}\n${JSON.stringify(data)}`;

const dayOf = (alert: SeenAlert, startMs: number): number => (Date.parse(alert.at) - startMs) / DAY_MS;

const isOf = (alert: SeenAlert, event: PlannedEvent, startMs: number): boolean => {
  const day = dayOf(alert, startMs);
  const lastDay = (event.endDay ?? event.day + event.within) + AFTER_DAYS;
  return (
    day >= event.day &&
    day <= lastDay &&
    event.rules.includes(alert.rule) &&
    (event.about === null || event.about.test(textOf(alert)))
  );
};

/** Alerts of another rule about the same thing, and the word that it is over. */
const isBeside = (alert: SeenAlert, event: PlannedEvent, startMs: number): boolean => {
  const day = dayOf(alert, startMs);
  const lastDay = (event.endDay ?? event.day + event.within) + AFTER_DAYS;
  if (day < event.day || day > lastDay) return false;
  const isAbout = event.about === null || event.about.test(textOf(alert));
  return isAbout && (event.beside?.includes(alert.rule) === true || IS_FOLLOW_UP.test(alert.summary));
};

const scoreEvent = (
  event: PlannedEvent,
  found: readonly SeenAlert[],
  { domain, startMs }: { domain: string; startMs: number },
): EventScore => {
  // A change that is reverted is alerted once more, from the day on which it ends.
  const isLater = (alert: SeenAlert): boolean => event.endDay !== undefined && dayOf(alert, startMs) >= event.endDay;
  const isEnd = (alert: SeenAlert): boolean => IS_FOLLOW_UP.test(alert.summary) || isLater(alert);
  const ends = found.filter(isEnd);
  const starts = found.filter((alert) => !isEnd(alert));
  const [first] = starts;
  const delayDays = first === undefined ? null : dayOf(first, startMs) - event.day;
  // One thing may be told by several rules, by each of them once.
  const rules = Map.groupBy(starts, ({ rule }) => (event.beside === undefined ? "" : rule));
  const mostOfARule = Math.max(0, ...[...rules.values()].map(({ length }) => length));
  const told = mostOfARule + Math.max(0, ends.length - ENDS_MAX);
  const isInTime = delayDays !== null && delayDays <= event.within + 1;
  const cause = event.cause;
  return {
    ...{ domain, what: event.what, isOptional: event.isOptional === true, told, delayDays },
    namesCause: first !== undefined && (cause === null || cause.test(textOf(first))),
    texts: found.map(({ rule, summary }) => `${rule}: ${summary}`),
    isRight: event.isOptional === true ? told <= 1 : told === 1 && isInTime,
  };
};

/** Holds a domain's alerts against its events. */
export const alertScoreOf = (
  { plan, observed, mails }: Simulated,
  { startMs, days }: { startMs: number; days: number },
): AlertScore => {
  const taken = new Set<SeenAlert>();
  const events = plan.events
    .filter(({ day, within }) => day + within < days)
    .map((event) => {
      const found = observed.alerts.filter((alert) => !taken.has(alert) && isOf(alert, event, startMs));
      for (const alert of found) taken.add(alert);
      return scoreEvent(event, found, { domain: plan.name, startMs });
    });
  const told = plan.events.filter(({ day }) => day < days);
  // The first check of a new domain makes it active: that is the answer to its owner's own deed.
  const isOwnDeed = (alert: SeenAlert): boolean => dayOf(alert, startMs) < (plan.enrolDay ?? 0) + 1;
  const wrong = observed.alerts.filter(
    (alert) => !taken.has(alert) && !isOwnDeed(alert) && !told.some((event) => isBeside(alert, event, startMs)),
  );
  const isDigest = (subject: string): boolean => /digest/i.test(subject);
  const watchedDays = days - (plan.enrolDay ?? 0);
  return {
    ...{ domain: plan.name, events, false: wrong, falsePer30Days: (wrong.length * 30) / watchedDays },
    alerts: observed.alerts.length,
    alertMails: mails.filter(({ subject }) => !isDigest(subject)).length,
    digests: mails.filter(({ subject }) => isDigest(subject)).length,
  };
};

/** Advice beside an expert's. */
export interface AdviceScore {
  readonly domain: string;
  readonly day: number;
  readonly expert: string;
  readonly said: string;
  readonly problems: readonly string[];
  readonly isRight: boolean;
}

const wordsOf = ({ next, requirements, notes }: SeenAdvice): string =>
  [
    next?.action ?? "nothing",
    next?.why ?? "",
    ...(next?.steps ?? []),
    ...requirements.filter(({ met }) => !met).map(({ message }) => message),
    ...notes.map(({ code, message }) => `${code}: ${message}`),
  ].join("\n");

const problemsOf = ({ actions, names, never, stage, record }: Checkpoint, seen: SeenAdvice): string[] => {
  const action = seen.next?.action ?? null;
  const published = seen.next?.record ?? "";
  const step = [action ?? "", seen.next?.why ?? "", ...(seen.next?.steps ?? []), published].join("\n");
  // A step must say itself what it is about; without one, what is open says it.
  const told =
    action === null || action === "wait" ? wordsOf(seen) : `${step}\n${wordsOf({ ...seen, requirements: [] })}`;
  return [
    ...(actions.includes(action)
      ? []
      : [`the step is ${action ?? "none"}, not ${actions.map((one) => one ?? "none").join(" or ")}`]),
    ...(names === null || names.test(told) ? [] : [`${String(names)} is not named`]),
    ...(never?.test(step) === true ? [`${String(never)} is advised`] : []),
    ...(stage === undefined || stage === seen.stage ? [] : [`the stage is ${seen.stage}, not ${stage}`]),
    ...(record === undefined || record.test(published) ? [] : [`the record is ${published}, not ${String(record)}`]),
  ];
};

export const adviceScoresOf = ({ plan, advice }: Simulated): AdviceScore[] =>
  advice.map(({ checkpoint, seen }) => {
    const problems = problemsOf(checkpoint, seen);
    const said = `${seen.stage}, ${seen.next?.action ?? "nothing"}: ${(seen.next?.why ?? "").slice(0, 220)}`;
    return {
      ...{ domain: plan.name, day: checkpoint.day, expert: checkpoint.expert, said, problems },
      isRight: problems.length === 0,
    };
  });
