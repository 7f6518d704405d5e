import { z } from "zod";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { newId } from "../base/secrets.ts";
import type { Db } from "../db/open.ts";
import { SEVERITIES } from "../dnsbl/blocklist.ts";
import { createGatheredMails, type GatheredMails } from "../net/gathered-mails.ts";
import type { Mailer } from "../net/mailer.ts";
import type { ListingChange, ListingChangeContext } from "./events.ts";
import { changeFactsOf } from "./events.ts";
import type { BlocklistAlertRow } from "./alert-store.ts";
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

/** A sentence about a list, which has no target. */
const noticeSchema = z.object({ notice: z.string(), detail: z.string(), at: z.string() });
type Notice = z.output<typeof noticeSchema>;

interface NoticeFacts {
  readonly list_name: string;
  readonly state: string;
  readonly reason: string | null;
  readonly remedy: string | null;
  readonly checked_at: string;
}

/** What is to be mailed of a list that cannot be used, or can be used again: a row for each recipient. */
export const noticesOf = (facts: NoticeFacts, recipients: readonly string[], atMs: number): BlocklistAlertRow[] => {
  const isUsable = facts.state === "healthy";
  const notice: Notice = {
    notice: `${facts.list_name} ${isUsable ? "can be used again" : "cannot be used"}`,
    detail: [facts.reason, facts.remedy].filter((text) => text !== null).join(" "),
    at: facts.checked_at,
  };
  const body = JSON.stringify(notice);
  return recipients.map((recipient) => ({ id: newId(), recipient, body, createdAtMs: atMs }));
};

/** What waits for a mail: a change, a notice about a list, or a digest that is written already. */
const waitingSchema = z.union([
  z.object({ digest: z.object({ subject: z.string(), text: z.string() }) }),
  noticeSchema,
  lineSchema,
]);

/** What is to be mailed of a change: a row for each recipient, to be written in the transaction of the change. */
export const alertsOf = (
  change: ListingChange,
  context: ListingChangeContext,
  recipients: readonly string[],
): BlocklistAlertRow[] => {
  const { before, atMs } = context;
  if (before.mode === "test") return [];
  const { listing_name: name, severity, meaning, delist_url, checked_at: at } = changeFactsOf(change, context);
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

const subjectOf = (one: Line | Notice): string =>
  "target" in one ? `${one.target} is ${one.came ? "listed on" : "no longer on"} ${one.name}` : one.notice;

/** Subject and text of one mail about all that happened, and the digests that are due. `rows` is not empty. */
export const alertMail = (rows: readonly BlocklistAlertRow[]): MailText => {
  const waiting = rows.map(({ body }) => waitingSchema.parse(JSON.parse(body)));
  const digests = waiting.flatMap((row) => ("digest" in row ? [row.digest] : []));
  const lines = waiting.filter((row) => "target" in row);
  const notices = waiting.filter((row) => "notice" in row);
  const mails = [...(lines.length + notices.length === 0 ? [] : [changesMail(lines, notices)]), ...digests];
  return { subject: mails[0]?.subject ?? "Blocklists", text: mails.map(({ text }) => text).join("\n") };
};

const changesMail = (lines: readonly Line[], notices: readonly Notice[]): MailText => {
  const all = [...lines, ...notices];
  // The rows are in the order of their time, which a sort keeps among those alike.
  const sorted = lines.toSorted((a, b) => worstRank([b.severity]) - worstRank([a.severity]));
  const came = sorted.filter((line) => line.came);
  const gone = sorted.filter((line) => !line.came);
  const [only] = all;
  const subject =
    all.length === 1 && only !== undefined
      ? subjectOf(only)
      : [
          ...(came.length > 0 ? [plural(came.length, "new listing")] : []),
          ...(gone.length > 0 ? [plural(gone.length, "delisting")] : []),
          ...(notices.length > 0 ? [plural(notices.length, "notice")] : []),
        ].join(", ");
  const shown = [...came, ...gone].slice(0, LINES_MAX).map(describe);
  const more = lines.length - shown.length;
  const tail = more > 0 ? [`and ${more} more; GET /v1/blacklist/targets?status=listed shows what is listed now.`] : [];
  const about = notices
    .slice(0, LINES_MAX)
    .map(({ notice, detail, at }) => `${notice}\n  ${oneLine(`${detail} ${at}`)}`);
  return { subject: `Blocklists: ${subject}`, text: `${[...shown, ...tail, ...about].join("\n\n")}\n` };
};

/** Sends the alerts and digests that wait to their recipients. */
export const createAlerts = ({ db, store, mailer, clock, log, queueDigests }: AlertsDeps): GatheredMails => {
  const mails = createGatheredMails<BlocklistAlertRow>({
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
