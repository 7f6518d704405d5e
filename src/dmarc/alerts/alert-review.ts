import { type DayRange, dayOfTime } from "../../base/days.ts";
import type { Tx } from "../../db/open.ts";
import { thresholdsOf } from "../domains/alert-thresholds.ts";
import type { DmarcAlertStore } from "../domains/alert-store.ts";
import type { DomainRow } from "../domains/domain-store.ts";
import type { RaiseAlert } from "../domains/raise.ts";
import { entryOf } from "../ingest/rollup.ts";
import type { RecordStore } from "../queries/record-store.ts";
import type { RollupStore } from "../sources/rollup-store.ts";
import { DomainSources } from "../sources/domain-sources.ts";
import { learningFromDay } from "./learning.ts";
import type { AlertRuleStore } from "./alert-rule-store.ts";
import { ALERT_DAYS } from "./learning.ts";
import { reviewFailures } from "./review-failures.ts";
import { reviewNames } from "./review-names.ts";
import { reviewSources } from "./review-sources.ts";
import { reviewSpoofing } from "./review-spoofing.ts";
import type { Review } from "./review.ts";

/** What reports say of a domain: all of them, or only trusted ones. */
export interface ReportView {
  readonly reading: RollupStore;
  readonly rules: AlertRuleStore;
}

export interface ReviewDeps {
  readonly all: ReportView;
  readonly trusted: ReportView;
  readonly alerts: Pick<DmarcAlertStore, "lastRaisedMs" | "listByRule">;
  readonly records: RecordStore;
  readonly raise: RaiseAlert;
}

/** A domain to which trusted reports come on so many of the last days is judged by those alone: anybody can send the others. */
const TRUSTED_DAYS_MIN = 3;
const TRUSTED_WINDOW_DAYS = 14;

/**
 * Looks at a domain to which reports came: new senders, new names in `From`, mail that fails, spoofing campaigns. To be run in one
 * transaction, in which the domain is marked as reviewed as well, unless something must be looked at again without a new report.
 */
export const createReview =
  ({ all, trusted, alerts, records, raise }: ReviewDeps) =>
  (tx: Tx, domain: DomainRow, nowMs: number): void => {
    const today = dayOfTime(nowMs);
    const lately = { fromDay: today - TRUSTED_WINDOW_DAYS, toDay: today };
    const isTrusted = trusted.rules.reportedDays(domain.number, lately).length >= TRUSTED_DAYS_MIN;
    const view = isTrusted ? trusted : all;
    const recent = { fromDay: today - ALERT_DAYS, toDay: today };
    const enrolledDay = dayOfTime(domain.createdAtMs);
    const known = { fromDay: learningFromDay(enrolledDay, recent.fromDay), toDay: today };
    const learning = { enrolledDay, reportedDays: view.rules.reportedDays(domain.number, known) };
    // A quiet domain is reviewed without its sources.
    let opened: DomainSources | null = null;
    const sources = (): DomainSources => {
      opened ??= new DomainSources(view.reading, domain);
      return opened;
    };
    const review: Review = {
      ...{ tx, domain, nowMs, today, recent, learning, alerts, records },
      reading: view.reading,
      rules: view.rules,
      shown: once(
        (range) =>
          new Map(
            sources()
              .sources(range)
              .map((source) => [source.key, source]),
          ),
      ),
      placed: once((range) =>
        sources()
          .keyed(range)
          .filter(({ isVouched }) => isVouched || !isTrusted),
      ),
      thresholds: thresholdsOf(domain),
      raise: (alert) => raise(tx, domain, alert, nowMs),
    };
    const steps = [reviewSources, reviewNames, reviewFailures, reviewSpoofing];
    const waits = steps.map((step) => step(review));
    if (!waits.includes(true)) all.rules.clearUnreviewed(tx, domain.number);
  };

/** Reads a range at most once. */
const once = <T>(read: (range: DayRange) => T) => {
  const known = new Map<string, T>();
  return (range: DayRange): T => entryOf(known, `${range.fromDay}-${range.toDay}`, () => read(range));
};

export type ReviewDomain = ReturnType<typeof createReview>;
