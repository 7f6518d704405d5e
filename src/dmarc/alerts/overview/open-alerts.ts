import { DAY_MS, dayOfTime, isoDay } from "../../../foundation/base/days.ts";
import { ALERT_DATA, type AlertData, readAlertBody } from "../rules/alert-data.ts";
import { isWeaker } from "../../records/domains/dns-changes.ts";
import { organisationalDomain } from "../../../foundation/mail/organisational-domain.ts";
import { readState } from "../../records/domains/domain-state.ts";
import type { RecentAlert } from "./open-alert-store.ts";

/** Rules whose alerts stay open until something ends them. */
export const OPEN_RULES = [
  "policy_weakened",
  "new_source",
  "failure_spike",
  "spoofing_campaign",
  "reports_stopped",
  "tls_failures",
  "excessive_reporter",
] as const;
type OpenRule = (typeof OPEN_RULES)[number];

/** Incidents that have not ended are no news after so long: see `INCIDENT_DAYS_MAX` of failure spikes. */
export const OPEN_DAYS_MAX = 60;
/** What nothing ends counts as open for this long, unless somebody acknowledges it. */
const NEWS_MS = 14 * DAY_MS;
const CAMPAIGN_MS = 7 * DAY_MS;

/** An alert that still holds, with its data. */
export type OpenAlert = RecentAlert & { readonly summary: string } & {
    [R in OpenRule]: { readonly rule: R; readonly data: AlertData<R> };
  }[OpenRule];

export interface OpenContext {
  readonly nowMs: number;
  /** See `OpenAlertStore.classifiedSources`. */
  readonly classified: ReadonlySet<string>;
  /** See `OpenAlertStore.excessiveReporters`. */
  readonly excessive: ReadonlySet<string>;
}

/** The alerts that still hold and that nobody acknowledged, newest first. `alerts` are newest first, too. */
export const findOpenAlerts = (alerts: readonly RecentAlert[], context: OpenContext): readonly OpenAlert[] => {
  const read = alerts.flatMap(readAlert);
  const latest = new Set([...Map.groupBy(read, identityOf).values()].map(([newest]) => newest?.id));
  const ended = endedSpikes(read);
  return read.filter(
    (alert) =>
      alert.acknowledgedAtMs === null && latest.has(alert.id) && !ended.has(alert.id) && isOpen(alert, context),
  );
};

/** None for an alert of another version. */
const readAlert = (alert: RecentAlert): OpenAlert[] => {
  const rule = OPEN_RULES.find((known) => known === alert.rule);
  if (rule === undefined) return [];
  const { summary, data } = readAlertBody(alert.body);
  const parsed = ALERT_DATA[rule].safeParse(data);
  return parsed.success ? [{ ...alert, summary, rule, data: parsed.data } as OpenAlert] : [];
};

/** A later alert of the same identity replaces an earlier one. */
const identityOf = ({ number, rule, subject }: OpenAlert): string => {
  const isOne = rule === "policy_weakened" || rule === "spoofing_campaign" || rule === "reports_stopped";
  return isOne ? `${number} ${rule}` : `${number} ${rule} ${subject}`;
};

/** The ids of the failure alerts all of whose sources had a later alert: another one replaced it, or the incident ended. */
const endedSpikes = (alerts: readonly OpenAlert[]): ReadonlySet<string> => {
  const later = new Set<string>();
  const ended = new Set<string>();
  for (const { id, number, rule, data } of alerts) {
    if (rule !== "failure_spike") continue;
    const keys = data.sources.map(({ key }) => `${number} ${key}`);
    if (data.state === "ended" || keys.every((key) => later.has(key))) ended.add(id);
    for (const key of keys) later.add(key);
  }
  return ended;
};

const isOpen = (alert: OpenAlert, { nowMs, classified, excessive }: OpenContext): boolean => {
  const ageMs = nowMs - alert.atMs;
  switch (alert.rule) {
    case "policy_weakened":
      return ageMs < NEWS_MS && isStillWeaker(alert, alert.data);
    case "new_source":
      return ageMs < NEWS_MS && alert.data.sources.some(({ key }) => !classified.has(`${alert.number} ${key}`));
    case "failure_spike":
      return true;
    case "spoofing_campaign":
      return ageMs < CAMPAIGN_MS;
    case "reports_stopped":
      return alert.lastReportAtMs !== null && isoDay(dayOfTime(alert.lastReportAtMs)) === alert.subject;
    case "tls_failures":
      return alert.data.state === "began";
    case "excessive_reporter":
      return alert.data.reporters.some(({ name }) => excessive.has(`${alert.number} ${name}`));
    default:
      return alert satisfies never;
  }
};

/** What reports found between two checks does not show in the DNS any more. */
const isStillWeaker = (
  { domain, state }: RecentAlert,
  { trigger, previous_policy: before }: AlertData<"policy_weakened">,
): boolean => {
  const now = readState(state)?.believed.policy;
  return trigger === "reports" || now === undefined || isWeaker(before, now, organisationalDomain(domain) === domain);
};
