import { nextTurn } from "../../../foundation/base/clock.ts";
import { inTurns, type Steps } from "../../../foundation/base/in-steps.ts";
import { sumBy, sumFields } from "../../../foundation/base/sums.ts";
import { z } from "zod";
import { type DayRange, isoDay } from "../../../foundation/base/days.ts";
import type { DmarcAlertRow, Alert } from "../../records/domains/alert-store.ts";
import { parseDay } from "../../../foundation/http/day-range.ts";
import { percentOf } from "../../insight/sources/rollup-rows.ts";
import { isForeign } from "../../insight/sources/domain-sources.ts";
import type { Source } from "../../insight/sources/source-response.ts";
import { dayField, integerField, nullableText, textField } from "../../../foundation/http/schema-fields.ts";
import { formatCount, plural, shortName } from "../../../notifications/mail/mail-content.ts";
import { alertRule, readAlertBody, shareField, shareOf, items } from "./alert-rule.ts";
import type { SourceDay } from "./alert-rule-store.ts";
import {
  CAUSE_CODES,
  causeText,
  findCauses,
  isSameCause,
  type SpikeCause,
} from "../../insight/advice/failure-causes.ts";
import { readCauseRecords } from "../../insight/advice/failure-history.ts";
import { type AlertedIncident, type FailureChange, isSeenByReporters, judgeFailures } from "./failure-incidents.ts";
import {
  EVENT_SOURCE_EXAMPLE,
  eventSource,
  eventSourceSchema,
  sourceName,
  sourcePath,
  sourcesLink,
} from "./new-sources.ts";
import { NO_ALERTS, type ReviewFacts, type RuleResult, subjectOfMany } from "./review-facts.ts";

/** A change of the failures of one source. */
interface SourceSpike {
  readonly change: FailureChange;
  readonly source: Source;
  readonly causes: readonly SpikeCause[];
}

