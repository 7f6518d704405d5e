import type { DigestPeriod, DayRange } from "../../../foundation/base/days.ts";
import { newId } from "../../../foundation/base/secrets.ts";
import { OF_ENABLED_ACCOUNT } from "../../../foundation/db/statements.ts";
import type { Db, Tx } from "../../../foundation/db/open.ts";
import type { MailQueue, QueuedMail } from "../../../notifications/mail/mail-batcher.ts";

/** An alert that is queued for one recipient. Fields that are null were deleted with the domain. */
export interface QueuedAlert extends QueuedMail {
  readonly rule: string | null;
  readonly atMs: number | null;
  readonly body: string | null;
  readonly domain: string | null;
  readonly domainId: string | null;
  readonly accountId: string | null;
  readonly label: string | null;
}

/** A digest about one domain that is queued for one recipient. */
export interface QueuedDigest extends QueuedMail {
  /** `number` of the domain. */
  readonly domain: number;
  readonly period: DigestPeriod;
  readonly range: DayRange;
}

/** Rows of one recipient that one mail is about; the next mail is about the rest. */
const ALERTS_MAX = 10_000;
const DIGESTS_MAX = 1_000;
const DIGEST = /^digest:(\d+):(daily|weekly|monthly):(\d+):(\d+)$/;

/** The queue of alert mails and digests. A digest has `digest:<domain>:<period>:<first day>:<last day>` in place of an alert's id. */
abstract class MailQueueStore<Row extends QueuedMail> implements MailQueue<Row> {
  protected readonly sqlite: Db["sqlite"];

  constructor(
    { sqlite }: Pick<Db, "sqlite">,
    private readonly condition: string,
  ) {
    this.sqlite = sqlite;
  }

  abstract rowsFor(recipient: string): Row[];

  recipients(after: string, limit: number): string[] {
    return this.sqlite
      .query<{ recipient: string }, [string, number]>(
        `SELECT DISTINCT recipient FROM dmarc_alert_mails WHERE ${this.condition} AND recipient > ?
          ORDER BY recipient LIMIT ?`,
      )
      .all(after, limit)
      .map(({ recipient }) => recipient);
  }

  remove(_tx: Tx, rows: readonly Row[]): void {
    this.sqlite
      .query("DELETE FROM dmarc_alert_mails WHERE id IN (SELECT value FROM json_each(?))")
      .run(JSON.stringify(rows.map(({ id }) => id)));
  }
}

export class AlertMailQueue extends MailQueueStore<QueuedAlert> {
  constructor(db: Pick<Db, "sqlite">) {
    super(db, "alert NOT LIKE 'digest:%'");
  }

  rowsFor(recipient: string): QueuedAlert[] {
    return this.sqlite
      .query<QueuedAlert, [string, number]>(
        `SELECT m.id, m.created_at_ms createdAtMs, a.rule, a.at_ms atMs, a.body, d.domain, d.id domainId,
            d.account_id accountId, d.label
          FROM dmarc_alert_mails m
          LEFT JOIN dmarc_alerts a ON a.id = m.alert
          LEFT JOIN dmarc_domains d ON d.number = a.domain AND d.deleted_at_ms IS NULL
          WHERE m.recipient = ? AND m.alert NOT LIKE 'digest:%' ORDER BY m.id LIMIT ?`,
      )
      .all(recipient, ALERTS_MAX);
  }
}

export class DigestQueue extends MailQueueStore<QueuedDigest> {
  constructor(db: Pick<Db, "sqlite">) {
    super(db, "alert LIKE 'digest:%'");
  }

  rowsFor(recipient: string): QueuedDigest[] {
    return this.sqlite
      .query<QueuedMail & { alert: string }, [string, number]>(
        `SELECT id, alert, created_at_ms createdAtMs FROM dmarc_alert_mails
          WHERE recipient = ? AND alert LIKE 'digest:%' ORDER BY id LIMIT ?`,
      )
      .all(recipient, DIGESTS_MAX)
      .map(({ alert, ...row }) => {
        const [, domain, period, fromDay, toDay] = DIGEST.exec(alert) ?? [];
        const range = { fromDay: Number(fromDay), toDay: Number(toDay) };
        return { ...row, domain: Number(domain), period: isPeriod(period) ? period : "daily", range };
      });
  }

  /** Numbers of the domains whose digest is due. */
  dueDomains(nowMs: number, limit: number): number[] {
    return this.sqlite
      .query<{ number: number }, [number, number]>(
        `SELECT number FROM dmarc_domains WHERE digest_due_at_ms <= ? AND digest <> 'off' AND deleted_at_ms IS NULL
          AND ${OF_ENABLED_ACCOUNT}
          ORDER BY number LIMIT ?`,
      )
      .all(nowMs, limit)
      .map(({ number }) => number);
  }

  insert(_tx: Tx, recipient: string, { createdAtMs, domain, period, range }: Omit<QueuedDigest, "id">): void {
    this.sqlite
      .query("INSERT INTO dmarc_alert_mails (id, recipient, alert, created_at_ms) VALUES (?, ?, ?, ?)")
      .run(newId(), recipient, `digest:${domain}:${period}:${range.fromDay}:${range.toDay}`, createdAtMs);
  }
}

const isPeriod = (text: string | undefined): text is DigestPeriod =>
  text === "daily" || text === "weekly" || text === "monthly";
