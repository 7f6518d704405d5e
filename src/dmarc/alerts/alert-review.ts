import { OTHER_SOURCES } from "../ingest/source-key.ts";
import { isoDay, type DayRange, dayOfTime } from "../../base/days.ts";
import type { Tx } from "../../db/open.ts";
import type { AlertRuleStore, NameDay, SourceDay, UnreviewedSource } from "./alert-rule-store.ts";
import { learningFromDay } from "./alert-learning.ts";
import { type DayMail, judgeNewcomer, type Measure, NEWCOMER_SHARE_MIN, NEWS_DAYS } from "./alert-rules.ts";
import { findSpikes, maySpike } from "./alert-spikes.ts";
import type { AlertStore } from "../domains/alert-store.ts";
import { namesAlert, sourcesAlert, spikeAlert } from "./alert-texts.ts";
import type { DomainRow } from "../domains/domain-store.ts";
import type { Raise } from "../domains/raise.ts";
import type { ReadingStore } from "../reading/reading-store.ts";
import { addressKeyOf } from "../reading/source-groups.ts";
import type { SourceReader } from "../reading/sources.ts";
import type { ShownSource } from "../reading/source-view.ts";

export interface ReviewDeps {
  readonly rules: AlertRuleStore;
  readonly alerts: Pick<AlertStore, "lastRaisedMs">;
  readonly reading: ReadingStore;
  readonly reader: Pick<SourceReader, "sources">;
  readonly raise: Raise;
}

/** So many newcomers at once are told of one by one, more together. */
const ONE_BY_ONE_MAX = 10;
/** Newcomers looked at in one review, those that sent most; the rest are looked at in the next. */
const NEWCOMERS_MAX = 20_000;
/** The rules wait so long for the reverse name of an address, which makes one source out of many. */
const REVERSE_NAME_WAIT_MS = 60 * 60_000;

interface Review {
  readonly tx: Tx;
  readonly domain: DomainRow;
  readonly nowMs: number;
  /** The days that are news. */
  readonly recent: DayRange;
  readonly measure: Measure;
  /** Who sent what in the range; what was asked for once is kept. */
  readonly shown: (range: DayRange) => ReadonlyMap<string, ShownSource>;
}

/**
 * Looks at a domain to which reports came: new senders, new names in `From`, and days on which much more failed. To be run in one
 * transaction, in which the domain is marked as reviewed as well, unless something must be looked at again without a new report.
 */
