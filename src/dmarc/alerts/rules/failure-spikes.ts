import { z } from "zod";
import { type DayRange, isoDay } from "../../../foundation/base/days.ts";
import type { DmarcAlertRow } from "../../records/domains/alert-store.ts";
import type { Alert } from "../../records/domains/raise.ts";
import { parseRecordBody } from "../../reports/report/report.ts";
import { parseDay } from "../../../foundation/http/day-range.ts";
import { percentOf } from "../../insight/sources/rollup-rows.ts";
import { isForeign } from "../../insight/sources/domain-sources.ts";
import type { Source } from "../../insight/sources/source-response.ts";
import { ALERT_DATA, type AlertData, readAlertBody, shareOf } from "./alert-data.ts";
import type { SourceDay, DayMail } from "./alert-rule-store.ts";
import {
  type CauseRecord,
  causeText,
  findCauses,
  type SpikeCause,
  type AlertedIncident,
  type FailureChange,
  isSeenByReporters,
  judgeFailures,
} from "./failure-incidents.ts";
import { eventSource } from "./new-sources.ts";
import { NO_ALERTS, type ReviewFacts, type RuleResult, subjectOfMany } from "./review-facts.ts";

/** A change of the failures of one source. */
export interface SourceSpike {
  readonly change: FailureChange;
  readonly source: Source;
  readonly causes: readonly SpikeCause[];
}

/** The last alerted incident of a source. */
export interface KnownIncident extends AlertedIncident {
  readonly causes: readonly SpikeCause[];
}

const WINDOW_DAYS = 35;
/** A day with less than this share of a usual day's mail still misses the reports of many. */
const COMPLETE_SHARE_MIN = 0.5;
/** Reports about a day arrive in the course of the next one. */
const COMPLETE_AFTER_DAYS = 2;
const WEEK = 7;
/** Alerts read to find open incidents. */
const ALERTS_MAX = 200;
/** Records read to find the cause of an incident. */
const RECORDS_MAX = 500;
/** Sources in one event. An incident that is left out would be alerted again. */
const SOURCES_MAX = 100;

/** Sources of which much more mail fails than usual: when that starts, doubles, and ends. */
export const findFailureSpikes = (facts: ReviewFacts): RuleResult => {
  const { domain, today, recent, thresholds, alerts, rollups, rules } = facts;
  const incidents = readIncidents(alerts.listByRule(domain.number, "failure_spike", ALERTS_MAX));
  const messagesMin = thresholds.failure_spike_messages;
  const isQuiet = rollups
    .perDay(domain.number, recent)
    .every(({ messages, aligned }) => messages - aligned < messagesMin);
  if (isQuiet && [...incidents.values()].every(({ endedDay }) => endedDay !== null)) return NO_ALERTS;
  const range = { fromDay: today - WINDOW_DAYS, toDay: today };
  const keys = new Map(facts.keyedSources(range).map(({ number, shownKey }) => [number, shownKey]));
  const rowsByKey = Map.groupBy(rules.sourceDays(domain.number, range, null), ({ source }) => keys.get(source) ?? "");
  const measure = {
    today,
    messagesMin,
    riseMin: thresholds.failure_spike_percent / 100,
    isComplete: completeDays(rollups.perDay(domain.number, range), today),
  };
  const spikes = [...rowsByKey].flatMap(([key, rows]): readonly SourceSpike[] => {
    const source = facts.sources(range).get(key);
    if (source === undefined || isForeign(source)) return [];
    const change = judgeFailures({ key, days: sumByDay(rows) }, incidents.get(key), measure);
    if (change === null) return [];
    if (change.state === "ended") return [{ change, source, causes: [] }];
    const numbers = [...new Set(rows.map((row) => row.source))];
    if (!isSeenByReporters(change, facts.records.reporterDays(numbers, range))) return [];
    const causes = causesOf(change, numbers, range, facts);
    return isLookupFailure(causes) || isKnownIncident(change, causes, incidents) ? [] : [{ change, source, causes }];
  });
  const states = ["started", "grew", "ended"] as const;
  const groups = states.map((state) => spikes.filter(({ change }) => change.state === state));
  return { alerts: groups.filter((group) => group.length > 0).map(failureAlert) };
};

/** A receiver that could not look something up has a problem of its own (RFC 8601 §2.7.1). */
const isLookupFailure = (causes: readonly SpikeCause[]): boolean =>
  causes.length > 0 && causes.every(({ result }) => result?.startsWith("temperror") === true);

/**
 * Whether a new incident belongs to one of another source: it has the same cause, began at most a day before the other one, and the
 * other one had not ended. It is not stored, so its own first day moves with the days that are judged.
 */
export const isKnownIncident = (
  { state, startedDay }: Pick<FailureChange, "state" | "startedDay">,
  causes: readonly SpikeCause[],
  incidents: ReadonlyMap<string, KnownIncident>,
): boolean =>
  state === "started" &&
  [...incidents.values()].some(
    (incident) =>
      incident.startedDay <= startedDay + 1 &&
      (incident.endedDay === null || incident.endedDay >= startedDay) &&
      incident.causes.some(({ code, domain, selector }) =>
        causes.some((cause) => cause.code === code && cause.domain === domain && cause.selector === selector),
      ),
  );

