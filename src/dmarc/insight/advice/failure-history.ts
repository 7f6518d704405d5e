import { sumBy, sumFields } from "../../../foundation/base/sums.ts";
import type { DayRange } from "../../../foundation/base/days.ts";
import { atOnce, type Steps } from "../../../foundation/base/in-steps.ts";
import { parseRepeatedBody } from "../../reports/report/report.ts";
import type { DomainRow } from "../../records/domains/domain-store.ts";
import type { DomainSources } from "../sources/domain-sources.ts";
import type { KeyedSource } from "../sources/source-keys.ts";
import { NO_TOTALS, type SourceDayTotals } from "../sources/rollup-rows.ts";
import type { SourceTotals } from "../sources/source-totals-store.ts";
import type { RollupStore } from "../sources/rollup-store.ts";
import { endOfDay, inListOrder, type RecordRow, type RecordStore } from "../queries/record-store.ts";
import {
  type CauseRecord,
  failingResults,
  findCauses,
  isUnchecked,
  type SpikeCause,
  usedAuthentication,
} from "./failure-causes.ts";

/** Mail of one or more sources on a day. */
export type MailDay = Omit<SourceDayTotals, "source">;

/** Since when mail of a source fails, and whether that is over. Days are UTC days since 1970. */
export interface FailureHistory {
  /** The first day of the failures that were last seen. */
  readonly sinceDay: number;
  /** The last day with them. */
  readonly lastDay: number;
  /** Whether nearly all of its mail passed before. */
  readonly hasPassedBefore: boolean;
  /** Whether enough mail has passed since `lastDay`: see `judgeHistory`. */
  readonly hasRecovered: boolean;
  /** Messages in these failures, and those of them that failed; without forwarded ones. */
  readonly messages: number;
  readonly failing: number;
}

/** Days of mail that a history is read from; failures on days further apart are separate incidents when mail passed in between. */
const FAILURE_DAYS = 60;
const INCIDENT_GAP_DAYS = 7;
/** Mail that passed after the last failure is proof from this number of messages and days. */
const PROOF_MESSAGES_MIN = 10;
const PROOF_DAYS_MIN = 2;
/** If a share f of the mail failed by chance still, 3/f messages would all pass with a probability of 5 % (the rule of three). */
const PROOF_FACTOR = 3;
/** A key that a receiver could not look up in time is no failure of the sender. */
const NOISE = 0.01;
const HALF = 0.5;
/** What passed before: messages needed, and the share of them that may fail. */
const BEFORE_MESSAGES_MIN = 20;
const BEFORE_FAILING_MAX = 0.1;
/** Failures of a sender that used to pass raise the share by this much at least. */
const RISE_MIN = 0.15;

interface Day {
  readonly day: number;
  readonly messages: number;
  readonly failing: number;
}

/**
 * When mail of a source failed, by its days in any order. A day counts as failing when the share of failing mail is at least half of
 * what it is over all days with failures: single messages that fail at any sender decide nothing. A source has recovered when, since the
 * last failing day, at least ten messages and three divided by the failing share have passed, on no fewer days than ever lay between
 * two failing days (two at least), and at most 1 % of them (or one message) failed. A source that only stopped sending has not recovered.
 * Null without failures.
 */
export const judgeHistory = (days: readonly MailDay[]): FailureHistory | null => {
  const all = days
    .map(({ day, messages, aligned, forwarded }) => {
      const counted = messages - forwarded;
      return { day, messages: counted, failing: Math.max(0, counted - aligned) };
    })
    .filter(({ messages }) => messages > 0)
    .toSorted((a, b) => a.day - b.day);
  const withFailures = sumFields(
    all.filter(({ failing }) => failing > 0),
    "messages",
    "failing",
  );
  if (withFailures.failing === 0) return null;
  const threshold = HALF * shareOf(withFailures);
  const bad = all.filter((day) => day.failing > 0 && shareOf(day) >= threshold);
  const last = bad.at(-1);
  if (last === undefined) return null;
  const run = lastRun(bad, all);
  const sinceDay = run[0]?.day ?? last.day;
  const incident = sumOf(all.filter(({ day }) => day >= sinceDay && day <= last.day));
  const before = sumOf(all.filter(({ day }) => day < sinceDay));
  const after = all.filter(({ day }) => day > last.day);
  const rise = shareOf(incident) - shareOf(before);
  const gaps = run.slice(1).map(({ day }, at) => day - (run[at]?.day ?? day));
  return {
    ...incident,
    sinceDay,
    lastDay: last.day,
    hasPassedBefore:
      before.messages >= BEFORE_MESSAGES_MIN && shareOf(before) <= BEFORE_FAILING_MAX && rise >= RISE_MIN,
    hasRecovered: hasRecovered(after, { lastDay: last.day, share: shareOf(incident), gap: Math.max(0, ...gaps) }),
  };
};

