import type { Db, Tx } from "../../../foundation/db/open.ts";
import type { DomainRow } from "../../records/domains/domain-store.ts";
import type { IngestionOwner, IngestionResult } from "./ingestion-store.ts";
import { rows, sqlStatements } from "../../../foundation/db/statements.ts";
import { RawStore } from "./raw-store.ts";

/** The last ingestion that a walk by age has seen. */
export interface AgeCursor {
  readonly receivedAtMs: number;
  readonly rowid: number;
}

/** An ingestion whose bytes are kept. `findings` is JSON: see `parseFindings`. */
export interface RawHolder extends AgeCursor {
  readonly id: string;
  readonly domain: number | null;
  readonly findings: string | null;
}

/** An ingestion as far as purging a domain needs it. */
export interface OwnedIngestion {
  readonly id: string;
  readonly domain: number | null;
  readonly isPending: 0 | 1;
  /** JSON; null while it is pending. */
  readonly findings: string | null;
}

/** A domain that is not deleted, and how many days it keeps reports and bytes. */
export type RetainedDomain = Pick<DomainRow, "number" | "id" | "retentionDays" | "rawRetentionDays">;

/** Tables with data of a day; records before their report. */
const BY_DAY = ["dmarc_records", "dmarc_daily", "dmarc_daily_reporters", "dmarc_daily_names", "dmarc_reports"];
/** Tables with data of a domain, in the order in which they are purged. */
const OF_DOMAIN = [
  "dmarc_records",
  "dmarc_reports",
  "dmarc_tls_reports",
  "dmarc_failure_reports",
  "dmarc_daily",
  "dmarc_daily_reporters",
  "dmarc_daily_names",
  "dmarc_report_authors",
  "dmarc_reporters",
  "dmarc_names",
  "dmarc_source_words",
  "dmarc_history",
  "dmarc_sources",
  "dmarc_health",
  "dmarc_record_history",
  "dmarc_overviews",
  "dmarc_shares",
  "dmarc_mta_sts",
];

/** Removes some rows of a domain. */
const deleteSome = (table: string, condition = "") =>
  `DELETE FROM ${table} WHERE rowid IN (SELECT rowid FROM ${table} WHERE domain = ? ${condition} LIMIT ?)`;

/** Of records that are published still, the newest entry stays: the next check compares with it. */
const REPLACED_BEFORE = `AND at_ms < ? AND EXISTS (SELECT 1 FROM dmarc_record_history newer WHERE newer.domain = dmarc_record_history.domain
  AND newer.kind = dmarc_record_history.kind AND newer.host = dmarc_record_history.host AND newer.id > dmarc_record_history.id)`;

