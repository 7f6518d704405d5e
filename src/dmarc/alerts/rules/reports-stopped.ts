import { z } from "zod";
import { isoTime } from "../../../foundation/base/clock.ts";
import { DAY_MS, dayOfTime, isoDay } from "../../../foundation/base/days.ts";
import { dayField, timeField } from "../../../foundation/http/schema-fields.ts";
import { action } from "../../../notifications/mail/mail-content.ts";
import type { Alert } from "../../records/domains/alert-store.ts";
import type { RollupStore } from "../../insight/sources/rollup-store.ts";
import { alertRule, domainLink } from "./alert-rule.ts";
import type { SilentDomain } from "./alert-rule-store.ts";

const HOUR_MS = 60 * 60_000;

/** Days from which the usual gap between reports is derived. */
const WINDOW_DAYS = 60;
/** Reporters send about daily; two may fail in a row. */
export const SILENCE_MS_MIN = 72 * HOUR_MS;
/** Before a week is known, its quiet days may be still to come. */
const EARLY_SILENCE_MS = 5 * DAY_MS;
const EARLY_DAYS = 7;
/** Without reports on this many days, their end is not worth an alert. */
const REPORTED_DAYS_MIN = 3;
const GAPS_MAX = 3;
/** Gaps as long as one in ten are not unusual: weekends, the days between two monthly newsletters. */
const LONG_GAP_SHARE = 0.9;
/** How much later than usual the report after a long gap may be. */
const LATE_MS = 2 * DAY_MS;

const data = z.object({
  last_report_at: timeField("When the last report arrived."),
  last_day: dayField("The last day that a report is about."),
});

/** Found where no reports arrive: see `AlertJob`. */
export const REPORTS_STOPPED = alertRule({
  name: "reports_stopped",
  words: "Reports stopped",
  description: "Reports stopped arriving.",
  summary: "No report about a domain has arrived for 72 hours, or three times as long as is usual for it",
  title: "DMARC reports have stopped",
  incident: () => ({ about: [], ends: false, severity: "medium" }),
  data,
  example: { last_report_at: "2026-01-01T05:12:44.310Z", last_day: "2025-12-31" },
  mail: (_, domain) => [
    action("Check that the DMARC record still has the reporting address in rua."),
    domainLink(domain, "record", "Show the record and check it now"),
  ],
  open: {
    isSaidByStatus: true,
    topics: () => [""],
    holds: ({ lastReportAtMs, subject }) => lastReportAtMs !== null && isoDay(dayOfTime(lastReportAtMs)) === subject,
    attention: ({ last_report_at }, { domain, path }) => ({
      severity: "warn",
      label: "No reports",
      title: `No reports about ${domain} since ${last_report_at.slice(0, 10)}`,
      detail: "Reporters used to send some. Check that the DMARC record still has the reporting address in rua.",
      action: { text: "Show the record", path: `${path}/record` },
    }),
  },
});

/** The alert that reports about a domain have stopped; null while they have not. It is raised once until reports arrive again. */
export const findReportsStopped = (
  rollups: Pick<RollupStore, "reportsPerDay">,
  { number, lastReportAtMs }: SilentDomain,
  nowMs: number,
): Alert | null => {
  // The time of arrival is ours; the day of a report is what its reporter says.
  const toDay = dayOfTime(lastReportAtMs);
  const range = { fromDay: toDay - WINDOW_DAYS, toDay };
  // Receivers report about a domain without mail of its own only when it is spoofed.
  const reported = rollups.reportsPerDay(number, range);
  if (reported.every(({ aligned }) => aligned === 0)) return null;
  const days = reported.map(({ day }) => day);
  const [lastDay, waitMs] = [days.at(-1), silenceMs(days)];
  if (lastDay === undefined || waitMs === null || nowMs - lastReportAtMs < waitMs) return null;
  const stopped: z.output<typeof data> = { last_report_at: isoTime(lastReportAtMs), last_day: isoDay(lastDay) };
  const since = isoDay(toDay);
  return {
    rule: "reports_stopped",
    subject: since,
    data: stopped,
    summary: `no reports since ${since}`,
    cooldown: false,
  };
};

/**
 * After how long without a report the reports of a domain have stopped: 72 hours, or three times the usual gap between the reported
 * days, whichever is longer, and always longer than the gaps that occur now and then. `days` are the reported days of the last 60, in
 * order. Null while there are too few.
 */
export const silenceMs = (days: readonly number[]): number | null => {
  if (days.length < REPORTED_DAYS_MIN) return null;
  const gaps = days.slice(1).map((day, at) => day - (days[at] ?? day));
  gaps.sort((a, b) => a - b);
  const gapAt = (share: number) => gaps[Math.floor(gaps.length * share)] ?? 0;
  const usual = GAPS_MAX * gapAt(1 / 2) * DAY_MS;
  const early = days.length < EARLY_DAYS ? EARLY_SILENCE_MS : 0;
  return Math.max(SILENCE_MS_MIN, early, usual, gapAt(LONG_GAP_SHARE) * DAY_MS + LATE_MS);
};