export const createReview = ({ rules, alerts, reading, reader, raise }: ReviewDeps) => {
  const keysOf = (domain: DomainRow, sources: readonly UnreviewedSource[]) => {
    const isAll = sources.length < NEWCOMERS_MAX;
    const looked = new Set(sources.map(({ number }) => number));
    const unreviewed = isAll ? looked : new Set(rules.unreviewedNumbers(domain.number));
    const keys = new Map(sources.map(({ number, key }) => [number, key]));
    const known = new Set<string>();
    const unnamed = new Set<number>();
    if (!sources.some(({ key }) => key.startsWith("ip:"))) return { keys, known, unnamed };
    for (const [number, address] of reading.bareAddresses(domain.number)) {
      const key = addressKeyOf(address);
      if (!unreviewed.has(number)) known.add(key);
      if (looked.has(number)) keys.set(number, key);
      if (looked.has(number) && !address.isAsked) unnamed.add(number);
    }
    return { keys, known, unnamed };
  };

  /** True when some source waits for its reverse name, or for the next review. */
  const reviewSources = ({ tx, domain, nowMs, recent, measure, shown }: Review): boolean => {
    const sources = rules.unreviewedSources(domain.number, recent, NEWCOMERS_MAX);
    if (sources.length === 0) return false;
    const { keys, known, unnamed } = keysOf(domain, sources);
    const numbers = sources.map(({ number }) => number);
    const days = Map.groupBy(rules.sourceDays(domain.number, recent, numbers), ({ source }) => keys.get(source) ?? "");
    const groups = Map.groupBy(sources, ({ number, key }) => keys.get(number) ?? key);
    const settled: number[] = [];
    const raised: string[] = [];
    let waits = false;
    for (const [key, members] of groups) {
      const firstDay = Math.min(...members.map((member) => member.firstDay));
      const judgement =
        known.has(key) || key === OTHER_SOURCES
          ? "settled"
          : judgeNewcomer({ firstDay, days: perDay(days.get(key)) }, measure);
      if (judgement === "open") continue;
      const isWaiting = members.some(
        ({ number, firstSeenAtMs }) => unnamed.has(number) && nowMs - firstSeenAtMs < REVERSE_NAME_WAIT_MS,
      );
      if (judgement === "raise" && isWaiting) {
        waits = true;
        continue;
      }
      const source = judgement === "raise" ? shown(recent).get(key) : undefined;
      // What turns out later to be no forwarder is still new then.
      if (source?.classification === "forwarder" && source.classified_by === "service") continue;
      settled.push(...members.map(({ number }) => number));
      if (source?.classified_by === "service") raised.push(key);
    }
    rules.markSources(tx, settled);
    const found = raised.flatMap((key) => shown(recent).get(key) ?? []).toSorted((a, b) => b.messages - a.messages);
    for (const group of together(found)) raise(tx, domain, sourcesAlert(group), nowMs);
    // Where all that were looked at stay open, the rest sent less still: only new reports can change that.
    return waits || (sources.length === NEWCOMERS_MAX && settled.length > 0);
  };

  const reviewNames = ({ tx, domain, nowMs, recent, measure }: Review): boolean => {
    const names = rules.unreviewedNames(domain.number, recent, NEWCOMERS_MAX);
    if (names.length === 0) return false;
    const all = names.map(({ name }) => name);
    const days = Map.groupBy(rules.nameDays(domain.number, recent, all), ({ name }) => name);
    const settled: string[] = [];
    const found: { name: string; first_day: string; messages: number; aligned: number }[] = [];
    for (const { name, firstDay } of names) {
      const own = days.get(name) ?? [];
      const isBelow = name.endsWith(`.${domain.domain}`);
      const judgement = isBelow ? judgeNewcomer({ firstDay, days: own }, { ...measure, shareMin: null }) : "settled";
      if (judgement === "open") continue;
      settled.push(name);
      if (judgement === "raise") found.push({ name, first_day: isoDay(firstDay), ...sumOf(own) });
    }
    rules.markNames(tx, domain.number, settled);
    const sorted = found.toSorted((a, b) => b.messages - a.messages);
    for (const group of together(sorted)) raise(tx, domain, namesAlert(group), nowMs);
    return names.length === NEWCOMERS_MAX && settled.length > 0;
  };

  /** True when a day waits for more reports about it. */
  const reviewFailures = ({ tx, domain, nowMs, recent, measure, shown }: Review): boolean => {
    const range = { fromDay: recent.fromDay - NEWS_DAYS, toDay: recent.toDay };
    const days = reading.perDay(domain.number, range);
    if (!maySpike(days)) return false;
    const forwarders = [...shown(range).values()].filter(({ classification }) => classification === "forwarder");
    const judged = withoutSources(days, domain, range, forwarders);
    const { spikes, isOpen } = findSpikes(judged, rules.reporterDays(domain.number, range), measure.today);
    for (const spike of spikes) {
      const alert = spikeAlert(spike, [...shown({ fromDay: spike.day, toDay: spike.day }).values()]);
      if (alerts.lastRaisedMs(domain.number, alert.rule, alert.subject) === null) raise(tx, domain, alert, nowMs);
    }
    return isOpen;
  };

  const withoutSources = (
    days: readonly DayMail[],
    domain: DomainRow,
    range: DayRange,
    left: readonly ShownSource[],
  ): readonly DayMail[] => {
    if (left.length === 0) return days;
    const keys = new Set(left.map(({ key }) => key));
    const bare = reading.bareAddresses(domain.number);
    const numbers = reading.allSources(domain.number).flatMap(({ number, key }) => {
      const address = bare.get(number);
      return keys.has(address === undefined ? key : addressKeyOf(address)) ? [number] : [];
    });
    const minus = Map.groupBy(rules.sourceDays(domain.number, range, numbers), ({ day }) => day);
    return days.map((mail) => {
      const { messages, aligned, forwarded } = sumOf(minus.get(mail.day) ?? []);
      return {
        day: mail.day,
        messages: mail.messages - messages,
        aligned: mail.aligned - aligned,
        forwarded: mail.forwarded - forwarded,
      };
    });
  };

  return (tx: Tx, domain: DomainRow, nowMs: number): void => {
    const today = dayOfTime(nowMs);
    const recent = { fromDay: today - NEWS_DAYS, toDay: today };
    const days = reading.perDay(domain.number, { fromDay: today - 2 * NEWS_DAYS, toDay: today });
    const enrolledDay = dayOfTime(domain.createdAtMs);
    const known = { fromDay: learningFromDay(enrolledDay, recent.fromDay), toDay: today };
    const learning = { enrolledDay, reportedDays: rules.reportedDays(domain.number, known) };
    const measure = { today, learning, days, shareMin: NEWCOMER_SHARE_MIN };
    const shown = remembered((range: DayRange) => reader.sources(domain, range));
    const review: Review = { tx, domain, nowMs, recent, measure, shown };
    const waits = [reviewSources(review), reviewNames(review), reviewFailures(review)].includes(true);
    if (!waits) rules.clearUnreviewed(tx, domain.number);
  };
};

export type ReviewDomain = ReturnType<typeof createReview>;

/** Asks once for each range. */
const remembered = (ask: (range: DayRange) => readonly ShownSource[]) => {
  const answers = new Map<string, ReadonlyMap<string, ShownSource>>();
  return (range: DayRange): ReadonlyMap<string, ShownSource> => {
    const asked = `${range.fromDay}-${range.toDay}`;
    const answer = answers.get(asked) ?? new Map(ask(range).map((source) => [source.key, source]));
    answers.set(asked, answer);
    return answer;
  };
};

const perDay = (rows: readonly SourceDay[] = []) =>
  [...Map.groupBy(rows, ({ day }) => day)].map(([day, of]) => ({ day, messages: sumOf(of).messages }));

const sumOf = (rows: readonly (SourceDay | NameDay)[]) => {
  const total = { messages: 0, aligned: 0, forwarded: 0 };
  for (const row of rows) {
    total.messages += row.messages;
    total.aligned += row.aligned;
    total.forwarded += "forwarded" in row ? row.forwarded : 0;
  }
  return total;
};

/** A few one by one, many together. */
const together = <T>(found: readonly T[]): readonly (readonly T[])[] =>
  found.length > ONE_BY_ONE_MAX ? [found] : found.map((one) => [one]);
