import { z } from "zod";
import { isoDay } from "../../base/days.ts";
import type { DmarcAlertRow } from "../domains/alert-store.ts";
import type { Alert } from "../domains/raise.ts";
import { parseDay, percentOf } from "../sources/day-range.ts";
import type { Source } from "../sources/source-response.ts";
import { shareOf, subjectOfMany, toldSource } from "./alert-texts.ts";
import { CAUSE_CODES, causeText, type FailureCause } from "./failure-causes.ts";
import type { AlertedIncident, FailureChange } from "./failure-incidents.ts";

/** A change about one source, with what is known of it. */
export interface FailureReport {
  readonly change: FailureChange;
  readonly source: Source;
  readonly causes: readonly FailureCause[];
}

/** Sources named in one event. One that is not named has no incident that is known later, and would be alerted again. */
const SOURCES_MAX = 100;

const incidentSchema = z.object({
  state: z.enum(["started", "grew", "ended"]),
  day: z.string(),
  sources: z.array(
    z.object({
      key: z.string(),
      started_day: z.string(),
      failing_share: z.number(),
      usual_failing_share: z.number(),
      causes: z.array(
        z.object({
          code: z.enum(CAUSE_CODES),
          domain: z.string(),
          selector: z.string().nullable(),
          result: z.string().nullable(),
        }),
      ),
    }),
  ),
});
const bodySchema = z.object({ data: incidentSchema });

export interface KnownIncident extends AlertedIncident {
  readonly causes: readonly FailureCause[];
}

/** The last incident of each source, by its key, out of the alerts about them. `alerts` has the newest first. */
export const readIncidents = (alerts: readonly DmarcAlertRow[]): ReadonlyMap<string, KnownIncident> => {
  const last = new Map<string, KnownIncident>();
  for (const { body } of alerts.toReversed()) {
    // Alerts from before incidents were stored by source have no state.
    const read = bodySchema.safeParse(JSON.parse(body));
    if (!read.success) continue;
    const { state, day, sources } = read.data.data;
    for (const { key, started_day, failing_share: share, usual_failing_share: usualShare, causes } of sources) {
      const startedDay = parseDay(started_day) ?? 0;
      const endedDay = state === "ended" ? parseDay(day) : null;
      last.set(key, { startedDay, endedDay, share, usualShare, causes });
    }
  }
  return last;
};

const SUMMARIES: Readonly<Record<FailureChange["state"], (name: string, before: string, now: string) => string>> = {
  started: (name, before, now) => `${name}: ${now} of the mail fails DMARC, usually ${before}`,
  grew: (name, before, now) => `${name}: failures doubled, ${now} of the mail fails DMARC, usually ${before}`,
  ended: (name, _before, now) => `${name}: mail passes DMARC again, ${now} fails`,
};

/** Sources with the same kind of change; never empty. The one with the most failing messages comes first. */
export const failureAlert = (reports: readonly FailureReport[]): Alert => {
  const sorted = reports.toSorted((a, b) => b.change.failing - a.change.failing);
  const changes = sorted.map(({ change }) => change);
  const sum = (count: (change: FailureChange) => number): number =>
    changes.reduce((total, one) => total + count(one), 0);
  const [messages, failing] = [sum((one) => one.messages), sum((one) => one.failing)];
  const [first] = sorted;
  const state = first?.change.state ?? "started";
  const name =
    sorted.length === 1 ? (first?.source.name ?? "") : `${first?.source.name ?? ""} and ${sorted.length - 1} more`;
  const usual = sum((one) => one.usualShare * one.messages) / Math.max(1, messages);
  const [cause] = first?.causes ?? [];
  const since = isoDay(Math.min(...changes.map(({ startedDay }) => startedDay)));
  const summary = SUMMARIES[state](name, percent(usual), percent(failing / Math.max(1, messages)));
  return {
    rule: "failure_spike",
    subject: sorted.length === 1 ? (first?.change.key ?? "") : subjectOfMany(changes.map(({ key }) => key)),
    data: {
      state,
      started_day: since,
      day: isoDay(Math.max(...changes.map(({ day }) => day))),
      messages,
      failing,
      failing_share: shareOf(failing, Math.max(1, messages)),
      usual_failing_share: shareOf(usual, 1),
      sources: sorted.slice(0, SOURCES_MAX).map(toldFailure),
    },
    summary: cause === undefined || state === "ended" ? summary : `${summary}: ${causeText(cause, since)}`,
    cooldown: false,
  };
};

const toldFailure = ({ change, source, causes }: FailureReport) => ({
  ...toldSource(source),
  started_day: isoDay(change.startedDay),
  messages: change.messages,
  failing: change.failing,
  failing_share: shareOf(change.failing, change.messages),
  usual_failing_share: shareOf(change.usualShare, 1),
  causes: causes.map((cause) => ({ ...cause, message: `${sentence(causeText(cause, isoDay(change.startedDay)))}` })),
});

const sentence = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
const percent = (share: number): string => `${percentOf(share, 1) ?? 0} %`;
