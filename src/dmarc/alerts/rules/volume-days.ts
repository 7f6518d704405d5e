import { sumBy } from "../../../foundation/base/sums.ts";
import { z } from "zod";
import { parseDay } from "../../../foundation/http/day-range.ts";
import type { DmarcAlertStore } from "../../records/domains/alert-store.ts";
import { readAlertBody } from "./alert-rule.ts";
import type { Source } from "../../insight/sources/source-response.ts";
import { ALERT_DAYS, groupFindings, type ReviewFacts } from "./review-facts.ts";

/** The aligned mail of a sender by day, in any order; days without mail may be absent. Days are whole days since 1970 (UTC). */
export interface VolumeDay {
  readonly day: number;
  readonly messages: number;
}

/** An incident that was alerted. */
interface AlertedVolume {
  readonly startedDay: number;
  /** The last day with far more mail than usual, as last stored. */
  readonly day: number;
  readonly messages: number;
  /** The most messages of a usual day. */
  readonly usual: number;
  readonly isEnded: boolean;
}

export interface VolumeChange {
  /** `grew`: only the totals of the alert change. */
  readonly state: "started" | "grew" | "ended";
  readonly startedDay: number;
  /** The last day with far more mail than usual. */
  readonly day: number;
  /** From the first to the last of these days. */
  readonly messages: number;
  readonly usual: number;
}

export interface VolumeMeasure {
  readonly today: number;
  /** A day with fewer messages is never far above usual. */
  readonly messagesMin: number;
  /** A day is far above usual at this many times the most messages of a usual day. */
  readonly factor: number;
  /** The days that reports about the domain cover. */
  readonly reportedDays: ReadonlySet<number>;
  /** Days with mail that are needed before a day can be compared. */
  readonly activeDaysMin: number;
}

/** A day is compared with the four weeks before. */
export const USUAL_DAYS = 28;
/** A sender is known after five weeks: by then it has sent what it sends every month. */
const KNOWN_DAYS = 35;
/** Reports must cover this many of the days with which one is compared. */
export const REPORTED_DAYS_MIN = 21;
/** An incident has ended after this many days of usual mail. */
const CALM_DAYS = 2;
/** Reports about a day are in when this many days have passed. */
const COMPLETE_AFTER_DAYS = 2;
/** After this many days the volume is usual: its end raises no alert. */
export const INCIDENT_DAYS_MAX = 28;

/**
 * What changed about the volume of one sender, by its own mail before. `incidents` are those alerted earlier, newest first: their days
 * are not usual. Null when nothing changed, and when too little is known. Late reports only add to a day, so they can start an
 * incident within a week, and never end one.
 */
export const judgeVolume = (
  days: readonly VolumeDay[],
  incidents: readonly AlertedVolume[],
  firstDay: number,
  measure: VolumeMeasure,
): VolumeChange | null => {
  const [last] = incidents;
  const isOpen = last !== undefined && !last.isEnded && last.startedDay >= measure.today - INCIDENT_DAYS_MAX;
  if (isOpen) return followUp(days, last, measure);
  const isUsual = (day: number) => !incidents.some((one) => day >= one.startedDay && day <= one.day);
  const fromDay = Math.max(measure.today - ALERT_DAYS, (last?.day ?? 0) + 1);
  const judged = days.filter(({ day }) => day >= fromDay && day <= measure.today).toSorted((a, b) => a.day - b.day);
  for (const { day } of judged) {
    const usual = usualBefore(
      days.filter((one) => isUsual(one.day)),
      { day, firstDay },
      measure,
    );
    if (usual === null || !isFarAbove(messagesOn(days, day), usual, measure)) continue;
    return { state: "started", ...spanOf(days, day, usual, measure) };
  }
  return null;
};

const messagesOn = (days: readonly VolumeDay[], day: number) =>
  sumBy(days, (one) => (one.day === day ? one.messages : 0));

const isFarAbove = (messages: number, usual: number, { messagesMin, factor }: VolumeMeasure) =>
  messages >= messagesMin && messages >= factor * usual;

/** The most messages of one of the days before; null when too few days are known. */
const usualBefore = (
  days: readonly VolumeDay[],
  { day, firstDay }: { readonly day: number; readonly firstDay: number },
  { reportedDays, activeDaysMin }: VolumeMeasure,
) => {
  const fromDay = day - USUAL_DAYS;
  if (firstDay > day - KNOWN_DAYS) return null;
  const reported = [...reportedDays].filter((one) => one >= fromDay && one < day).length;
  const before = days.filter((one) => one.day >= fromDay && one.day < day && one.messages > 0);
  if (reported < REPORTED_DAYS_MIN || before.length < activeDaysMin) return null;
  return Math.max(0, ...before.map(({ messages }) => messages));
};

/** From the first day of an incident to the last one on which the mail is far above usual. */
const spanOf = (days: readonly VolumeDay[], startedDay: number, usual: number, measure: VolumeMeasure) => {
  const since = days.filter(({ day }) => day >= startedDay && day <= measure.today);
  const day = Math.max(
    startedDay,
    ...since.filter(({ messages }) => isFarAbove(messages, usual, measure)).map((one) => one.day),
  );
  return { startedDay, day, messages: sumBy(since, (one) => (one.day <= day ? one.messages : 0)), usual };
};

const followUp = (days: readonly VolumeDay[], last: AlertedVolume, measure: VolumeMeasure): VolumeChange | null => {
  const now = spanOf(days, last.startedDay, last.usual, measure);
  // Deleted or replaced reports take nothing back.
  const span = { ...now, day: Math.max(now.day, last.day), messages: Math.max(now.messages, last.messages) };
  const calm = [...measure.reportedDays].filter(
    (day) => day > span.day && day <= measure.today - COMPLETE_AFTER_DAYS,
  ).length;
  if (calm >= CALM_DAYS) return { state: "ended", ...span };
  return span.messages > last.messages || span.day > last.day ? { state: "grew", ...span } : null;
};

/** The subject of incidents of new addresses. No source has this key. */
export const NEW_ADDRESSES = "new_addresses";
/** Alerts read to find an incident of new addresses. */
const ALERTS_MAX = 50;
const startSchema = z.object({ state: z.literal("started"), started_day: z.string() });

/** The first day of the present incident of new addresses of a domain; null without one. */
const newAddressesSince = (alerts: Pick<DmarcAlertStore, "listByRule">, domain: number): number | null => {
  const last = alerts.listByRule(domain, "volume_spike", ALERTS_MAX).find(({ subject }) => subject === NEW_ADDRESSES);
  const read = last === undefined ? undefined : startSchema.safeParse(readAlertBody(last.body).data).data;
  return read === undefined ? null : parseDay(read.started_day);
};

/** Up to ten new sources get an alert each. Those of one incident of new addresses, such as a DKIM replay, get one together. */
export const groupNewSources = <T extends { readonly source: Pick<Source, "aligned" | "service_id" | "first_day"> }>(
  found: readonly T[],
  { alerts, domain }: Pick<ReviewFacts, "alerts" | "domain">,
): readonly (readonly T[])[] => {
  const startedDay = found.length < 2 ? null : newAddressesSince(alerts, domain.number);
  if (startedDay === null) return groupFindings(found);
  const isOfIncident = ({ source: { aligned, service_id, first_day } }: T) =>
    aligned > 0 && service_id === null && (parseDay(first_day) ?? 0) >= startedDay;
  const together = found.filter(isOfIncident);
  const others = groupFindings(found.filter((one) => !isOfIncident(one)));
  return together.length === 0 ? others : [together, ...others];
};
