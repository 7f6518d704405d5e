import type { Db, Tx } from "../../db/open.ts";
import type { IngestionResult, IngestionOwner } from "./ingestion-store.ts";

/** Where a walk through the ingestions by age stands. */
export interface AgeCursor {
  readonly receivedAtMs: number;
  readonly rowid: number;
}

/** An ingestion whose bytes are kept. */
export interface RawHolder extends AgeCursor {
  readonly id: string;
  readonly domain: number | null;
  /** The JSON of what was found in it. */
  readonly findings: string | null;
}

/** An ingestion as far as removing a domain needs to know it. */
export interface OwnedIngestion {
  readonly id: string;
  readonly domain: number | null;
  readonly isPending: 0 | 1;
  /** The JSON of what was found in it; null while pending. */
  readonly findings: string | null;
}

/** Removals that concern one domain; each removes up to `limit` rows and answers how many. */
type Removal = (number: number, limit: number) => number;

/** Statements that remove old data, a limited number of rows at a time. */
export const createRetentionStore = ({ sqlite }: Db) => {
  const prepare = (sql: string) => sqlite.prepare(sql);

  /** What of a domain lies before a day, or a time, by table. `day` and `id` are indexed with the domain. */
  const before = (table: string, condition: string) =>
    prepare(
      `DELETE FROM ${table} WHERE rowid IN (SELECT rowid FROM ${table} WHERE domain = ? AND ${condition} LIMIT ?)`,
    );
  const byDay = ["dmarc_records", "dmarc_daily", "dmarc_daily_reporters", "dmarc_daily_names", "dmarc_reports"].map(
    (table) => before(table, "day < ?"),
  );
  const oldFailures = before("dmarc_failure_reports", "received_at_ms < ?");
  const oldTls = before("dmarc_tls_reports", "received_at_ms < ?");
  const byTime = [before("dmarc_alerts", "at_ms < ?"), before("dmarc_history", "at_ms < ?")];

  const ofDomain = (table: string, column = "domain"): Removal => {
    const statement = prepare(
      `DELETE FROM ${table} WHERE rowid IN (SELECT rowid FROM ${table} WHERE ${column} = ? LIMIT ?)`,
    );
    return (number, limit) => statement.run(number, limit).changes;
  };

  const holders = sqlite.prepare<RawHolder, [number, number, number, number]>(
    `SELECT rowid, id, domain, received_at_ms AS receivedAtMs, findings FROM dmarc_ingestions
      WHERE has_raw = 1 AND (received_at_ms, rowid) > (?, ?) AND received_at_ms < ? AND status = 'done'
      ORDER BY received_at_ms, rowid LIMIT ?`,
  );
  const dropRaw = prepare("DELETE FROM dmarc_raw WHERE ingestion = ?");
  const noteRawGone = prepare("UPDATE dmarc_ingestions SET has_raw = 0 WHERE id = ?");
  const dropIngestion = prepare("DELETE FROM dmarc_ingestions WHERE id = ?");
  const dropOldIngestion = prepare("DELETE FROM dmarc_ingestions WHERE id = ? AND status = 'done' AND has_raw = 0");
  const detachIngestion = prepare("UPDATE dmarc_ingestions SET domain = NULL WHERE id = ?");
  const conclude = prepare("UPDATE dmarc_ingestions SET outcome = ?, reason = ?, findings = ? WHERE id = ?");
  const oldIngestions = sqlite.prepare<AgeCursor & { id: string; isHeld: 0 | 1 }, [number, number, number, number]>(
    `SELECT rowid, id, received_at_ms AS receivedAtMs, status <> 'done' OR has_raw = 1 AS isHeld FROM dmarc_ingestions
      WHERE (received_at_ms, rowid) > (?, ?) AND received_at_ms < ? ORDER BY received_at_ms, rowid LIMIT ?`,
  );
  const ingestionsOf = sqlite.prepare<OwnedIngestion, [string, string, string, number]>(
    `SELECT id, domain, status = 'pending' AS isPending, findings FROM dmarc_ingestions
      WHERE account_id = ? AND mode = ? AND id > ? ORDER BY id LIMIT ?`,
  );
  const sources = sqlite.prepare<{ number: number; key: string; lastDay: number }, [number, string, number]>(
    "SELECT number, key, last_day AS lastDay FROM dmarc_sources WHERE domain = ? AND key > ? ORDER BY key LIMIT ?",
  );
  const dropOldSource = prepare("DELETE FROM dmarc_sources WHERE number = ? AND last_day < ?");
  const alerts = sqlite.prepare<{ id: string }, [number, number]>(
    "SELECT id FROM dmarc_alerts WHERE domain = ? ORDER BY id LIMIT ?",
  );
  const dropAlertMails = prepare("DELETE FROM dmarc_alert_mails WHERE alert = ?");
  const dropAlert = prepare("DELETE FROM dmarc_alerts WHERE id = ?");
  const domains = sqlite.prepare<{ number: number; id: string; retentionDays: number; rawRetentionDays: number }, []>(
    `SELECT number, id, retention_days AS retentionDays, raw_retention_days AS rawRetentionDays
      FROM dmarc_domains WHERE deleted_at_ms IS NULL ORDER BY number`,
  );

  const removals: readonly Removal[] = [
    ofDomain("dmarc_records"),
    ofDomain("dmarc_reports"),
    ofDomain("dmarc_tls_reports"),
    ofDomain("dmarc_failure_reports"),
    ofDomain("dmarc_daily"),
    ofDomain("dmarc_daily_reporters"),
    ofDomain("dmarc_daily_names"),
    ofDomain("dmarc_report_authors"),
    ofDomain("dmarc_names"),
    ofDomain("dmarc_source_words"),
    ofDomain("dmarc_history"),
    ofDomain("dmarc_sources"),
    ofDomain("dmarc_health"),
    (number, limit) => {
      const some = alerts.all(number, limit);
      for (const { id } of some) {
        dropAlertMails.run(id);
        dropAlert.run(id);
      }
      return some.length;
    },
  ];

  return {
    /** The domains that are there, with how many days they keep reports and bytes. */
    domains: () => domains.all(),
    /** Ingestions received before a time whose bytes are kept, the oldest first. */
    holders: (after: AgeCursor, beforeMs: number, limit: number): RawHolder[] =>
      holders.all(after.receivedAtMs, after.rowid, beforeMs, limit),
    /** Removes the bytes of an ingestion; it stays on the list. */
    removeRaw(_tx: Tx, id: string): void {
      dropRaw.run(id);
      noteRawGone.run(id);
    },
    /** Removes some of what a domain has about days before `day`: records before their report. */
    removeBeforeDay(_tx: Tx, domain: number, day: number, limit: number): number {
      let left = limit;
      for (const statement of byDay) if (left > 0) left -= statement.run(domain, day, left).changes;
      return limit - left;
    },
    /** Removes some TLS reports of a domain that arrived before a time. */
    removeTlsBefore: (_tx: Tx, domain: number, beforeMs: number, limit: number): number =>
      oldTls.run(domain, beforeMs, limit).changes,
    /** Removes some failure reports of a domain that arrived before a time. */
    removeFailuresBefore: (_tx: Tx, domain: number, beforeMs: number, limit: number): number =>
      oldFailures.run(domain, beforeMs, limit).changes,
    /** Removes some alerts and some history of a domain from before a time. */
    removeHappenings: (_tx: Tx, domain: number, beforeMs: number, limit: number): number =>
      byTime.reduce((sum, statement) => sum + statement.run(domain, beforeMs, limit).changes, 0),
    /** Some sources of a domain, in the order of their keys, after one. */
    sourcesAfter: (domain: number, key: string, limit: number) => sources.all(domain, key, limit),
    /** Removes a source unless it was seen on `day` or later. */
    removeSource: (_tx: Tx, { number }: { readonly number: number }, day: number): void =>
      void dropOldSource.run(number, day),
    /** Ingestions received before a time, the oldest first, and whether they are still to be read or have bytes. */
    ingestionsBefore: (after: AgeCursor, beforeMs: number, limit: number) =>
      oldIngestions.all(after.receivedAtMs, after.rowid, beforeMs, limit),
    /** Takes an ingestion off the list, unless it is to be read again. */
    removeOldIngestion: (_tx: Tx, id: string): void => void dropOldIngestion.run(id),
    /** Ingestions of an owner after one, in the order of their ids. */
    ingestionsOf: ({ accountId, mode }: IngestionOwner, after: string, limit: number): OwnedIngestion[] =>
      ingestionsOf.all(accountId, mode, after, limit),
    /** Removes an ingestion with its bytes. */
    removeIngestion(_tx: Tx, id: string): void {
      dropRaw.run(id);
      dropIngestion.run(id);
    },
    /** Leaves an ingestion to its account: the domain whose address it came to goes. */
    detachIngestion: (_tx: Tx, id: string): void => void detachIngestion.run(id),
    /** Changes what was found in an ingestion. */
    conclude: (_tx: Tx, id: string, { outcome, reason, findings }: Omit<IngestionResult, "finishedAtMs">): void =>
      void conclude.run(outcome, reason, JSON.stringify(findings), id),
    /** Removes some of all that a domain has, but for what came in; 0 when nothing of it is left but its own row. */
    removeOfDomain(_tx: Tx, domain: number, limit: number): number {
      let left = limit;
      for (const remove of removals) if (left > 0) left -= remove(domain, left);
      return limit - left;
    },
  };
};

export type RetentionStore = ReturnType<typeof createRetentionStore>;
