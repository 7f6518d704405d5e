import { type DayRange, dayOfTime } from "../../../foundation/base/days.ts";
import { inTurns } from "../../../foundation/base/in-steps.ts";
import {
  type AlertThresholds,
  thresholdsOf,
  type Alert,
  type AlertUpdate,
  type DmarcAlertStore,
} from "../../records/domains/alert-store.ts";
import type { DomainRow, DomainStore } from "../../records/domains/domain-store.ts";
import type { RecordStore } from "../../insight/queries/record-store.ts";
import { DomainSources } from "../../insight/sources/domain-sources.ts";
import type { RollupStore } from "../../insight/sources/rollup-store.ts";
import type { KeyedSource } from "../../insight/sources/source-keys.ts";
import type { Source } from "../../insight/sources/source-response.ts";
import type { AlertRuleStore, ReporterMarks } from "./alert-rule-store.ts";

/** What a rule found about a domain. Rules read facts and write nothing. */
export interface RuleResult {
  readonly alerts: readonly Alert[];
  /** Earlier alerts whose totals changed: they are replaced without a further mail. */
  readonly updates?: readonly AlertUpdate[];
  /** Numbers of the stored sources, and names in From, that need no further review. */
  readonly reviewedSources?: readonly number[];
  readonly reviewedNames?: readonly string[];
  readonly reporters?: ReporterMarks;
  /** The domain has to be reviewed again although no new report arrives. */
  readonly isPending?: boolean;
}

export const NO_ALERTS: RuleResult = { alerts: [] };

/** The daily sums and the review marks: of all reports, or only of trusted ones. */
interface ReportData {
  readonly rollups: RollupStore;
  readonly rules: AlertRuleStore;
}

export interface ReviewStores {
  readonly all: ReportData;
  readonly trusted: ReportData;
  readonly alerts: Pick<DmarcAlertStore, "lastRaisedMs" | "listByRule" | "replaceBody">;
  readonly records: RecordStore;
  readonly domains: Pick<DomainStore, "listHistory">;
}

/**
 * A domain that known reporters cover, or with trusted reports on this many of the last days, is judged by those alone: anybody can
 * send the others.
 */
const TRUSTED_DAYS_MIN = 3;
const TRUSTED_WINDOW_DAYS = 14;

/**
 * What the rules know about a domain. Sources are read when a rule needs them, and each range once; of a domain with thousands of
 * them in several turns of the event loop, outside of transactions.
 */
export class ReviewFacts {
  readonly domain: DomainRow;
  readonly nowMs: number;
  readonly today: number;
  /** The days that raise alerts. */
  readonly recent: DayRange;
  readonly learning: Learning;
  readonly thresholds: AlertThresholds;
  readonly alerts: ReviewStores["alerts"];
  readonly records: RecordStore;
  readonly domains: ReviewStores["domains"];
  readonly rollups: RollupStore;
  /** The daily sums of all reports, those included on which nothing else relies. */
  readonly everyone: RollupStore;
  readonly rules: AlertRuleStore;
  readonly #isTrusted: boolean;
  readonly #byKey = new Map<string, ReadonlyMap<string, Source>>();
  readonly #keyed = new Map<string, readonly KeyedSource[]>();
  #sources: DomainSources | null = null;

  constructor({ all, trusted, alerts, records, domains }: ReviewStores, domain: DomainRow, nowMs: number) {
    const today = dayOfTime(nowMs);
    const window = { fromDay: today - TRUSTED_WINDOW_DAYS, toDay: today };
    this.#isTrusted =
      all.rollups.domainReporters(domain.number).isCovered ||
      trusted.rules.reportedDays(domain.number, window).length >= TRUSTED_DAYS_MIN;
    const { rollups, rules } = this.#isTrusted ? trusted : all;
    const enrolledDay = dayOfTime(domain.createdAtMs);
    const known = { fromDay: learningFromDay(enrolledDay, today - ALERT_DAYS), toDay: today };
    this.domain = domain;
    this.nowMs = nowMs;
    this.today = today;
    this.recent = { fromDay: today - ALERT_DAYS, toDay: today };
    this.learning = { enrolledDay, reportedDays: rules.reportedDays(domain.number, known) };
    this.thresholds = thresholdsOf(domain);
    this.alerts = alerts;
    this.records = records;
    this.domains = domains;
    this.rollups = rollups;
    this.everyone = all.rollups;
    this.rules = rules;
  }

  /** The sources of a range by their keys. */
  async sources(range: DayRange): Promise<ReadonlyMap<string, Source>> {
    const before = this.#byKey.get(rangeKey(range));
    if (before !== undefined) return before;
    const sources = await inTurns((await this.#open()).sources(range));
    const byKey = new Map(sources.map((source) => [source.key, source]));
    this.#byKey.set(rangeKey(range), byKey);
    return byKey;
  }

  /** The stored sources of a range, those that the reports in use name. */
  async keyedSources(range: DayRange): Promise<readonly KeyedSource[]> {
    const before = this.#keyed.get(rangeKey(range));
    if (before !== undefined) return before;
    const all = await inTurns((await this.#open()).keyed(range));
    const keyed = all.filter(({ isVouched }) => isVouched || !this.#isTrusted);
    this.#keyed.set(rangeKey(range), keyed);
    return keyed;
  }

  /** Some of the sources that were read, as one with a name of its own: see `DomainSources`. */
  part(members: readonly KeyedSource[], name: string): Source | undefined {
    return this.#sources?.part(members, name);
  }

  async #open() {
    this.#sources ??= await inTurns(DomainSources.open(this.rollups, this.domain));
    return this.#sources;
  }
}

const rangeKey = ({ fromDay, toDay }: DayRange) => `${fromDay}-${toDay}`;

const SINGLE_MAX = 10;

/** Up to ten findings get an alert each; more of them one together. */
export const groupFindings = <T>(found: readonly T[]): readonly (readonly T[])[] =>
  found.length > SINGLE_MAX ? [found] : found.map((one) => [one]);

/** The subject of an alert about several things: other things on the same day are another subject. */
export const subjectOfMany = (keys: readonly string[]): string =>
  `many:${Bun.hash(keys.toSorted().join("\n")).toString(16)}`;

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
interface Newcomer {
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