/** The last alerted incident of a source. */
interface KnownIncident extends AlertedIncident {
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
/** Days of sources that are judged in one turn of the event loop. */
const ROWS_PER_TURN = 2_000;
/** Sources in one event. An incident that is left out would be alerted again. */
const SOURCES_MAX = 100;

/** Sources of which much more mail fails than usual: when that starts, doubles, and ends. */
const findFailureSpikes = async (facts: ReviewFacts): Promise<RuleResult> => {
  const { domain, today, recent, thresholds, alerts, rollups, rules } = facts;
  const incidents = readIncidents(alerts.listByRule(domain.number, "failure_spike", ALERTS_MAX));
  const messagesMin = thresholds.failure_spike_messages;
  const isQuiet = rollups
    .reportsPerDay(domain.number, recent)
    .every(({ messages, aligned }) => messages - aligned < messagesMin);
  if (isQuiet && [...incidents.values()].every(({ endedDay }) => endedDay !== null)) return NO_ALERTS;
  const range = { fromDay: today - WINDOW_DAYS, toDay: today };
  const sources = await facts.sources(range);
  const isOurs = (key: string) => {
    const source = sources.get(key);
    return source !== undefined && !isForeign(source);
  };
  const ours = (await facts.keyedSources(range)).filter(({ shownKey }) => isOurs(shownKey));
  const keys = new Map(ours.map(({ number, shownKey }) => [number, shownKey]));
  await nextTurn();
  const rows = await inTurns(rules.sourceDays(domain.number, range, [...keys.keys()]));
  const rowsByKey = Map.groupBy(rows, ({ source }) => keys.get(source) ?? "");
  await nextTurn();
  const measure = {
    today,
    messagesMin,
    riseMin: thresholds.failure_spike_percent / 100,
    isComplete: completeDays(rollups.reportsPerDay(domain.number, range), today),
  };
  const spikes: SourceSpike[] = [];
  let judgedNow = 0;
  for (const [key, of] of rowsByKey) {
    if (judgedNow >= ROWS_PER_TURN) await nextTurn();
    judgedNow = judgedNow >= ROWS_PER_TURN ? of.length : judgedNow + of.length;
    const source = sources.get(key);
    const change =
      source === undefined ? null : judgeFailures({ key, days: sumByDay(of) }, incidents.get(key), measure);
    if (source === undefined || change === null) continue;
    const causes = change.state === "ended" ? [] : await newCauses(change, of, { facts, range, incidents });
    if (causes !== null) spikes.push({ change, source, causes });
  }
  const states = ["started", "grew", "ended"] as const;
  const groups = states.map((state) => spikes.filter(({ change }) => change.state === state));
  return { alerts: groups.filter((group) => group.length > 0).map(failureAlert) };
};

/** Why failures began or grew; null where receivers are to blame, too few of them say so, or another alert has told it. */
const newCauses = async (
  change: FailureChange,
  rows: readonly SourceDay[],
  {
    facts,
    range,
    incidents,
  }: {
    readonly facts: ReviewFacts;
    readonly range: DayRange;
    readonly incidents: ReadonlyMap<string, KnownIncident>;
  },
): Promise<readonly SpikeCause[] | null> => {
  const numbers = [...new Set(rows.map((row) => row.source))];
  if (!isSeenByReporters(change, await inTurns(facts.records.reporterDays(numbers, range)))) return null;
  const causes = await inTurns(causesOf(change, numbers, range, facts));
  return isLookupFailure(causes) || isKnownIncident(change, causes, incidents) ? null : causes;
};

const shareFields = {
  failing: integerField("Messages of these that failed DMARC."),
  failing_share: shareField("`failing` divided by `messages`."),
  usual_failing_share: shareField("The share that failed before, on the same weekdays."),
};
const SHARES = { failing: 412, failing_share: 0.9581, usual_failing_share: 0.01 };

const causeSchema = z.object({
  code: z.enum(CAUSE_CODES).describe("Which authentication fails or is missing."),
  domain: textField("Domain of the DKIM signature, or of the envelope sender."),
  selector: nullableText("DKIM selector; null for SPF and where reports do not give it."),
  result: nullableText("The result that receivers gave; null for what is missing."),
  message: textField("The cause in a sentence."),
});

const dataSchema = z.object({
  state: z.enum(["started", "grew", "ended"]).describe("`grew`: the failing share doubled since the last event."),
  started_day: dayField("First day of the incident."),
  day: dayField("The last day that was evaluated."),
  messages: integerField(
    "Messages since the incident started; when it ended, on that day. Without forwarded messages.",
  ),
  ...shareFields,
  sources: z
    .array(
      eventSourceSchema.extend({
        started_day: dayField("First day of the incident of this source."),
        ...shareFields,
        causes: z.array(causeSchema).describe("What usually passed and now fails or is missing."),
      }),
    )
    .describe("At most a hundred, those with the most failing messages first."),
});
type SpikeData = z.output<typeof dataSchema>;

const keysSchema = z.array(z.object({ key: z.string() })).catch([]);

export const FAILURE_SPIKE = alertRule({
  name: "failure_spike",
  words: "Failures",
  description: "Much more mail of a source fails than usual: started, grew, ended.",
  summary: "Much more mail of a source fails DMARC than usual; again when that doubles, and when it ends",
  title: (text) => (text("state") === "ended" ? "mail passes DMARC again" : "DMARC failures increased"),
  // An event about several senders at once ends only what began with the same: another one can still fail.
  incident: (text, { sources }) => ({
    about: keysSchema
      .parse(sources)
      .map(({ key }) => key)
      .toSorted(),
    ends: text("state") === "ended",
    severity: "medium",
  }),
  data: dataSchema,
  example: {
    state: "started",
    started_day: "2026-01-01",
    day: "2026-01-02",
    messages: 430,
    ...SHARES,
    sources: [
      {
        ...EVENT_SOURCE_EXAMPLE,
        started_day: "2026-01-01",
        ...SHARES,
        causes: [
          {
            code: "dkim_failing",
            domain: "example.com",
            selector: "mail",
            result: "fail",
            message: "DKIM signatures of example.com with selector mail have failed since 2026-01-01 (fail).",
          },
        ],
      },
    ],
  },
  review: findFailureSpikes,
  mail: ({ state, sources }, domain) => [
    items(
      sources.map((source) => ({
        text: `${sourceName(source)}: ${formatCount(source.failing)} of ${plural(source.messages, "message")} failed DMARC`,
        lines: source.causes.map(({ message }) => message),
      })),
    ),
    state === "ended"
      ? null
      : sourcesLink(sources, domain, { one: "Show what fails and how to fix it", all: "Show the failing sources" }),
  ],
  open: {
    topics: ({ sources }) => sources.map(({ key }) => key),
    holds: ({ data: { state } }) => state !== "ended",
    attention: (data, { domain, path }) => {
      const [first, ...others] = data.sources;
      const name = first === undefined ? "A sender" : shortName(first.name);
      const more = others.length === 0 ? "" : ` and ${plural(others.length, "other sender")}`;
      const cause = first?.causes[0]?.message;
      return {
        severity: "bad",
        label: "Failing",
        title: `Mail of ${name}${more} as ${domain} has failed since ${data.started_day}`,
        detail: `${failedWords(data)}, usually ${percentWords(data.usual_failing_share)}.${cause === undefined ? "" : ` ${cause}`}`,
        action:
          first === undefined || others.length > 0
            ? { text: "See the sources", path: `${path}/sources?failing=1` }
            : { text: "See why", path: sourcePath(path, first.key) },
      };
    },
  },
});

const HUNDRED = 100;
/** 100 % only where it is exactly that. */
const percentWords = (share: number) => `${Math.min(Math.round(share * HUNDRED), share < 1 ? 99 : HUNDRED)} %`;

const failedWords = ({ messages, failing, failing_share }: SpikeData) =>
  failing === messages
    ? `All ${plural(messages, "message")} failed`
    : `${formatCount(failing)} of ${plural(messages, "message")} failed (${percentWords(failing_share)})`;

/** A receiver that could not look something up has a problem of its own (RFC 8601 §2.7.1). */
const isLookupFailure = (causes: readonly SpikeCause[]) =>
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
      incident.causes.some((known) => causes.some((cause) => isSameCause(known, cause))),
  );

