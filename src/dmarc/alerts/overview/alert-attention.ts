import type { AttentionItem } from "../../../foundation/base/attention.ts";
import { formatCount, plural, shortName } from "../../../notifications/mail/mail-text.ts";
import type { AlertData } from "../rules/alert-data.ts";
import { excessiveAdvice, excessiveSummary } from "../rules/excessive-reporters.ts";
import type { StatePolicy } from "../../records/domains/domain-state.ts";
import type { OpenAlert } from "./open-alerts.ts";

/** The page of a source. */
export const sourcePagePath = (domainId: string, key: string): string =>
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
        ...{ severity: "bad", label: "Policy" },
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
        ...{ severity: "warn", label: "Spoofing" },
        title: `Somebody forges mail from ${domain}`,
        detail: campaignDetail(data),
        action: { text: "See the mail", path: sourcePagePath(domainId, "unauthenticated") },
      };
    case "reports_stopped":
      return {
        ...{ severity: "warn", label: "No reports" },
        title: `No reports about ${domain} since ${data.last_report_at.slice(0, 10)}`,
        detail: "Reporters used to send some. Check that the DMARC record still has the reporting address in rua.",
        action: { text: "Show the record", path: `${path}/record` },
      };
    case "tls_failures":
      return {
        ...{ severity: "warn", label: "TLS" },
        title: `Mail servers cannot deliver to ${shortName(data.policy_domain)} by TLS`,
        detail: `${formatCount(data.failed_sessions)} of ${plural(data.sessions, "session")} failed since ${data.first_day}: ${data.meaning}. ${data.advice}`,
        action: { text: "See the TLS reports", path: `${path}/tls` },
      };
    case "excessive_reporter":
      return {
        ...{ severity: "warn", label: "Reporter" },
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
    ...{ severity: "warn", label: "New sender" },
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
    ...{ severity: "bad", label: "Failing" },
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
