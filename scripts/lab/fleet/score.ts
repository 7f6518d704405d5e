import { type AdviceScore, type AlertScore, type EventScore, adviceScoresOf, alertScoreOf } from "./score-alerts.ts";
import { type Claim, claimsOf } from "./score-claims.ts";
import { type ClassScore, type SenderScore, classScores, sendersOf } from "./score-senders.ts";
import type { SimulationResult } from "./simulate.ts";

/** The whole score of a run. */
export interface FleetScore {
  readonly seed: number;
  readonly days: number;
  readonly domains: number;
  readonly reportMails: number;
  readonly messages: number;
  readonly classes: readonly ClassScore[];
  readonly senders: readonly SenderScore[];
  /** The classes as they are shown on some days on the way, of the week before. */
  readonly weeks: readonly {
    readonly day: number;
    readonly classes: readonly ClassScore[];
    readonly senders: readonly SenderScore[];
  }[];
  readonly alerts: readonly AlertScore[];
  readonly events: readonly EventScore[];
  readonly advice: readonly AdviceScore[];
  readonly claims: readonly Claim[];
}

/** The score of a run; `more` are claims from beside it. */
export const scoreOf = (
  result: SimulationResult,
  { seed, days, more = [] }: { seed: number; days: number; more?: readonly Claim[] },
): FleetScore => {
  const senders = result.domains.flatMap((domain) => sendersOf(domain, domain.observed));
  const weekDays = [...new Set(result.domains.flatMap(({ weeks }) => weeks.map(({ day }) => day)))];
  const weeks = weekDays.map((day) => {
    const seen = result.domains.flatMap((domain) =>
      domain.weeks.filter((week) => week.day === day).flatMap((week) => sendersOf(domain, week)),
    );
    return { day, classes: classScores(seen), senders: seen };
  });
  const alerts = result.domains.map((domain) => alertScoreOf(domain, { startMs: result.startMs, days }));
  return {
    ...{ seed, days, domains: result.domains.length, reportMails: result.reportMails, senders, alerts },
    messages: senders.reduce((sum, { messages }) => sum + messages, 0),
    classes: classScores(senders),
    weeks,
    events: alerts.flatMap(({ events }) => events),
    advice: result.domains.flatMap(adviceScoresOf),
    claims: [...claimsOf(result), ...more],
  };
};

/** What a run must reach. */
export interface Minimum {
  readonly classes: number;
  readonly weekClasses: number;
  /** Of the senders that are not forgers. */
  readonly apart: number;
  readonly events: number;
  readonly causes: number;
  readonly advice: number;
  readonly claims: number;
  /** Most false alerts of a domain in 30 days. */
  readonly falsePer30DaysMax: number;
}

const worstOf = (classes: readonly ClassScore[]): number =>
  Math.min(...classes.flatMap(({ precision, recall }) => [precision, recall]));

/** The figures that a run is judged by; all but the last are shares of 1. */
export const figuresOf = (score: FleetScore): Minimum => {
  const share = (items: readonly unknown[], good: number): number => (items.length === 0 ? 1 : good / items.length);
  const real = score.senders.filter(({ isPooled }) => !isPooled);
  const must = score.events.filter(({ isOptional }) => !isOptional);
  return {
    classes: worstOf(score.classes),
    weekClasses: Math.min(1, ...score.weeks.map(({ classes }) => worstOf(classes))),
    apart: share(real, real.filter(({ isApart }) => isApart).length),
    events: share(score.events, score.events.filter(({ isRight }) => isRight).length),
    causes: share(must, must.filter(({ namesCause }) => namesCause).length),
    advice: share(score.advice, score.advice.filter(({ isRight }) => isRight).length),
    claims: share(score.claims, score.claims.filter(({ isRight }) => isRight).length),
    falsePer30DaysMax: Math.max(0, ...score.alerts.map(({ falsePer30Days }) => falsePer30Days)),
  };
};

const DIGITS = 10_000;

/** What is below the minimum, as sentences; empty when all is well. */
export const shortfallsOf = (score: FleetScore, minimum: Minimum): string[] => {
  const figures = figuresOf(score);
  const rounded = (figure: number): number => Math.round(figure * DIGITS) / DIGITS;
  return Object.entries(figures).flatMap(([name, figure]) => {
    const least = minimum[name as keyof Minimum];
    const isGood = name === "falsePer30DaysMax" ? rounded(figure) <= least : rounded(figure) >= least;
    return isGood ? [] : [`${name}: ${rounded(figure)}, the minimum is ${least}`];
  });
};

/** What was reached; a change that falls below it is a step back. */
export const MINIMUM: Minimum = {
  classes: 0.98,
  weekClasses: 0.95,
  apart: 1,
  events: 1,
  causes: 1,
  advice: 0.96,
  claims: 1,
  falsePer30DaysMax: 0.5,
};
