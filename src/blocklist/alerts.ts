import { z } from "zod";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { newId } from "../base/secrets.ts";
import type { Db } from "../db/open.ts";
import { SEVERITIES } from "../dnsbl/blocklist.ts";
import { createGatheredMails, type GatheredMails } from "../net/gathered-mails.ts";
import type { Mailer } from "../net/mailer.ts";
import type { Change, ChangeContext } from "./events.ts";
import { factsOf } from "./events.ts";
import type { AlertRow } from "./alert-store.ts";
import { oneLine, plural } from "./mail-lines.ts";
import { worstRank } from "./severity.ts";
import type { BlocklistStore } from "./store.ts";

export interface AlertsDeps {
  readonly db: Db;
  readonly store: BlocklistStore;
  readonly mailer: Mailer;
  readonly clock: Clock;
  readonly log: Log;
  /** Queues the digests that are due. */
  readonly queueDigests: () => Promise<void>;
}

const LINES_MAX = 100;

const lineSchema = z.object({
  target: z.string(),
  label: z.string().nullable(),
  came: z.boolean(),
  name: z.string(),
  severity: z.enum(SEVERITIES).nullable(),
  meaning: z.string(),
  delist_url: z.string().nullable(),
  flapping: z.boolean(),
  at: z.string(),
});
type Line = z.output<typeof lineSchema>;

/** What waits for a mail: a change, or a digest that is written already. */
const waitingSchema = z.union([z.object({ digest: z.object({ subject: z.string(), text: z.string() }) }), lineSchema]);

/** What is to be mailed of a change: a row for each recipient, to be written in the transaction of the change. */
export const alertsOf = (change: Change, context: ChangeContext, recipients: readonly string[]): AlertRow[] => {
  const { before, atMs } = context;
  if (before.mode === "test") return [];
  const { listing_name: name, severity, meaning, delist_url, checked_at: at } = factsOf(change, context);
  const came = change.reason === null;
  const { value: target, label } = before;
  const line: Line = { target, label, came, name, severity, meaning, delist_url, flapping: change.flapping, at };
  const body = JSON.stringify(line);
  return recipients.map((recipient) => ({ id: newId(), recipient, body, createdAtMs: atMs }));
};

const describe = (line: Line): string => {
  const label = line.label === null ? "" : ` (${oneLine(line.label)})`;
  const often = line.flapping ? "; it comes and goes" : "";
  const head = `${line.target}${label}: ${line.came ? "listed on" : "no longer on"} ${line.name}${often}`;
  if (!line.came) return `${head}\n  ${line.at}`;
  const severity = line.severity === null ? "" : `  Severity: ${line.severity}. `;
  const delisting = line.delist_url === null ? "" : `\n  Delisting: ${line.delist_url}`;
  return `${head}\n${severity}${line.meaning}\n  ${line.at}${delisting}`;
};

interface MailText {
  readonly subject: string;
  readonly text: string;
}

/** Subject and text of one mail about all that happened, and the digests that are due. `rows` is not empty. */
export const alertMail = (rows: readonly AlertRow[]): MailText => {
  const waiting = rows.map(({ body }) => waitingSchema.parse(JSON.parse(body)));
  const digests = waiting.flatMap((row) => ("digest" in row ? [row.digest] : []));
  const lines = waiting.flatMap((row) => ("digest" in row ? [] : [row]));
  const mails = [...(lines.length === 0 ? [] : [changesMail(lines)]), ...digests];
  return { subject: mails[0]?.subject ?? "Blocklists", text: mails.map(({ text }) => text).join("\n") };
};

const changesMail = (lines: readonly Line[]): MailText => {
  // The rows are in the order of their time, which a sort keeps among those alike.
  const sorted = lines.toSorted((a, b) => worstRank([b.severity]) - worstRank([a.severity]));
  const came = sorted.filter((line) => line.came);
  const gone = sorted.filter((line) => !line.came);
  const [only] = lines;
  const subject =
    lines.length === 1 && only !== undefined
      ? `${only.target} is ${only.came ? "listed on" : "no longer on"} ${only.name}`
      : [
          ...(came.length > 0 ? [plural(came.length, "new listing")] : []),
          ...(gone.length > 0 ? [plural(gone.length, "delisting")] : []),
        ].join(", ");
  const shown = [...came, ...gone].slice(0, LINES_MAX).map(describe);
  const more = lines.length - shown.length;
  const tail = more > 0 ? [`and ${more} more; GET /v1/blacklist/targets?status=listed shows what is listed now.`] : [];
  return { subject: `Blocklists: ${subject}`, text: `${[...shown, ...tail].join("\n\n")}\n` };
};

/** Sends the alerts and digests that wait to their recipients. */
export const createAlerts = ({ db, store, mailer, clock, log, queueDigests }: AlertsDeps): GatheredMails => {
  const mails = createGatheredMails<AlertRow>({
    ...{ mailer, clock, log },
    what: "an alert mail",
    recipients: store.alertRecipients,
    linesFor: store.alertsFor,
    forget: (rows) =>
      db.commit((tx) => {
        for (const { id } of rows) store.removeAlert(tx, id);
      }),
    compose: alertMail,
  });
  return {
    async send() {
      try {
        await queueDigests();
      } catch (cause) {
        log.error("digests of listings could not be written; they are tried again in the next run", { cause });
      }
      await mails.send();
    },
  };
};
