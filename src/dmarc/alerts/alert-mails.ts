import type { Mailer } from "../../net/mailer.ts";
import { MailBatcher, type MailRuntime } from "../../notify/mail-batcher.ts";
import type { MailContent } from "../../notify/mail-content.ts";
import { formatCount } from "../../notify/mail-text.ts";
import { type AlertSection, alertSection } from "./alert-section.ts";
import { changeCommand, readDomainCommand } from "./domain-commands.ts";
import { AlertMailQueue, type QueuedAlert } from "./mail-queue-store.ts";

export interface AlertMailOptions {
  readonly mailer: Mailer;
  /** The URL of the service, without a `/` at the end. */
  readonly baseUrl: string;
}

const ALERTS_MAX = 100;
const MINUTE_MS = 60_000;

/** Mails the queued alerts to their recipients: one mail about all that happened in a minute, and at most one in ten minutes. */
export const createAlertMails = (
  runtime: MailRuntime,
  { mailer, baseUrl }: AlertMailOptions,
): MailBatcher<QueuedAlert> =>
  new MailBatcher(runtime, {
    name: "DMARC alert mail",
    queue: new AlertMailQueue(runtime.db),
    mailer,
    compose: (rows) => {
      const alerts = rows.flatMap((row) => alertSection(row, baseUrl) ?? []);
      return alerts.length === 0 ? null : alertMail(alerts, baseUrl);
    },
    gatherMs: MINUTE_MS,
    intervalMs: 10 * MINUTE_MS,
  });

const alertMail = (alerts: readonly AlertSection[], baseUrl: string): MailContent => {
  const more = alerts.length - ALERTS_MAX;
  const { domain = "", domainId = "" } = alerts[0] ?? {};
  const link = { baseUrl, domainId };
  return {
    subject: subjectOf(alerts),
    sections: alerts.slice(0, ALERTS_MAX),
    closing: [
      ...(more > 0
        ? [`and ${formatCount(more)} more. All alerts of ${domain}: ${readDomainCommand(link, "/alerts")}`]
        : []),
      `You receive this mail as a recipient of these domains. To remove all recipients of ${domain}: ${changeCommand(link, "", { recipients: [] })}`,
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
