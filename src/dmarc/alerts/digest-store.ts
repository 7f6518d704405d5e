import type { DayRange } from "../../base/days.ts";
import type { Db, Tx } from "../../db/open.ts";
import { newId } from "../../base/secrets.ts";
import type { DigestPeriod } from "../../base/digest-schedule.ts";

/** A digest about one domain that waits to be mailed to somebody. */
export interface DigestLine {
  readonly id: string;
  readonly recipient: string;
  readonly createdAtMs: number;
  /** `number` of the domain. */
  readonly domain: number;
  readonly period: DigestPeriod;
  readonly range: DayRange;
}

interface Row {
  readonly id: string;
  readonly recipient: string;
  readonly alert: string;
  readonly createdAtMs: number;
}

const LINE = /^digest:(\d+):(daily|weekly|monthly):(\d+):(\d+)$/;
/** Lines of one recipient that are worked off at a time. */
const LINES_AT_ONCE_MAX = 1_000;

/**
 * Digests that are due, and those that wait for the relay. The latter stand among the alert mails, as `digest:<number of the
 * domain>:<period>:<first day>:<last day>` in place of an alert's id.
 */
export const createDigestStore = ({ sqlite }: Db) => {
  const due = sqlite.prepare<{ number: number }, [number, number]>(
    `SELECT number FROM dmarc_domains WHERE digest_due_at_ms <= ? AND digest <> 'off' AND deleted_at_ms IS NULL
      ORDER BY number LIMIT ?`,
  );
  const insert = sqlite.prepare<unknown, [string, string, string, number]>(
    "INSERT INTO dmarc_alert_mails (id, recipient, alert, created_at_ms) VALUES (?, ?, ?, ?)",
  );
  const recipients = sqlite.prepare<{ recipient: string }, [string, number]>(
    `SELECT DISTINCT recipient FROM dmarc_alert_mails WHERE alert LIKE 'digest:%' AND recipient > ? ORDER BY recipient
      LIMIT ?`,
  );
  const lines = sqlite.prepare<Row, [string, number]>(
    `SELECT id, recipient, alert, created_at_ms createdAtMs FROM dmarc_alert_mails
      WHERE recipient = ? AND alert LIKE 'digest:%' ORDER BY id LIMIT ?`,
  );
  const remove = sqlite.prepare<unknown, [string]>(
    "DELETE FROM dmarc_alert_mails WHERE id IN (SELECT value FROM json_each(?))",
  );

  return {
    dueDomains: (nowMs: number, limit: number): number[] => due.all(nowMs, limit).map(({ number }) => number),
    insertLine(_tx: Tx, { recipient, createdAtMs, domain, period, range }: Omit<DigestLine, "id">): void {
      insert.run(newId(), recipient, `digest:${domain}:${period}:${range.fromDay}:${range.toDay}`, createdAtMs);
    },
    /** Those for whom digests wait, in the order of their addresses, after `after`. */
    recipients: (after: string, limit: number): string[] =>
      recipients.all(after, limit).map(({ recipient }) => recipient),
    /** The oldest first. */
    linesFor: (recipient: string): DigestLine[] => lines.all(recipient, LINES_AT_ONCE_MAX).map(readLine),
    removeLines: (_tx: Tx, ids: readonly string[]): void => void remove.run(JSON.stringify(ids)),
  };
};

export type DigestStore = ReturnType<typeof createDigestStore>;

const readLine = ({ alert, ...row }: Row): DigestLine => {
  const [, domain, period, fromDay, toDay] = LINE.exec(alert) ?? [];
  const range = { fromDay: Number(fromDay), toDay: Number(toDay) };
  return { ...row, domain: Number(domain), period: (period ?? "daily") as DigestPeriod, range };
};
