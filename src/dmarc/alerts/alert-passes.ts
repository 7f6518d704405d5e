import { dayOfTime } from "../../base/days.ts";
import { forEachIsolated } from "../../base/for-each-isolated.ts";
import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import type { Db } from "../../db/open.ts";
import type { AlertRuleStore } from "./alert-rule-store.ts";
import type { ReviewDomain } from "./alert-review.ts";
import { SILENCE_MS_MIN, SILENCE_WINDOW_DAYS, silenceMs } from "./alert-silence.ts";
import { silenceAlert } from "./alert-texts.ts";
import type { DomainStore } from "../domains/domain-store.ts";
import type { RaiseAlert } from "../domains/raise.ts";
import type { RollupStore } from "../sources/rollup-store.ts";

export interface AlertPassDeps {
  readonly db: Db;
  readonly rules: AlertRuleStore;
  readonly domains: Pick<DomainStore, "findByNumber">;
  readonly reading: Pick<RollupStore, "reportsPerDay" | "totals">;
  readonly review: ReviewDomain;
  readonly raise: RaiseAlert;
  readonly clock: Clock;
  readonly log: Log;
}

const DOMAINS_AT_ONCE = 100;
/** After a time in which we were not there ourselves, reporters that found nobody need so long to come again (RFC 5321 §4.5.4.1). */
const COMEBACK_MS = 6 * 60 * 60_000;

/** What the timetable does for alerts: looks at every domain to which reports came, and at those to which none come any more. */
export const createAlertPasses = (deps: AlertPassDeps) => {
  const { db, rules, domains, reading, review, raise, clock, log } = deps;
  let isStopping = false;
  const startedAtMs = clock.nowMs();

  const reviewOne = (number: number): Promise<void> =>
    db.commit((tx) => {
      const domain = domains.findByNumber(number);
      if (domain !== undefined) review(tx, domain, clock.nowMs());
    });

  const tellOfSilence = async (number: number, lastReportAtMs: number): Promise<void> => {
    // The time of arrival is ours; what day a report is about is the word of its reporter.
    const toDay = dayOfTime(lastReportAtMs);
    const range = { fromDay: toDay - SILENCE_WINDOW_DAYS, toDay };
    // Without mail of its own nobody reports about a domain but when it is forged.
    if (reading.totals(number, range).aligned === 0) return;
    const days = reading.reportsPerDay(number, range).map(({ day }) => day);
    const [lastDay, waitMs] = [days.at(-1), silenceMs(days)];
    if (lastDay === undefined || waitMs === null || clock.nowMs() - lastReportAtMs < waitMs) return;
    await db.commit((tx) => {
      const domain = domains.findByNumber(number);
      if (domain === undefined || domain.lastReportAtMs !== lastReportAtMs) return;
      raise(tx, domain, silenceAlert(lastReportAtMs, lastDay), clock.nowMs());
    });
  };

  const onFailure = (one: number | { readonly number: number }, cause: unknown): void =>
    log.error("the alert rules failed for a domain; it is looked at again in the next run", {
      number: typeof one === "number" ? one : one.number,
      cause,
    });

  return {
    /** Looks at all domains once. What fails for one of them does not stop the others. */
    async run(): Promise<void> {
      for (let after = 0; !isStopping;) {
        const numbers = rules.unreviewedDomains(after, DOMAINS_AT_ONCE);
        const last = numbers.at(-1);
        if (last === undefined) break;
        await forEachIsolated(numbers, reviewOne, { isStopping: () => isStopping, onFailure });
        after = last;
      }
      if (clock.nowMs() - startedAtMs < COMEBACK_MS) return;
      for (let after = 0; !isStopping;) {
        const silent = rules.silentDomains(after, clock.nowMs() - SILENCE_MS_MIN, DOMAINS_AT_ONCE);
        const last = silent.at(-1);
        if (last === undefined) break;
        const isolation = { isStopping: () => isStopping, onFailure };
        await forEachIsolated(silent, ({ number, lastReportAtMs }) => tellOfSilence(number, lastReportAtMs), isolation);
        after = last.number;
      }
    },

    /** Ends a run after the domain at hand. */
    stop(): void {
      isStopping = true;
    },
  };
};

export type AlertPasses = ReturnType<typeof createAlertPasses>;
