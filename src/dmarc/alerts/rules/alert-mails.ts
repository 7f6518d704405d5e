import { MailBatcher, type Mailing, type MailRuntime } from "../../../notifications/mail/mail-batcher.ts";
import {
  line,
  type MailSection,
  formatCount,
  minuteTime,
  oneLine,
  shortName,
} from "../../../notifications/mail/mail-content.ts";
import { readAlertBody, allDomainsLink } from "./alert-rule.ts";
import { findAlertRule } from "./alert-rules.ts";
import { AlertMailQueue, type QueuedAlert } from "./mail-queue-store.ts";

const ALERTS_MAX = 100;
const MINUTE_MS = 60_000;

/** Mails the queued alerts to their recipients: one mail about all that happened in a minute, and at most one in ten minutes. */
export const createAlertMails = (runtime: MailRuntime, mailing: Mailing): MailBatcher<QueuedAlert> =>
  new MailBatcher(runtime, {
    name: "DMARC alert mail",
    queue: new AlertMailQueue(runtime.db),
    mailing,
    compose: (rows) => {
      const alerts = withoutPassed(rows).flatMap((row) => alertSection(row) ?? []);
      return alerts.length === 0 ? null : alertMail(alerts);
    },
    topicOf: ({ accountId }) => (accountId === null ? null : { accountId, kind: "dmarc_alerts" }),
    gatherMs: MINUTE_MS,
    intervalMs: 10 * MINUTE_MS,
  });

/** Which problem an alert begins or ends; null for one that does neither. */
const incidentOf = ({ rule, body, domainId }: QueuedAlert) => {
  const { incident } = findAlertRule(rule) ?? {};
  if (incident === undefined || body === null) return null;
  const { data } = readAlertBody(body);
  const one = incident((field) => (typeof data[field] === "string" ? data[field] : ""), data);
  return one === null ? null : { key: JSON.stringify([domainId, rule, ...one.about]), ends: one.ends };
};

/** Rows without the beginnings of problems that ended before the mail, such as in a maintenance window: the end says it all. */
const withoutPassed = (rows: readonly QueuedAlert[]) => {
  const open = new Map<string, QueuedAlert>();
  const passed = new Set<QueuedAlert>();
  for (const row of rows) {
    const incident = incidentOf(row);
    if (incident === null) continue;
    const begin = open.get(incident.key);
    if (incident.ends && begin !== undefined) passed.add(begin);
    if (incident.ends) open.delete(incident.key);
    else open.set(incident.key, row);
  }
  return rows.filter((row) => !passed.has(row));
};

const alertMail = (alerts: readonly AlertSection[]) => {
  const more = alerts.length - ALERTS_MAX;
  return {
    subject: subjectOf(alerts),
    sections: alerts.slice(0, ALERTS_MAX),
    closing: [
      ...(more > 0 ? [`and ${formatCount(more)} more.`, allDomainsLink()] : []),
      "You receive this mail as a recipient of these domains, or of all mail of the account.",
    ],
  };
};

const subjectOf = (alerts: readonly AlertSection[]) => {
  const [first] = alerts;
  if (alerts.length === 1 && first !== undefined) return first.heading;
  const domains = new Set(alerts.map(({ domain }) => domain));
  const where = domains.size === 1 ? first?.domain : `${domains.size} domains`;
  return `DMARC: ${alerts.length} alerts for ${where}`;
};

/** An alert as a section of a mail; its heading names the domain. */
interface AlertSection extends MailSection {
  readonly domain: string;
  readonly domainId: string;
}

/** The section of a queued alert; null when the alert or its domain was deleted meanwhile. */
export const alertSection = (queued: QueuedAlert): AlertSection | null => {
  const { atMs, body, domain, domainId, label } = queued;
  const rule = findAlertRule(queued.rule);
  if (rule === undefined || atMs === null || body === null || domain === null || domainId === null) return null;
  const { summary, data } = readAlertBody(body);
  const sentence = oneLine(summary);
  // Data of another version has no blocks: a mail must not fail on that.
  const known = rule.data.safeParse(data);
  const when = minuteTime(atMs);
  return {
    domain,
    domainId,
    heading: namesDomain(sentence, domain) ? sentence : `${domain}: ${sentence}`,
    blocks: [
      ...(known.success ? rule.mail(known.data, { id: domainId, domain }) : []),
      line(label === null ? when : `${shortName(label)}, ${when}`, "muted"),
    ],
  };
};

/** Whether a sentence begins with the domain itself, not with a name below it. */
const namesDomain = (sentence: string, domain: string) =>
  sentence.startsWith(domain) && !/^[\w.-]/.test(sentence.slice(domain.length).replace(/^\.(?=\s|$)/, ""));