const prepareStatements = (db: Pick<Db, "sqlite">) =>
  sqlStatements(db, {
    byDay: () => BY_DAY.map((table) => db.sqlite.prepare(deleteSome(table, "AND day < ?"))),
    ofDomain: () => OF_DOMAIN.map((table) => db.sqlite.prepare(deleteSome(table))),
    oldFailures: deleteSome("dmarc_failure_reports", "AND received_at_ms < ?"),
    oldTls: deleteSome("dmarc_tls_reports", "AND received_at_ms < ?"),
    history: () => [
      ...["dmarc_alerts", "dmarc_history"].map((table) => db.sqlite.prepare(deleteSome(table, "AND at_ms < ?"))),
      db.sqlite.prepare(deleteSome("dmarc_record_history", REPLACED_BEFORE)),
    ],
    holders: rows<RawHolder, [number, number, number, number]>(
      `SELECT rowid, id, domain, received_at_ms AS receivedAtMs, findings FROM dmarc_ingestions
      WHERE has_raw = 1 AND (received_at_ms, rowid) > (?, ?) AND received_at_ms < ? AND status = 'done'
      ORDER BY received_at_ms, rowid LIMIT ?`,
    ),
    noteRawGone: "UPDATE dmarc_ingestions SET has_raw = 0 WHERE id = ?",
    removeIngestion: "DELETE FROM dmarc_ingestions WHERE id = ?",
    removeOldIngestion: "DELETE FROM dmarc_ingestions WHERE id = ? AND status = 'done' AND has_raw = 0",
    detachIngestion: "UPDATE dmarc_ingestions SET domain = NULL WHERE id = ?",
    conclude: "UPDATE dmarc_ingestions SET outcome = ?, reason = ?, findings = ? WHERE id = ?",
    oldIngestions: rows<AgeCursor & { id: string; isHeld: 0 | 1 }, [number, number, number, number]>(
      `SELECT rowid, id, received_at_ms AS receivedAtMs, status <> 'done' OR has_raw = 1 AS isHeld FROM dmarc_ingestions
      WHERE (received_at_ms, rowid) > (?, ?) AND received_at_ms < ? ORDER BY received_at_ms, rowid LIMIT ?`,
    ),
    ingestionsOf: rows<OwnedIngestion, [string, string, string, number]>(
      `SELECT id, domain, status = 'pending' AS isPending, findings FROM dmarc_ingestions
      WHERE account_id = ? AND mode = ? AND id > ? ORDER BY id LIMIT ?`,
    ),
    sources: rows<{ number: number; key: string; lastDay: number }, [number, string, number]>(
      "SELECT number, key, last_day AS lastDay FROM dmarc_sources WHERE domain = ? AND key > ? ORDER BY key LIMIT ?",
    ),
    removeOldSource: "DELETE FROM dmarc_sources WHERE number = ? AND last_day < ?",
    alerts: rows<{ id: string }, [number, number]>("SELECT id FROM dmarc_alerts WHERE domain = ? ORDER BY id LIMIT ?"),
    removeAlertMails: "DELETE FROM dmarc_alert_mails WHERE alert = ?",
    removeAlert: "DELETE FROM dmarc_alerts WHERE id = ?",
    domains: rows<RetainedDomain, []>(
      `SELECT number, id, retention_days AS retentionDays, raw_retention_days AS rawRetentionDays
      FROM dmarc_domains WHERE deleted_at_ms IS NULL ORDER BY number`,
    ),
  });

/**
 * Removes expired data, a limited number of rows at a time. Methods with a `limit` remove up to that number of rows and return
 * the number. `domain` is the `number` of a domain.
 */
export class RetentionStore {
  readonly raw: RawStore;
  readonly #sql;

  constructor(db: Db) {
    this.raw = new RawStore(db);
    this.#sql = prepareStatements(db);
  }

  /** The domains that are not deleted. */
  domains(): RetainedDomain[] {
    return this.#sql.domains.all();
  }

  /** Ingestions with bytes that were read and received before a time, oldest first. */
  holders(after: AgeCursor, beforeMs: number, limit: number): RawHolder[] {
    return this.#sql.holders.all(after.receivedAtMs, after.rowid, beforeMs, limit);
  }

  removeRaw(tx: Tx, id: string): void {
    this.raw.remove(tx, id);
    this.#sql.noteRawGone.run(id);
  }

