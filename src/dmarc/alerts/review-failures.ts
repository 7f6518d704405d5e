import type { DayRange } from "../../base/days.ts";
import { readRecordBody } from "../ingest/report-store.ts";
import { isForeign } from "../sources/domain-sources.ts";
import { type CauseRecord, type FailureCause, findCauses } from "./failure-causes.ts";
import { failureAlert, type FailureReport, type KnownIncident, readIncidents } from "./failure-texts.ts";
import { type FailureChange, isSeenByReporters, judgeFailures } from "./failure-incidents.ts";
import type { Review } from "./review.ts";

const WINDOW_DAYS = 35;
/** With less of a usual day's mail, the reports of many are not there yet. */
const WHOLE_SHARE_MIN = 0.5;
/** Reports about a day come in the course of the next one. */
const SETTLED_AFTER_DAYS = 2;
const WEEK = 7;
/** Alerts looked at for incidents that are open. */
const ALERTS_MAX = 200;
/** Records looked at for the cause of an incident. */
const RECORDS_MAX = 500;

/** Sources of which much more mail fails than usual: when that starts, doubles, and ends. */
export const reviewFailures = (review: Review): boolean => {
  const { domain, today, thresholds, alerts, reading, rules, raise } = review;
  const range = { fromDay: today - WINDOW_DAYS, toDay: today };
  const incidents = readIncidents(alerts.listByRule(domain.number, "failure_spike", ALERTS_MAX));
  const isQuiet = reading
    .perDay(domain.number, review.recent)
    .every(({ messages, aligned }) => messages - aligned < thresholds.failure_spike_messages);
  if (isQuiet && [...incidents.values()].every(({ endedDay }) => endedDay !== null)) return false;
  const perDay = reading.perDay(domain.number, range);
  const shown = review.shown(range);
  const keys = new Map(review.placed(range).map(({ number, shownKey }) => [number, shownKey]));
  const byKey = Map.groupBy(rules.sourceDays(domain.number, range, null), ({ source }) => keys.get(source) ?? "");
  const measure = {
    today,
    messagesMin: thresholds.failure_spike_messages,
    riseMin: thresholds.failure_spike_percent / 100,
    isWhole: wholeDaysOf(perDay, today),
  };
  const reports: FailureReport[] = [];
  for (const [key, rows] of byKey) {
    const source = shown.get(key);
    if (source === undefined || isForeign(source)) continue;
    const change = judgeFailures({ key, days: addUp(rows) }, incidents.get(key), measure);
    if (change === null) continue;
    const sources = [...new Set(rows.map((row) => row.source))];
    const isRise = change.state !== "ended";
    if (isRise && !isSeenByReporters(change, review.records.reporterDays(sources, range))) continue;
    const causes = isRise ? causesOf(change, sources, range, review) : [];
    if (!isRise || !isReceivers(causes)) reports.push({ change, source, causes });
  }
  for (const state of ["started", "grew", "ended"] as const) {
    const same = reports.filter(
      ({ change, causes }) => change.state === state && !isKnownIncident(change, causes, incidents),
    );
    if (same.length > 0) raise(failureAlert(same));
  }
  return false;
};

/** A receiver that could not look something up has a problem of its own (RFC 8601 §2.7.1). */
const isReceivers = (causes: readonly FailureCause[]): boolean =>
  causes.length > 0 && causes.every(({ result }) => result?.startsWith("temperror") === true);

/**
 * An incident needs no alert of its own when another source has one with the same cause that began before it or a day later, and
 * had not ended before it. It is not stored, so its own first day moves with the days that are judged.
 */
export const isKnownIncident = (
  { state, startedDay }: Pick<FailureChange, "state" | "startedDay">,
  causes: readonly FailureCause[],
  incidents: ReadonlyMap<string, KnownIncident>,
): boolean =>
  state === "started" &&
  causes.length > 0 &&
  [...incidents.values()].some(
    (incident) =>
      incident.startedDay <= startedDay + 1 &&
      (incident.endedDay === null || incident.endedDay >= startedDay) &&
      incident.causes.some(({ code, domain, selector }) =>
        causes.some((cause) => cause.code === code && cause.domain === domain && cause.selector === selector),
      ),
  );

/** Whether half of a usual day's mail is in, or two days have passed since. */
const wholeDaysOf = (perDay: readonly { readonly day: number; readonly messages: number }[], today: number) => {
  const messages = new Map(perDay.map((day) => [day.day, day.messages]));
  return (day: number): boolean => {
    if (day <= today - SETTLED_AFTER_DAYS) return true;
    const weekAgo = messages.get(day - WEEK) ?? 0;
    return weekAgo > 0 && (messages.get(day) ?? 0) >= WHOLE_SHARE_MIN * weekAgo;
  };
};

const addUp = (rows: ReturnType<Review["rules"]["sourceDays"]>) =>
  [...Map.groupBy(rows, ({ day }) => day)].map(([day, of]) => ({
    day,
    messages: of.reduce((sum, row) => sum + row.messages, 0),
    aligned: of.reduce((sum, row) => sum + row.aligned, 0),
    forwarded: of.reduce((sum, row) => sum + row.forwarded, 0),
  }));

/** What records say about why an incident began. */
const causesOf = (
  { startedDay, day }: FailureChange,
  sources: readonly number[],
  range: DayRange,
  { domain, records }: Review,
): readonly FailureCause[] => {
  const read = (fromDay: number, toDay: number, aligned: boolean): CauseRecord[] =>
    records
      .records(
        { sources },
        {
          before: { day: toDay + 1, rank: -1, report: -1, position: -1 },
          end: { day: fromDay, rank: -1, report: -1, position: -1 },
        },
        { sourceIp: null, disposition: null, aligned, headerFrom: null, reporter: null },
        RECORDS_MAX,
      )
      .map((row) => {
        const { dkimResults, spfResults } = readRecordBody(row.body);
        return { day: row.day, count: row.count, isAligned: row.isAligned === 1, dkimResults, spfResults };
      });
  return findCauses(domain.domain, read(range.fromDay, startedDay - 1, true), read(startedDay, day, false));
};