/** Whether half of a usual day's mail is in, or two days have passed since. */
const completeDays = (perDay: readonly { readonly day: number; readonly messages: number }[], today: number) => {
  const messages = new Map(perDay.map((day) => [day.day, day.messages]));
  return (day: number): boolean => {
    if (day <= today - COMPLETE_AFTER_DAYS) return true;
    const weekAgo = messages.get(day - WEEK) ?? 0;
    return weekAgo > 0 && (messages.get(day) ?? 0) >= COMPLETE_SHARE_MIN * weekAgo;
  };
};

const sumByDay = (rows: readonly SourceDay[]): readonly DayMail[] =>
  [...Map.groupBy(rows, ({ day }) => day)].map(([day, of]) => ({
    day,
    messages: of.reduce((sum, row) => sum + row.messages, 0),
    aligned: of.reduce((sum, row) => sum + row.aligned, 0),
    forwarded: of.reduce((sum, row) => sum + row.forwarded, 0),
  }));

/** What the records of some stored sources show about why an incident began. */
const causesOf = (
  { startedDay, day }: FailureChange,
  sources: readonly number[],
  range: DayRange,
  { domain, records }: ReviewFacts,
): readonly SpikeCause[] => {
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
        const { dkimResults, spfResults } = parseRecordBody(row.body);
        return { count: row.count, dkimResults, spfResults };
      });
  return findCauses(domain.domain, read(range.fromDay, startedDay - 1, true), read(startedDay, day, false));
};

/** Alerts of versions before incidents were stored by source have no state. */
const incidentSchema = ALERT_DATA.failure_spike.pick({ state: true, day: true }).extend({
  sources: z.array(
    ALERT_DATA.failure_spike.shape.sources.element.pick({
      key: true,
      started_day: true,
      failing_share: true,
      usual_failing_share: true,
      causes: true,
    }),
  ),
});

/** The last incident of each source by its key, out of the alerts about them, newest first. */
export const readIncidents = (alerts: readonly DmarcAlertRow[]): ReadonlyMap<string, KnownIncident> => {
  const last = new Map<string, KnownIncident>();
  for (const { body } of alerts.toReversed()) {
    const read = incidentSchema.safeParse(readAlertBody(body).data);
    if (!read.success) continue;
    const { state, day, sources } = read.data;
    for (const { key, started_day, failing_share: share, usual_failing_share: usualShare, causes } of sources) {
      const endedDay = state === "ended" ? parseDay(day) : null;
      last.set(key, { startedDay: parseDay(started_day) ?? 0, endedDay, share, usualShare, causes });
    }
  }
  return last;
};

const SUMMARIES: Readonly<Record<FailureChange["state"], (name: string, usual: string, now: string) => string>> = {
  started: (name, usual, now) => `${name}: ${now} of the mail fails DMARC, usually ${usual}`,
  grew: (name, usual, now) => `${name}: failures doubled, ${now} of the mail fails DMARC, usually ${usual}`,
  ended: (name, _usual, now) => `${name}: mail passes DMARC again, ${now} fails`,
};

/** Sources with the same kind of change, never none. The one with the most failing messages comes first. */
export const failureAlert = (spikes: readonly SourceSpike[]): Alert => {
  const sorted = spikes.toSorted((a, b) => b.change.failing - a.change.failing);
  const changes = sorted.map(({ change }) => change);
  const sum = (count: (change: FailureChange) => number): number =>
    changes.reduce((total, change) => total + count(change), 0);
  const [messages, failing] = [sum((one) => one.messages), sum((one) => one.failing)];
  const usual = sum((one) => one.usualShare * one.messages) / Math.max(1, messages);
  const since = isoDay(Math.min(...changes.map(({ startedDay }) => startedDay)));
  const [first] = sorted;
  const state = first?.change.state ?? "started";
  const name = `${first?.source.name ?? ""}${sorted.length === 1 ? "" : ` and ${sorted.length - 1} more`}`;
  const summary = SUMMARIES[state](name, percent(usual), percent(failing / Math.max(1, messages)));
  const cause = state === "ended" ? undefined : first?.causes[0];
  const data: AlertData<"failure_spike"> = {
    state,
    started_day: since,
    day: isoDay(Math.max(...changes.map(({ day }) => day))),
    messages,
    failing,
    failing_share: shareOf(failing, messages),
    usual_failing_share: shareOf(usual, 1),
    sources: sorted.slice(0, SOURCES_MAX).map(spikeSource),
  };
  return {
    rule: "failure_spike",
    subject: sorted.length === 1 ? (first?.change.key ?? "") : subjectOfMany(changes.map(({ key }) => key)),
    data,
    summary: cause === undefined ? summary : `${summary}: ${causeText(cause, since)}`,
    cooldown: false,
  };
};

const spikeSource = ({ change, source, causes }: SourceSpike): AlertData<"failure_spike">["sources"][number] => {
  const { startedDay, messages, failing, usualShare } = change;
  const since = isoDay(startedDay);
  return {
    ...eventSource(source),
    started_day: since,
    messages,
    failing,
    failing_share: shareOf(failing, messages),
    usual_failing_share: shareOf(usualShare, 1),
    causes: causes.map((cause) => ({ ...cause, message: sentence(causeText(cause, since)) })),
  };
};

const sentence = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
const percent = (share: number): string => `${percentOf(share, 1) ?? 0} %`;
