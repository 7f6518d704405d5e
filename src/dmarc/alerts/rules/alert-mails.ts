import { MailBatcher, type Mailing, type MailRuntime } from "../../../notifications/mail/mail-batcher.ts";
import type { MailContent } from "../../../notifications/mail/mail-content.ts";
import { formatCount } from "../../../notifications/mail/mail-text.ts";
import { type AlertSection, alertSection } from "./alert-section.ts";
import { allDomainsLink } from "./domain-links.ts";
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
      const alerts = rows.flatMap((row) => alertSection(row) ?? []);
      return alerts.length === 0 ? null : alertMail(alerts);
    },
    topicOf: ({ accountId }) => (accountId === null ? null : { accountId, kind: "dmarc_alerts" }),
    gatherMs: MINUTE_MS,
    intervalMs: 10 * MINUTE_MS,
  });

const alertMail = (alerts: readonly AlertSection[]): MailContent => {
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

const subjectOf = (alerts: readonly AlertSection[]): string => {
  const [first] = alerts;
  if (alerts.length === 1 && first !== undefined) return first.heading;
  const domains = new Set(alerts.map(({ domain }) => domain));
  const where = domains.size === 1 ? first?.domain : `${domains.size} domains`;
  return `DMARC: ${alerts.length} alerts for ${where}`;
};