/** Whether half of a usual day's mail is in, or two days have passed since. */
const completeDays = (perDay: readonly { readonly day: number; readonly messages: number }[], today: number) => {
  const messages = new Map(perDay.map((day) => [day.day, day.messages]));
  return (day: number) => {
    if (day <= today - COMPLETE_AFTER_DAYS) return true;
    const weekAgo = messages.get(day - WEEK) ?? 0;
    return weekAgo > 0 && (messages.get(day) ?? 0) >= COMPLETE_SHARE_MIN * weekAgo;
  };
};

const sumByDay = (rows: readonly SourceDay[]) =>
  [...Map.groupBy(rows, ({ day }) => day)].map(([day, of]) => ({
    day,
    ...sumFields(of, "messages", "aligned", "forwarded"),
  }));

/** What the records of some stored sources show about why an incident began. */
function* causesOf(
  { startedDay, day }: FailureChange,
  sources: readonly number[],
  range: DayRange,
  { domain, records }: ReviewFacts,
): Steps<readonly SpikeCause[]> {
  const read = (fromDay: number, toDay: number, aligned: boolean) =>
    readCauseRecords(records, sources, { fromDay, toDay }, { aligned, limit: RECORDS_MAX });
  const before = yield* read(range.fromDay, startedDay - 1, true);
  return findCauses(domain.domain, before, yield* read(startedDay, day, false));
}

/** Alerts of versions before incidents were stored by source have no state. */
const incidentSchema = dataSchema.pick({ state: true, day: true }).extend({
  sources: z.array(
    dataSchema.shape.sources.element.pick({
      key: true,
      started_day: true,
      failing_share: true,
      usual_failing_share: true,
      causes: true,
    }),
  ),
});

/** The last incident of each source by its key, out of the alerts about them, newest first. */
const readIncidents = (alerts: readonly DmarcAlertRow[]) => {
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
  const sum = (count: (change: FailureChange) => number) => sumBy(changes, count);
  const [messages, failing] = [sum((one) => one.messages), sum((one) => one.failing)];
  const usual = sum((one) => one.usualShare * one.messages) / Math.max(1, messages);
  const since = isoDay(Math.min(...changes.map(({ startedDay }) => startedDay)));
  const [first] = sorted;
  const state = first?.change.state ?? "started";
  const name = `${first?.source.name ?? ""}${sorted.length === 1 ? "" : ` and ${sorted.length - 1} more`}`;
  const summary = SUMMARIES[state](name, percent(usual), percent(failing / Math.max(1, messages)));
  const cause = state === "ended" ? undefined : first?.causes[0];
  const data: SpikeData = {
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

const spikeSource = ({ change, source, causes }: SourceSpike) => {
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

const sentence = (text: string) => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
const percent = (share: number) => `${percentOf(share, 1) ?? 0} %`;
