import type { Db, Tx } from "../../../foundation/db/open.ts";
import type { DomainOwner } from "../../records/domains/domain-store.ts";

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

interface RecentQuery {
  readonly rules: readonly string[];
  readonly sinceMs: number;
  readonly limit: number;
  /** The numbers of the domains; null for all of the owner's that are not paused. */
  readonly domains: readonly number[] | null;
}

/** Alerts in a time. */
export interface AlertChanges {
  readonly raised: number;
  readonly acknowledged: number;
}

/** Alerts across the domains of an owner. */
export class OpenAlertStore {
  constructor(private readonly deps: Pick<Db, "sqlite">) {}

  /** Newest first. */
  recent({ accountId, mode }: DomainOwner, { rules, sinceMs, limit, domains }: RecentQuery): RecentAlert[] {
    // One walk of the index for each domain is faster than one for each rule.
    return this.deps.sqlite
      .query<RecentAlert, [string, string, string, number, number, string | null]>(
        `SELECT a.id, a.rule, a.subject, a.at_ms atMs, a.body, a.acknowledged_at_ms acknowledgedAtMs, d.number, d.id domainId,
          d.domain, d.state, d.last_report_at_ms lastReportAtMs
          FROM dmarc_domains d CROSS JOIN dmarc_alerts a INDEXED BY dmarc_alerts_by_subject
            ON a.domain = d.number AND +a.rule IN (SELECT value FROM json_each(?3)) AND a.at_ms >= ?4
          WHERE d.account_id = ?1 AND d.mode = ?2 AND d.deleted_at_ms IS NULL
            AND ${domains === null ? "d.monitoring_enabled = 1 AND ?6 IS NULL" : "d.number IN (SELECT value FROM json_each(?6))"}
          ORDER BY a.at_ms DESC, a.id DESC LIMIT ?5`,
      )
      .all(accountId, mode, JSON.stringify(rules), sinceMs, limit, domains && JSON.stringify(domains));
  }

  /** How many alerts of monitored domains were raised and how many were acknowledged since a time, of those raised after `fromMs`. */
  changes(
    { accountId, mode }: DomainOwner,
    { sinceMs, fromMs }: Readonly<Record<"sinceMs" | "fromMs", number>>,
  ): AlertChanges {
    const row = this.deps.sqlite
      .query<AlertChanges, [string, string, number, number]>(
        `SELECT coalesce(sum(a.at_ms >= ?3), 0) raised, coalesce(sum(a.acknowledged_at_ms >= ?3), 0) acknowledged
          FROM dmarc_domains d CROSS JOIN dmarc_alerts a ON a.domain = d.number AND a.at_ms >= ?4
          WHERE d.account_id = ?1 AND d.mode = ?2 AND d.deleted_at_ms IS NULL AND d.monitoring_enabled = 1`,
      )
      .get(accountId, mode, sinceMs, fromMs);
    return row ?? { raised: 0, acknowledged: 0 };
  }

  /** The keys of the sources that the user classified, as `<number of the domain> <key>`. */
  classifiedSources(domains: readonly number[]): ReadonlySet<string> {
    const rows = this.deps.sqlite
      .query<{ domain: number; key: string }, [string]>(
        "SELECT domain, key FROM dmarc_source_words WHERE domain IN (SELECT value FROM json_each(?))",
      )
      .all(JSON.stringify(domains));
    return new Set(rows.map(({ domain, key }) => `${domain} ${key}`));
  }

  /** Unknown reporters that nobody accepted and whose counts are far above all others, as `<number of the domain> <reporter>`. */
  excessiveReporters(domains: readonly number[]): ReadonlySet<string> {
    const rows = this.deps.sqlite
      .query<{ domain: number; author: string }, [string]>(
        `SELECT r.domain, r.author FROM dmarc_reporters r JOIN dmarc_domains d ON d.number = r.domain
          WHERE r.domain IN (SELECT value FROM json_each(?)) AND r.is_known = 0 AND r.excessive_since_ms IS NOT NULL
            AND NOT EXISTS (SELECT 1 FROM dmarc_accepted_reporters a
              WHERE a.account_id = d.account_id AND a.mode = d.mode AND a.author = r.author)`,
      )
      .all(JSON.stringify(domains));
    return new Set(rows.map(({ domain, author }) => `${domain} ${author}`));
  }

  /** Domains whose MTA-STS policy this service serves, as `<number of the domain>`, and with the published id as `<number> <id>`. */
  hostedPolicies(domains: readonly number[]): ReadonlySet<string> {
    const rows = this.deps.sqlite
      .query<{ domain: number; id: string | null }, [string]>(
        "SELECT domain, published_id AS id FROM dmarc_mta_sts WHERE domain IN (SELECT value FROM json_each(?))",
      )
      .all(JSON.stringify(domains));
    return new Set(rows.flatMap(({ domain, id }) => [`${domain}`, `${domain} ${id ?? ""}`]));
  }

  /** False when the domain has no such alert. An alert that was acknowledged keeps its time. */
  acknowledge(_tx: Tx, domain: number, id: string, atMs: number): boolean {
    const { changes } = this.deps.sqlite
      .query("UPDATE dmarc_alerts SET acknowledged_at_ms = coalesce(acknowledged_at_ms, ?) WHERE domain = ? AND id = ?")
      .run(atMs, domain, id);
    return changes > 0;
  }
}
