import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import type { Db } from "../../db/open.ts";
import { createGatheredMails, type GatheredMails } from "../../net/gathered-mails.ts";
import type { Mail, Mailer } from "../../net/mailer.ts";
import { readAlert, type ToldAlert } from "./alert-lines.ts";
import type { AlertMailLine, DmarcAlertStore } from "../domains/alert-store.ts";
import { hintHtml, hintText, mailPage, MUTED, safe, WRAP } from "./digest-page.ts";
import { footerOf, readCommand } from "./mail-words.ts";

export interface AlertMailDeps {
  readonly db: Db;
  readonly store: DmarcAlertStore;
  readonly mailer: Mailer;
  readonly clock: Clock;
  readonly log: Log;
  /** Where the service is reached, without a `/` at the end. */
  readonly baseUrl: string;
}

const ALERTS_MAX = 100;

/** One mail about all that happened. `alerts` is not empty. */
const alertMail = (
  alerts: readonly ToldAlert[],
  baseUrl: string,
): Pick<Mail, "subject" | "text"> & { readonly html: string } => {
  const subject = subjectOf(alerts);
  const place = { baseUrl, domainId: alerts[0]?.domainId ?? "" };
  const footer = footerOf(
    { what: "mail", effect: `For ${alerts[0]?.domain ?? ""} this removes all recipients` },
    place,
    { recipients: [] },
  );
  const shown = alerts.slice(0, ALERTS_MAX);
  const rest = alerts.length - shown.length;
  const tail = rest > 0 ? [`and ${rest} more. All alerts of a domain: ${readCommand(place, "/alerts")}`] : [];
  return {
    subject,
    text: `${[...shown.map(textOf), ...tail, footer].join("\n\n")}\n`,
    html: mailPage(
      subject,
      [...shown.map(sectionOf), ...tail.map((line) => safe`<p style="${WRAP}">${line}</p> `)],
      footer,
    ),
  };
};

const subjectOf = (alerts: readonly ToldAlert[]): string => {
  const [only] = alerts;
  if (alerts.length === 1 && only !== undefined) return only.headline;
  const domains = [...new Set(alerts.map(({ domain }) => domain))];
  const where = domains.length === 1 ? domains.join() : `${domains.length} domains`;
  return `DMARC: ${alerts.length} alerts for ${where}`;
};

const whenOf = ({ label, at }: ToldAlert): string => (label === null ? at : `${label}, ${at}`);

const textOf = (told: ToldAlert): string =>
  [
    told.headline,
    ...told.details.map((line) => `  - ${line}`),
    ...told.hints.flatMap(hintText),
    `  ${whenOf(told)}`,
  ].join("\n");

const sectionOf = (told: ToldAlert) => {
  const { headline, details, hints } = told;
  const items = details.map((line) => safe`<li style="overflow-wrap:anywhere">${line}</li> `);
  const list =
    items.length === 0
      ? null
      : safe`<ul style="margin:4px 0;padding-left:20px">
          ${items}
        </ul> `;
  return safe`<section style="margin:0 0 24px">
    <h2 style="font-size:16px;margin:0;overflow-wrap:anywhere">${headline}</h2>
    ${list}${hints.map(hintHtml)}
    <p style="margin:0;${MUTED};font-size:13px">${whenOf(told)}</p>
  </section> `;
};

/** Sends the alerts that wait to their recipients. */
export const createAlertMails = ({ db, store, mailer, clock, log, baseUrl }: AlertMailDeps): GatheredMails =>
  createGatheredMails<AlertMailLine>({
    ...{ mailer, clock, log },
    what: "a DMARC alert mail",
    recipients: store.mailRecipients,
    linesFor: store.mailLines,
    forget: (lines) =>
      db.commit((tx) =>
        store.removeMails(
          tx,
          lines.map(({ id }) => id),
        ),
      ),
    compose: (lines) => {
      const alerts = lines.flatMap((line) => readAlert(line, baseUrl) ?? []);
      return alerts.length === 0 ? null : alertMail(alerts, baseUrl);
    },
  });