const sumOf = (days: readonly Day[]) => sumFields(days, "messages", "failing");
const shareOf = ({ messages, failing }: Omit<Day, "day">) => (messages === 0 ? 0 : failing / messages);

/** The last failing days without a time between them in which mail passed for more than a week. */
const lastRun = (bad: readonly Day[], all: readonly Day[]): readonly Day[] => {
  let first = bad.length - 1;
  for (; first > 0; first--) {
    const [earlier, later] = [bad[first - 1]?.day ?? 0, bad[first]?.day ?? 0];
    const between = sumOf(all.filter(({ day }) => day > earlier && day < later));
    const hasPassed = between.messages >= PROOF_MESSAGES_MIN && shareOf(between) <= BEFORE_FAILING_MAX;
    if (later - earlier > INCIDENT_GAP_DAYS && hasPassed) break;
  }
  return bad.slice(first);
};

const hasRecovered = (
  after: readonly Day[],
  { lastDay, share, gap }: { readonly lastDay: number; readonly share: number; readonly gap: number },
): boolean => {
  const { messages, failing } = sumOf(after);
  const days = (after.at(-1)?.day ?? lastDay) - lastDay;
  return (
    messages - failing >= Math.max(PROOF_MESSAGES_MIN, PROOF_FACTOR / share) &&
    days >= Math.max(PROOF_DAYS_MIN, gap) &&
    failing <= Math.max(1, NOISE * messages)
  );
};

/** An address whose mail fails. */
export interface FailingAddress {
  readonly ip: string;
  readonly failing: number;
}

/** What the records of a source show about its failures. */
export interface FailureDetail {
  /** What passed before and fails or is missing now; empty when it never passed. */
  readonly causes: readonly SpikeCause[];
  /** The most frequent results: see `failingResults`. Null without records. */
  readonly results: string | null;
  /** Selectors of the domain that its mail is signed with, also where that fails. */
  readonly selectors: ReadonlySet<string>;
  /** Whether it uses envelope addresses of the domain. */
  readonly usesSpf: boolean;
  /** The most failing first. Addresses whose mail passes but for single messages are absent. */
  readonly addresses: readonly FailingAddress[];
}

/** Records read of the failures, and as many from before them. */
const RECORDS_MAX = 300;
const SOURCES_PER_STEP = 5_000;
/** Days before the failures whose records show what passed. */
const BEFORE_DAYS = 28;
/** An address fails when this share of its mail does, or half of the share of the source. */
const ADDRESS_SHARE = 0.05;

/** What is read of a domain. */
interface HistoryStores {
  readonly domain: Pick<DomainRow, "number" | "domain">;
  readonly rollups: Pick<RollupStore, "perSourceDay" | "sourceTotals">;
  readonly records: Pick<RecordStore, "records">;
}

/** The days that a history is read from, up to today. */
export const historyDays = (today: number): DayRange => ({ fromDay: today - FAILURE_DAYS + 1, toDay: today });

/** The histories of sources by their keys; `keys` have failing mail in the range, which ends today. */
export function* readHistories(
  { rollups, domain }: Pick<HistoryStores, "rollups" | "domain">,
  {
    sources,
    keys,
    range,
  }: { readonly sources: DomainSources; readonly keys: readonly string[]; readonly range: DayRange },
): Steps<ReadonlyMap<string, FailureHistory>> {
  const keyOf = yield* sources.keysOf(new Set(keys), range);
  if (keyOf.size === 0) return new Map();
  const days = yield* rollups.perSourceDay(domain.number, historyDays(range.toDay), [...keyOf.keys()]);
  const histories = [...Map.groupBy(days, ({ source }) => keyOf.get(source) ?? "")].flatMap(([key, rows]) => {
    const history = judgeHistory(sumByDay(rows));
    return history === null ? [] : [[key, history] as const];
  });
  return new Map(histories);
}