  /** Removes reports, records and daily counts of days before `day`. */
  removeBeforeDay(_tx: Tx, domain: number, day: number, limit: number): number {
    let left = limit;
    for (const statement of this.#sql.byDay) if (left > 0) left -= statement.run(domain, day, left).changes;
    return limit - left;
  }

  /** Removes TLS reports that arrived before a time. */
  removeTlsBefore(_tx: Tx, domain: number, beforeMs: number, limit: number): number {
    return this.#sql.oldTls.run(domain, beforeMs, limit).changes;
  }

  /** Removes failure reports that arrived before a time. */
  removeFailuresBefore(_tx: Tx, domain: number, beforeMs: number, limit: number): number {
    return this.#sql.oldFailures.run(domain, beforeMs, limit).changes;
  }

  /** Removes alerts and changes of records from before a time. */
  removeHistory(_tx: Tx, domain: number, beforeMs: number, limit: number): number {
    return this.#sql.history.reduce((sum, statement) => sum + statement.run(domain, beforeMs, limit).changes, 0);
  }

  /** Sources after a key, in the order of their keys. */
  sourcesAfter(domain: number, key: string, limit: number): { number: number; key: string; lastDay: number }[] {
    return this.#sql.sources.all(domain, key, limit);
  }

  /** Removes a source unless it was seen on `day` or later. */
  removeSource(_tx: Tx, { number }: { number: number }, day: number): void {
    this.#sql.removeOldSource.run(number, day);
  }

  /** Ingestions received before a time, oldest first; `isHeld` for those that are pending or have bytes. */
  ingestionsBefore(after: AgeCursor, beforeMs: number, limit: number): (AgeCursor & { id: string; isHeld: 0 | 1 })[] {
    return this.#sql.oldIngestions.all(after.receivedAtMs, after.rowid, beforeMs, limit);
  }

  /** Removes an ingestion unless it is pending or has bytes. */
  removeOldIngestion(_tx: Tx, id: string): void {
    this.#sql.removeOldIngestion.run(id);
  }

  /** Ingestions of an owner after one, in the order of their ids. */
  ingestionsOf({ accountId, mode }: IngestionOwner, after: string, limit: number): OwnedIngestion[] {
    return this.#sql.ingestionsOf.all(accountId, mode, after, limit);
  }

  /** Removes an ingestion with its bytes. */
  removeIngestion(tx: Tx, id: string): void {
    this.raw.remove(tx, id);
    this.#sql.removeIngestion.run(id);
  }

  /** Detaches an ingestion from the domain whose address it came to. */
  detachIngestion(_tx: Tx, id: string): void {
    this.#sql.detachIngestion.run(id);
  }

  /** Changes what was found in an ingestion. */
  conclude(_tx: Tx, id: string, { outcome, reason, findings }: Omit<IngestionResult, "finishedAtMs">): void {
    this.#sql.conclude.run(outcome, reason, JSON.stringify(findings), id);
  }

  /** Removes some of everything that a domain has, but for ingestions; 0 when nothing is left but its own row. */
  removeOfDomain(_tx: Tx, domain: number, limit: number): number {
    let left = limit;
    for (const statement of this.#sql.ofDomain) if (left > 0) left -= statement.run(domain, left).changes;
    if (left > 0) left -= this.#removeAlerts(domain, left);
    return limit - left;
  }

  #removeAlerts(domain: number, limit: number) {
    const alerts = this.#sql.alerts.all(domain, limit);
    for (const { id } of alerts) {
      this.#sql.removeAlertMails.run(id);
      this.#sql.removeAlert.run(id);
    }
    return alerts.length;
  }
}

/** The address of a source, and what is known of its reverse name. */
export interface SourceAddressName {
  readonly ip: string;
  readonly name: string | null;
  readonly isConfirmed: boolean;
}

/** The address in a stored key; null where there is none. */
const IP = `CASE WHEN key LIKE '* %' THEN NULL WHEN instr(key, ' ') > 0 THEN substr(key, 1, instr(key, ' ') - 1)
  WHEN key LIKE 'ip:%' THEN substr(key, 4) END`;

/** Whether anything is counted under a name (2) of a domain (1), day by day: the index has the day before the name. */
export const IS_COUNTED = `WITH RECURSIVE days (day) AS (SELECT max(day) FROM dmarc_daily_names WHERE domain = ?1
  UNION ALL SELECT (SELECT max(n.day) FROM dmarc_daily_names n WHERE n.domain = ?1 AND n.day < days.day) FROM days
    WHERE days.day IS NOT NULL)
  SELECT 1 FROM days CROSS JOIN dmarc_daily_names n ON n.domain = ?1 AND n.day = days.day AND n.name = ?2 LIMIT 1`;

interface SourceWithName {
  readonly key: string;
  readonly ip: string | null;
  readonly name: string | null;
  readonly isConfirmed: 0 | 1 | null;
}

const NAME_STATEMENTS = {
  namesBefore: rows<{ name: string }, [number, string, number, number]>(
    "SELECT name FROM dmarc_names WHERE domain = ? AND name > ? AND first_day < ? ORDER BY name LIMIT ?",
  ),
  isCounted: rows<unknown, [number, string]>(IS_COUNTED),
  removeName: "DELETE FROM dmarc_names WHERE domain = ? AND name = ?",
  classifiedBefore: rows<{ key: string }, [number, string, number, number]>(
    "SELECT key FROM dmarc_source_words WHERE domain = ? AND key > ? AND at_ms < ? ORDER BY key LIMIT ?",
  ),
  removeClassification: "DELETE FROM dmarc_source_words WHERE domain = ? AND key = ? AND at_ms < ?",
  sources: rows<SourceWithName, [number, string, number]>(
    `SELECT s.key, s.ip, r.name, r.is_confirmed AS isConfirmed FROM
      (SELECT key, ${IP} AS ip FROM dmarc_sources WHERE domain = ? AND key > ? ORDER BY key LIMIT ?) s
      LEFT JOIN dmarc_reverse_names r ON r.ip = s.ip ORDER BY s.key`,
  ),
  reverseNamesDue: rows<{ ip: string }, [number, number]>(
    "SELECT ip FROM dmarc_reverse_names WHERE due_at_ms < ? ORDER BY due_at_ms LIMIT ?",
  ),
  addresses: rows<{ number: number; ip: string | null }, [number, number]>(
    `SELECT number, ${IP} AS ip FROM dmarc_sources WHERE number > ? ORDER BY number LIMIT ?`,
  ),
  removeReverseName: "DELETE FROM dmarc_reverse_names WHERE ip = ? AND due_at_ms < ?",
};

/** Finds and removes names, classifications and reverse names that nothing refers to any more, a few at a time. */
export class NameRetentionStore {
  readonly #sql;

