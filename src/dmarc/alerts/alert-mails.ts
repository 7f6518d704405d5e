import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import type { Db } from "../../db/open.ts";
import type { Mail, Mailer } from "../../net/mailer.ts";
import { readAlert, type ToldAlert } from "./alert-lines.ts";
import type { AlertMailLine, AlertStore } from "../domains/alert-store.ts";
import { mailPage, MUTED, safe } from "./digest-page.ts";

export interface AlertMailDeps {
  readonly db: Db;
  readonly store: AlertStore;
  readonly mailer: Mailer;
  readonly clock: Clock;
  readonly log: Log;
}

const MINUTE_MS = 60_000;
/** More may be found at once: the first alert waits this long for others. */
const GATHER_MS = MINUTE_MS;
/** At most one mail to somebody in so long, whatever happens. */
const MAIL_EVERY_MS = 10 * MINUTE_MS;
/** A relay that takes no mail for so long: what waited is of no use any more. */
const KEPT_MS = 24 * 60 * MINUTE_MS;
const ALERTS_MAX = 100;
const RECIPIENTS_AT_ONCE = 100;
const FOOTER =
  "You get this mail because you are a recipient of these domains. PATCH /v1/dmarc/domains/{id} changes that.";

/** One mail about all that happened. `alerts` is not empty. */
export const alertMail = (alerts: readonly ToldAlert[]): Pick<Mail, "subject" | "text"> & { readonly html: string } => {
  const subject = subjectOf(alerts);
  const shown = alerts.slice(0, ALERTS_MAX);
  const rest = alerts.length - shown.length;
  const tail = rest > 0 ? [`and ${rest} more; GET /v1/dmarc/domains/{id}/alerts lists them.`] : [];
  return {
    subject,
    text: `${[...shown.map(textOf), ...tail, FOOTER].join("\n\n")}\n`,
    html: mailPage(subject, [...shown.map(sectionOf), ...tail.map((line) => safe`<p>${line}</p> `)], FOOTER),
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
    ...(told.advice === null ? [] : [`  ${told.advice}`]),
    `  ${whenOf(told)}`,
  ].join("\n");

const sectionOf = (told: ToldAlert) => {
  const { headline, details, advice } = told;
  const items = details.map((line) => safe`<li style="overflow-wrap:anywhere">${line}</li> `);
  const list =
    items.length === 0
      ? null
      : safe`<ul style="margin:4px 0;padding-left:20px">
          ${items}
        </ul> `;
  const hint = advice === null ? null : safe`<p style="margin:4px 0">${advice}</p> `;
  return safe`<section style="margin:0 0 24px">
    <h2 style="font-size:16px;margin:0;overflow-wrap:anywhere">${headline}</h2>
    ${list}${hint}
    <p style="margin:0;${MUTED};font-size:13px">${whenOf(told)}</p>
  </section> `;
};

/** Sends what has gathered: one mail to each recipient. What a crash leaves behind is sent at the next run. */
export const createAlertMails = ({ db, store, mailer, clock, log }: AlertMailDeps) => {
  const mailedAtMs = new Map<string, number>();

  const forget = (lines: readonly AlertMailLine[]): Promise<void> =>
    db.commit((tx) =>
      store.removeMails(
        tx,
        lines.map(({ id }) => id),
      ),
    );

  const mailTo = async (recipient: string): Promise<void> => {
    const lines = store.mailLines(recipient);
    const [oldest] = lines;
    const nowMs = clock.nowMs();
    if (oldest === undefined || nowMs - oldest.createdAtMs < GATHER_MS) return;
    const alerts = lines.flatMap((line) => readAlert(line) ?? []);
    if (alerts.length === 0) return forget(lines);
    const sent = await mailer({ to: recipient, ...alertMail(alerts) });
    if (sent.ok) {
      mailedAtMs.set(recipient, nowMs);
      await forget(lines);
    } else if (sent.error.isFinal || nowMs - oldest.createdAtMs > KEPT_MS) {
      log.error("a DMARC alert mail is given up", { alerts: alerts.length, problem: sent.error.problem });
      await forget(lines);
    } else {
      log.warn("a DMARC alert mail was not taken; it is sent again", { problem: sent.error.problem });
    }
  };

  return {
    async send(): Promise<void> {
      const nowMs = clock.nowMs();
      for (const [recipient, atMs] of mailedAtMs) if (nowMs - atMs >= MAIL_EVERY_MS) mailedAtMs.delete(recipient);
      for (const recipient of store.mailRecipients(RECIPIENTS_AT_ONCE, [...mailedAtMs.keys()])) await mailTo(recipient);
    },
  };
};

export type AlertMails = ReturnType<typeof createAlertMails>;