const sumByDay = (rows: readonly MailDay[]): readonly MailDay[] =>
  [...Map.groupBy(rows, ({ day }) => day)].map(([day, of]) => ({
    day,
    ...sumFields(of, "messages", "aligned", "forwarded"),
  }));

/** What the records of a source show about its last failures. */
export function* readDetail(
  { records, rollups, domain }: HistoryStores,
  {
    sources,
    key,
    range,
    history,
  }: {
    readonly sources: DomainSources;
    readonly key: string;
    readonly range: DayRange;
    readonly history: FailureHistory;
  },
): Steps<FailureDetail> {
  const numbers = yield* sources.numbersOf([key], range);
  const { sinceDay, lastDay, hasPassedBefore } = history;
  const failing = yield* readCauseRecords(records, numbers, { fromDay: sinceDay, toDay: lastDay }, FAILING);
  const earlier = { fromDay: sinceDay - BEFORE_DAYS, toDay: sinceDay - 1 };
  yield;
  const before = yield* readCauseRecords(
    records,
    numbers,
    hasPassedBefore ? earlier : { ...earlier, toDay: lastDay },
    PASSING,
  );
  const shown = { fromDay: Math.max(sinceDay, range.fromDay), toDay: Math.max(lastDay, range.fromDay) };
  yield;
  const totals = yield* rollups.sourceTotals(domain.number, shown);
  const meant = new Set(numbers);
  const members = (yield* sources.keyed(range)).filter(({ number }) => meant.has(number));
  yield;
  const { domain: name } = domain;
  return {
    causes: hasPassedBefore ? findCauses(name, before, failing) : [],
    results: failingResults(name, failing),
    ...usedAuthentication(name, [before, failing]),
    addresses: failingAddresses(members, totals),
  };
}

const FAILING = { aligned: false, limit: RECORDS_MAX };
const PASSING = { aligned: true, limit: RECORDS_MAX };

/**
 * The results in the records of some stored sources, the newest days first, within a day the largest records first. Each
 * source is looked up in an index (a network can have 20,000), so some are asked in each step.
 */
export function* readCauseRecords(
  records: Pick<RecordStore, "records">,
  sources: readonly number[],
  { fromDay, toDay }: DayRange,
  { aligned, limit }: { readonly aligned: boolean; readonly limit: number },
): Steps<readonly CauseRecord[]> {
  const window = { before: endOfDay(toDay + 1), end: endOfDay(fromDay) };
  const conditions = { sourceIp: null, disposition: null, aligned, headerFrom: null, reporter: null };
  let first: readonly RecordRow[] = [];
  for (let at = 0; at < sources.length; at += SOURCES_PER_STEP) {
    if (at > 0) yield;
    const some = records.records({ sources: sources.slice(at, at + SOURCES_PER_STEP) }, window, conditions, limit);
    first = [...first, ...some].toSorted(inListOrder).slice(0, limit);
  }
  return first.map(({ count, body }) => {
    const { dkimResults, spfResults } = parseRepeatedBody(body);
    return { count, dkimResults, spfResults };
  });
}

/** Messages of counted sources that failed because receivers could not look up a key or record, by the largest records. */
export const countUnchecked = (
  records: Pick<RecordStore, "records">,
  domain: string,
  { sources, range }: { readonly sources: readonly number[]; readonly range: DayRange },
): number =>
  sumBy(
    atOnce(readCauseRecords(records, sources, range, FAILING)).filter((record) => isUnchecked(record, domain)),
    ({ count }) => count,
  );

const failingAddresses = (
  members: readonly KeyedSource[],
  totals: ReadonlyMap<number, SourceTotals>,
): readonly FailingAddress[] => {
  const counted = members.flatMap(({ number, evidence: { ip } }) => {
    const { messages, aligned, forwarded } = totals.get(number)?.totals ?? NO_TOTALS;
    return ip === null
      ? []
      : { ip, messages: messages - forwarded, failing: Math.max(0, messages - forwarded - aligned) };
  });
  const all = [...Map.groupBy(counted, ({ ip }) => ip)].map(([ip, of]) => ({
    ip,
    ...sumFields(of, "messages", "failing"),
  }));
  const least = Math.min(ADDRESS_SHARE, HALF * shareOf(sumFields(all, "messages", "failing")));
  return all
    .filter((one) => one.failing > 0 && shareOf(one) >= least)
    .toSorted((a, b) => b.failing - a.failing || (a.ip < b.ip ? -1 : 1))
    .map(({ ip, failing }) => ({ ip, failing }));
};