  constructor(db: Db) {
    this.#sql = sqlStatements(db, NAME_STATEMENTS);
  }

  /** header_from domains after one, in their order, that were first seen before a day. */
  namesBefore(domain: number, after: string, day: number, limit: number): string[] {
    return this.#sql.namesBefore.all(domain, after, day, limit).map(({ name }) => name);
  }

  /** Whether anything is counted under a header_from domain. */
  isCounted(domain: number, name: string): boolean {
    return this.#sql.isCounted.get(domain, name) !== null;
  }

  removeName(_tx: Tx, domain: number, name: string): void {
    this.#sql.removeName.run(domain, name);
  }

  /** Keys after one, in their order, that the user classified before a time. */
  classifiedBefore(domain: number, after: string, beforeMs: number, limit: number): string[] {
    return this.#sql.classifiedBefore.all(domain, after, beforeMs, limit).map(({ key }) => key);
  }

  /** Removes a classification from before a time. */
  removeClassification(_tx: Tx, domain: number, key: string, beforeMs: number): void {
    this.#sql.removeClassification.run(domain, key, beforeMs);
  }

  /** Sources of a domain after a key with their addresses, in the order of their keys. */
  sourcesAfter(domain: number, after: string, limit: number) {
    return this.#sql.sources.all(domain, after, limit).map(({ key, ip, name, isConfirmed }) => ({
      key,
      address: ip === null ? null : { ip, name, isConfirmed: isConfirmed === 1 },
    }));
  }

  /** Addresses whose reverse names are due for another lookup before a time, the earliest first. */
  reverseNamesDue(beforeMs: number, limit: number): string[] {
    return this.#sql.reverseNamesDue.all(beforeMs, limit).map(({ ip }) => ip);
  }

  /** The addresses of sources of all domains after one, in the order of their numbers. */
  addressesAfter(number: number, limit: number): { number: number; ip: string | null }[] {
    return this.#sql.addresses.all(number, limit);
  }

  /** Removes a reverse name, unless it was looked up meanwhile. */
  removeReverseName(_tx: Tx, ip: string, beforeMs: number): void {
    this.#sql.removeReverseName.run(ip, beforeMs);
  }
}
