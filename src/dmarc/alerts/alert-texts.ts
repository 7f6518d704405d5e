import { isoDay, dayOfTime } from "../../base/days.ts";
import { isoTime } from "../../base/clock.ts";
import type { Spike } from "./alert-spikes.ts";
import type { Alert } from "../domains/raise.ts";
import { percentOf } from "../reading/range.ts";
import { troubleOf } from "../reading/sources.ts";
import type { ShownSource } from "../reading/source-view.ts";

/** Sources and names told of in one event. */
const TOLD_MAX = 10;
const SHARE_DIGITS = 10_000;

/** A name below the domain that was not seen in `From` before, with its mail of the last days. */
export interface NewName {
  readonly name: string;
  readonly first_day: string;
  readonly messages: number;
  readonly aligned: number;
}

/** New senders: one, or many at once. The most messages first; never empty. */
export const sourcesAlert = (sources: readonly ShownSource[]): Alert => {
  const [first] = sources;
  const isOne = sources.length === 1 && first !== undefined;
  return {
    rule: "new_source",
    subject: isOne ? first.key : subjectOfMany(sources.map(({ key }) => key)),
    data: { count: sources.length, sources: sources.slice(0, TOLD_MAX).map(toldSource) },
    summary: isOne
      ? `new source ${called(first)}: ${plural(first.messages, "message")}, ${first.aligned} passed DMARC`
      : `${sources.length} new sources`,
    cooldown: true,
  };
};

/** New names in `From`: one, or many at once. The most messages first; never empty. */
export const namesAlert = (names: readonly NewName[]): Alert => {
  const [first] = names;
  const isOne = names.length === 1 && first !== undefined;
  return {
    rule: "new_subdomain",
    subject: isOne ? first.name : subjectOfMany(names.map(({ name }) => name)),
    data: { count: names.length, names: names.slice(0, TOLD_MAX) },
    summary: isOne
      ? `new subdomain ${first.name}: ${plural(first.messages, "message")}, ${first.aligned} passed DMARC`
      : `${names.length} new subdomains`,
    cooldown: true,
  };
};

/** A day on which much more failed; `sources` are those of that day. It is told once, however the day grows. */
export const spikeAlert = (spike: Spike, sources: readonly ShownSource[]): Alert => {
  const { day, messages, failing, previousMessages, previousFailing } = spike;
  const before = percentOf(previousFailing, previousMessages) ?? 0;
  const worst = sources.filter((source) => troubleOf(source) > 0).toSorted((a, b) => troubleOf(b) - troubleOf(a));
  return {
    rule: "failure_spike",
    subject: isoDay(day),
    data: {
      day: isoDay(day),
      messages,
      failing,
      failing_share: shareOf(failing, messages),
      previous_messages: previousMessages,
      previous_failing: previousFailing,
      previous_failing_share: shareOf(previousFailing, previousMessages),
      sources: worst.slice(0, TOLD_MAX).map(toldSource),
    },
    summary: `failures rose from ${before} % to ${percentOf(failing, messages) ?? 0} % on ${isoDay(day)}`,
    cooldown: false,
  };
};

/** Reports stopped; `lastDay` is the last day that any report is about. It is told once until reports come again. */
export const silenceAlert = (lastReportAtMs: number, lastDay: number): Alert => ({
  rule: "reports_stopped",
  subject: isoDay(dayOfTime(lastReportAtMs)),
  data: { last_report_at: isoTime(lastReportAtMs), last_day: isoDay(lastDay) },
  summary: `no reports since ${isoDay(dayOfTime(lastReportAtMs))}`,
  cooldown: false,
});

/** Other newcomers on the same day are another subject. */
const subjectOfMany = (keys: readonly string[]): string => `many:${Bun.hash(keys.toSorted().join("\n")).toString(16)}`;

const toldSource = ({ key, name, kind, service, classification, first_day, messages, aligned }: ShownSource) => ({
  key,
  name,
  kind,
  service,
  classification,
  first_day,
  messages,
  aligned,
});

const called = ({ key, name, kind }: ShownSource): string => {
  const detail = key.slice(key.indexOf(":") + 1);
  return kind === "network" || detail === name ? name : `${name} (${detail})`;
};

const plural = (count: number, what: string): string => `${count} ${what}${count === 1 ? "" : "s"}`;

const shareOf = (part: number, whole: number): number => Math.round((part / whole) * SHARE_DIGITS) / SHARE_DIGITS;
