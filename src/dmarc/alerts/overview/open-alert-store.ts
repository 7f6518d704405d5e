import type { Db, Tx } from "../../../foundation/db/open.ts";
import type { DomainOwner } from "../../records/domains/domain-store.ts";
import type { AlertRule } from "../../records/domains/raise.ts";

/** An alert with what decides whether it is still open. */
export interface RecentAlert {
  readonly id: string;
  readonly rule: string;
  readonly subject: string;
  readonly atMs: number;
  /** The JSON text of `{ summary, data }`. */
  readonly body: string;
  readonly acknowledgedAtMs: number | null;
  /** The `number` of the domain. */
  readonly number: number;
  readonly domainId: string;
  readonly domain: string;
  /** The stored state of the domain, as JSON. */
  readonly state: string | null;
  readonly lastReportAtMs: number | null;
}

export interface RecentQuery {
  readonly rules: readonly AlertRule[];
  readonly sinceMs: number;
  readonly limit: number;
  /** The numbers of the domains; null for all of the owner's that are not paused. */
  readonly domains: readonly number[] | null;
}

/** Alerts across the domains of an owner. */
export class OpenAlertStore {
  readonly #sqlite: Db["sqlite"];

  constructor({ sqlite }: Pick<Db, "sqlite">) {
    this.#sqlite = sqlite;
  }

  /** Newest first. */
  recent({ accountId, mode }: DomainOwner, { rules, sinceMs, limit, domains }: RecentQuery): RecentAlert[] {
    // One walk of the index for each domain is faster than one for each rule.
    return this.#sqlite
      .query<RecentAlert, [string, string, string, number, number, string | null]>(
        `SELECT a.id, a.rule, a.subject, a.at_ms atMs, a.body, a.acknowledged_at_ms acknowledgedAtMs, d.number, d.id domainId,
          d.domain, d.state, d.last_report_at_ms lastReportAtMs
          FROM dmarc_domains d CROSS JOIN dmarc_alerts a INDEXED BY dmarc_alerts_by_subject
            ON a.domain = d.number AND +a.rule IN (SELECT value FROM json_each(?3)) AND a.at_ms >= ?4
          WHERE d.account_id = ?1 AND d.mode = ?2 AND d.deleted_at_ms IS NULL
            AND iif(?6 IS NULL, d.monitoring_enabled = 1, d.number IN (SELECT value FROM json_each(?6)))
          ORDER BY a.at_ms DESC, a.id DESC LIMIT ?5`,
      )
      .all(accountId, mode, JSON.stringify(rules), sinceMs, limit, domains && JSON.stringify(domains));
  }

  /** The keys of the sources that the user classified, as `<number of the domain> <key>`. */
  classifiedSources(domains: readonly number[]): ReadonlySet<string> {
    const rows = this.#sqlite
      .query<{ domain: number; key: string }, [string]>(
        "SELECT domain, key FROM dmarc_source_words WHERE domain IN (SELECT value FROM json_each(?))",
      )
      .all(JSON.stringify(domains));
    return new Set(rows.map(({ domain, key }) => `${domain} ${key}`));
  }

  /** Unknown reporters that nobody accepted and whose counts are far above all others, as `<number of the domain> <reporter>`. */
  excessiveReporters(domains: readonly number[]): ReadonlySet<string> {
    const rows = this.#sqlite
      .query<{ domain: number; author: string }, [string]>(
        `SELECT r.domain, r.author FROM dmarc_reporters r JOIN dmarc_domains d ON d.number = r.domain
          WHERE r.domain IN (SELECT value FROM json_each(?)) AND r.is_known = 0 AND r.excessive_since_ms IS NOT NULL
            AND NOT EXISTS (SELECT 1 FROM dmarc_accepted_reporters a
              WHERE a.account_id = d.account_id AND a.mode = d.mode AND a.author = r.author)`,
      )
      .all(JSON.stringify(domains));
    return new Set(rows.map(({ domain, author }) => `${domain} ${author}`));
  }

  /** False when the domain has no such alert. An alert that was acknowledged keeps its time. */
  acknowledge(_tx: Tx, domain: number, id: string, atMs: number): boolean {
    const { changes } = this.#sqlite
      .query("UPDATE dmarc_alerts SET acknowledged_at_ms = coalesce(acknowledged_at_ms, ?) WHERE domain = ? AND id = ?")
      .run(atMs, domain, id);
    return changes > 0;
  }
}
