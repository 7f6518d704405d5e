import { DAY_MS, dayOfTime, isoDay } from "../../../foundation/base/days.ts";
import { ALERT_DATA, type AlertData, readAlertBody } from "../rules/alert-data.ts";
import { isWeaker } from "../../records/domains/dns-changes.ts";
import { organisationalDomain } from "../../../foundation/mail/organisational-domain.ts";
import { readState, type StatePolicy, type DnsCheck, readLastCheck } from "../../records/domains/domain-state.ts";
import type { RecentAlert } from "./domain-overview-store.ts";
import type { AttentionItem } from "../../../foundation/base/attention.ts";
import { formatCount, plural, shortName } from "../../../notifications/mail/mail-text.ts";
import { excessiveAdvice, excessiveSummary } from "../rules/excessive-reporters.ts";
import type { DomainRow } from "../../records/domains/domain-store.ts";

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

interface OpenContext {
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

/** The page of a source. */
const sourcePagePath = (domainId: string, key: string): string =>
  `/dmarc/${domainId}/sources/${encodeURIComponent(key.toWellFormed())}`;

/** An open alert in the words of the dashboard. */
export const alertAttention = (alert: OpenAlert): AttentionItem => ({
  ...attentionText(alert),
  sinceMs: alert.atMs,
});

const attentionText = (alert: OpenAlert): Omit<AttentionItem, "sinceMs"> => {
  const { rule, data, domain, domainId } = alert;
  const path = `/dmarc/${domainId}`;
  switch (rule) {
    case "policy_weakened":
      return {
        severity: "bad",
        label: "Policy",
        title: `The policy of ${domain} was weakened${changeWords(data)}`,
        detail: weakenedDetail(data),
        action: { text: "Show the record", path: `${path}/record` },
      };
    case "new_source":
      return newSourceAttention(alert, data);
    case "failure_spike":
      return failureAttention(alert, data);
    case "spoofing_campaign":
      return {
        severity: "warn",
        label: "Spoofing",
        title: `Somebody forges mail from ${domain}`,
        detail: campaignDetail(data),
        action: { text: "See the mail", path: sourcePagePath(domainId, "unauthenticated") },
      };
    case "reports_stopped":
      return {
        severity: "warn",
        label: "No reports",
        title: `No reports about ${domain} since ${data.last_report_at.slice(0, 10)}`,
        detail: "Reporters used to send some. Check that the DMARC record still has the reporting address in rua.",
        action: { text: "Show the record", path: `${path}/record` },
      };
    case "tls_failures":
      return {
        severity: "warn",
        label: "TLS",
        title: `Mail servers cannot deliver to ${shortName(data.policy_domain)} by TLS`,
        detail: `${formatCount(data.failed_sessions)} of ${plural(data.sessions, "session")} failed since ${data.first_day}: ${data.meaning}. ${data.advice}`,
        action: { text: "See the TLS reports", path: `${path}/tls` },
      };
    case "excessive_reporter":
      return {
        severity: "warn",
        label: "Reporter",
        title: `${domain}: ${excessiveSummary(data)}`,
        detail: Object.values(excessiveAdvice(data)).join(" "),
        action: { text: "See the reports", path: `${path}/reports` },
      };
    default:
      return alert satisfies never;
  }
};

const policyWords = (policy: StatePolicy | null): string => {
  if (policy === null) return "no record";
  return `p=${policy.p}${policy.t === "y" ? " in test mode (t=y)" : ""}`;
};

/** Empty where the change is in other tags than `p` and `t`. */
const changeWords = ({ previous_policy: before, policy }: AlertData<"policy_weakened">): string => {
  const [was, is] = [policyWords(before), policyWords(policy)];
  return was === is ? "" : `: ${was} became ${is}`;
};

const weakenedDetail = ({ trigger, reported, record }: AlertData<"policy_weakened">): string => {
  if (trigger !== "reports" || reported === undefined) {
    const now = record === null ? "No record is published now." : `Now published: ${shortName(record)}`;
    return `Receivers deliver more forged mail than before. ${now}`;
  }
  const [first = "a reporter", ...others] = reported.reporters.map(shortName);
  const more = others.length === 0 ? "" : ` and ${others.length} more`;
  return `${first}${more} found it between two of our checks (${reported.first_day} to ${reported.last_day}).`;
};

type AlertPlace = Pick<OpenAlert, "domain" | "domainId">;

const newSourceAttention = (
  { domain, domainId }: AlertPlace,
  { count, sources }: AlertData<"new_source">,
): Omit<AttentionItem, "sinceMs"> => {
  const [first] = sources;
  const messages = sources.reduce((sum, source) => sum + source.messages, 0);
  const aligned = sources.reduce((sum, source) => sum + source.aligned, 0);
  const isOne = count === 1 && first !== undefined;
  return {
    severity: "warn",
    label: "New sender",
    title: isOne
      ? `${shortName(first.name)} began to send as ${domain}`
      : `${formatCount(count)} new senders began to send as ${domain}`,
    detail: `${plural(messages, "message")} in 7 days, ${formatCount(aligned)} aligned. ${isOne ? "Is it yours?" : "Are they yours?"}`,
    action: isOne
      ? { text: "Classify", path: sourcePagePath(domainId, first.key) }
      : { text: "Classify", path: `/dmarc/${domainId}/sources?class=unknown` },
  };
};

const HUNDRED = 100;
/** 100 % only where it is exactly that. */
const percentWords = (share: number): string => `${Math.min(Math.round(share * HUNDRED), share < 1 ? 99 : HUNDRED)} %`;

const failedWords = ({ messages, failing, failing_share }: AlertData<"failure_spike">): string =>
  failing === messages
    ? `All ${plural(messages, "message")} failed`
    : `${formatCount(failing)} of ${plural(messages, "message")} failed (${percentWords(failing_share)})`;

const failureAttention = (
  { domain, domainId }: AlertPlace,
  data: AlertData<"failure_spike">,
): Omit<AttentionItem, "sinceMs"> => {
  const { sources, usual_failing_share, started_day } = data;
  const [first, ...others] = sources;
  const name = first === undefined ? "A sender" : shortName(first.name);
  const more = others.length === 0 ? "" : ` and ${plural(others.length, "other sender")}`;
  const cause = first?.causes[0]?.message;
  return {
    severity: "bad",
    label: "Failing",
    title: `Mail of ${name}${more} as ${domain} has failed since ${started_day}`,
    detail: `${failedWords(data)}, usually ${percentWords(usual_failing_share)}.${cause === undefined ? "" : ` ${cause}`}`,
    action:
      first === undefined || others.length > 0
        ? { text: "See the sources", path: `/dmarc/${domainId}/sources?failing=1` }
        : { text: "See why", path: sourcePagePath(domainId, first.key) },
  };
};

const campaignDetail = ({
  started_day,
  messages,
  networks,
  quarantined,
  rejected,
}: AlertData<"spoofing_campaign">): string => {
  const stopped = quarantined + rejected;
  const outcome =
    stopped === 0
      ? "Receivers delivered them: the policy asks for nothing else."
      : `Receivers stopped ${formatCount(stopped)} of them.`;
  return `${plural(messages, "message")} from ${plural(networks, "network")} since ${started_day}, all unauthenticated. ${outcome}`;
};

/** What a failed check of the DNS means, in the words of the dashboard. */
const CHECK_TITLES: Readonly<Record<DnsCheck["code"], (domain: string) => string>> = {
  record: (domain) => `${domain} has no valid DMARC record`,
  reporting_address: (domain) => `${domain} no longer sends its reports here`,
  authorisation: (domain) => `Receivers may not send reports about ${domain} here`,
};

/** A domain whose status is `action_required`. `sinceMs` is null when unknown. */
export const statusAttention = (row: DomainRow, sinceMs: number | null): AttentionItem => {
  const failed = readLastCheck(row.lastCheck)?.checks.find(({ ok }) => ok === false);
  return {
    // Without a record anybody can forge the domain; without reports that only stays unseen.
    severity: failed?.code === "record" ? "bad" : "warn",
    label: "Record",
    title: failed === undefined ? `No reports about ${row.domain} can arrive` : CHECK_TITLES[failed.code](row.domain),
    detail: failed?.message ?? "The last check of its DNS got no response. The check before it failed.",
    action: { text: "Show the record", path: `/dmarc/${row.id}/record` },
    sinceMs,
  };
};
