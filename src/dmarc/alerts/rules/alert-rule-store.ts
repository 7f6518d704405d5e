import type { DayRange } from "../../../foundation/base/days.ts";
import { OF_ENABLED_ACCOUNT } from "../../../foundation/db/statements.ts";
import type { Db, Tx } from "../../../foundation/db/open.ts";
import { ReporterStore, decidingVouchers } from "../../records/domains/reporter-store.ts";
import {
  parsePublishedPolicy,
  parseTlsReportBody,
  type PublishedPolicy,
  type TlsReportBody,
} from "../../reports/report/report.ts";
import type { DmarcAlertRow } from "../../records/domains/alert-store.ts";
import type { DomainOwner, DomainRow } from "../../records/domains/domain-store.ts";

/** A name in From that was not reviewed yet. */
interface UnreviewedName {
  readonly name: string;
  readonly firstDay: number;
}

/** The mail of one stored source on one day. */
export interface SourceDay extends DayMail {
  readonly source: number;
}

interface NameDay {
  readonly name: string;
  readonly day: number;
  readonly messages: number;
  readonly aligned: number;
}

/** A policy that a reporter found on a day, by trusted reports. */
export interface ReportedPolicy {
  /** The reporter's name in lower case; empty when it has none. */
  readonly reporter: string;
  readonly day: number;
  readonly beginMs: number;
  readonly endMs: number;
  readonly policy: PublishedPolicy;
}

/** A trusted TLS report. */
export interface StoredTlsReport {
  readonly org: string | null;
  readonly beginMs: number | null;
  readonly endMs: number | null;
  readonly receivedAtMs: number;
  readonly policies: TlsReportBody["policies"];
}

/** A domain with the recipients of its alerts. */
type AudienceDomain = Pick<DomainRow, "number" | "accountId" | "mode" | "recipients" | "webhookUrl">;
type StoredAlert = Pick<DmarcAlertRow, "id" | "body">;
/** Alerts of other domains that are read for one review. */
const ELSEWHERE_MAX = 200;

/** A live domain without reports since `lastReportAtMs`. */
export interface SilentDomain {
  readonly number: number;
  readonly lastReportAtMs: number;
}

/** Vouchers of the unknown reporters whose counts are far above all others since now, and of those that are no longer so. */
export interface ReporterMarks {
  readonly excessive: readonly number[];
  readonly ended: readonly number[];
}

/** Of a source `s`: a deciding report (2) of an unknown reporter names it. */
const NAMED_BY_UNKNOWN = `EXISTS (SELECT 1 FROM dmarc_weekly w WHERE w.domain = s.domain AND w.source = s.number AND w.is_trusted > 1
  AND w.is_trusted IN (SELECT value FROM json_each(?2)))`;
/** Rules read fewer days than these. */
const REPORTED_DAYS_MAX = 100;
const POLICIES_MAX = 5_000;
/** TLS reports of one review, the newest ones. */
const TLS_REPORTS_MAX = 500;
const TLS_SUBJECTS_MAX = 1_000;

/**
 * What the alert rules read and write. `domain` is always the `number` of a domain. With `trustedOnly`, sums by day are of the reports
 * only on which decisions rely (`decidingVouchers`); policies and TLS reports always are.
 */
export class AlertRuleStore {
  readonly #sqlite: Db["sqlite"];
  readonly #trustedOnly: boolean;
  /** Restricts daily sums to trusted reports. */
  readonly #trust: string;
  readonly #reporters: ReporterStore;

  constructor({ sqlite }: Pick<Db, "sqlite">, { trustedOnly = false }: { readonly trustedOnly?: boolean } = {}) {
    this.#sqlite = sqlite;
    this.#trustedOnly = trustedOnly;
    this.#trust = trustedOnly ? " AND is_trusted IN (SELECT value FROM json_each(?5))" : " AND ?5 IS NOT NULL";
    this.#reporters = new ReporterStore({ sqlite });
  }

  /**
   * The newest alerts of a rule about the other domains of the account whose alerts go to the same recipients and webhook. `body` is that
   * of a stored alert.
   */
  alertsElsewhere(domain: AudienceDomain, rule: string, sinceMs: number): readonly StoredAlert[] {
    const { accountId, mode, number, recipients, webhookUrl } = domain;
    return this.#sqlite
      .query<StoredAlert, [string, string, number, string, string | null, string, number]>(
        `SELECT a.id, a.body FROM dmarc_domains d CROSS JOIN dmarc_alerts a INDEXED BY dmarc_alerts_by_subject ON a.domain = d.number
          WHERE d.account_id = ?1 AND d.mode = ?2 AND d.number <> ?3 AND d.deleted_at_ms IS NULL AND d.recipients = ?4
            AND d.webhook_url IS ?5 AND a.rule = ?6 AND a.at_ms >= ?7 ORDER BY a.at_ms DESC LIMIT ${ELSEWHERE_MAX}`,
      )
      .all(accountId, mode, number, JSON.stringify(recipients), webhookUrl, rule, sinceMs);
  }

  /** Domains for which reports arrived since the last review, after the number `after`. */
  unreviewedDomains(after: number, limit: number): number[] {
    return this.#sqlite
      .query<{ number: number }, [number, number]>(
        `SELECT number FROM dmarc_domains WHERE is_unreviewed = 1 AND deleted_at_ms IS NULL AND number > ? AND ${OF_ENABLED_ACCOUNT}
          ORDER BY number LIMIT ?`,
      )
      .all(after, limit)
      .map(({ number }) => number);
  }

  clearUnreviewed(_tx: Tx, domain: number): void {
    this.#sqlite.query("UPDATE dmarc_domains SET is_unreviewed = 0 WHERE number = ?").run(domain);
  }

  /** Numbers of the stored sources that were not reviewed yet; with `trustedOnly`, of those that the reports in use name. */
  unreviewedSources(domain: number): number[] {
    const vouched = this.#trustedOnly ? `AND (is_vouched = 1 OR ${NAMED_BY_UNKNOWN})` : "AND ?2 IS NOT NULL";
    return this.#sqlite
      .query<{ number: number }, [number, string]>(
        `SELECT number FROM dmarc_sources s WHERE domain = ?1 AND is_reviewed = 0 ${vouched}`,
      )
      .all(domain, this.#deciding(domain))
      .map(({ number }) => number);
  }

  markSources(_tx: Tx, numbers: readonly number[]): void {
    this.#sqlite
      .query("UPDATE dmarc_sources SET is_reviewed = 1 WHERE number IN (SELECT value FROM json_each(?))")
      .run(JSON.stringify(numbers));
  }

  /** The mail of some stored sources by day; with null, of all. */
  sourceDays(domain: number, { fromDay, toDay }: DayRange, among: readonly number[] | null): SourceDay[] {
    const condition = among === null ? "?4 IS NOT NULL" : "source IN (SELECT value FROM json_each(?4))";
    return this.#sqlite
      .query<SourceDay, [number, number, number, string, string]>(
        `SELECT source, day, sum(messages) messages, sum(aligned) aligned, sum(forwarded) forwarded FROM dmarc_daily
          WHERE domain = ?1 AND day BETWEEN ?2 AND ?3 AND ${condition}${this.#trust} GROUP BY day, source`,
      )
      .all(domain, fromDay, toDay, JSON.stringify(among ?? []), this.#deciding(domain));
  }

  /** The names that were not reviewed yet, those with the most mail in the range first. */
  unreviewedNames(domain: number, { fromDay, toDay }: DayRange, limit: number): UnreviewedName[] {
    return this.#sqlite
      .query<UnreviewedName, [number, number, number, number]>(
        `SELECT name, first_day firstDay FROM dmarc_names
          LEFT JOIN (SELECT name named, total(messages) messages FROM dmarc_daily_names
            WHERE domain = ?1 AND day BETWEEN ?2 AND ?3 GROUP BY name) ON named = name
          WHERE domain = ?1 AND is_reviewed = 0 ORDER BY messages DESC, name LIMIT ?4`,
      )
      .all(domain, fromDay, toDay, limit);
  }

  markNames(_tx: Tx, domain: number, names: readonly string[]): void {
    this.#sqlite
      .query("UPDATE dmarc_names SET is_reviewed = 1 WHERE domain = ? AND name IN (SELECT value FROM json_each(?))")
      .run(domain, JSON.stringify(names));
  }

  /** Marks unknown reporters, by their vouchers, as ones whose counts are far above all others, or no longer. */
  markReporters(tx: Tx, { excessive, ended }: ReporterMarks, atMs: number): void {
    for (const voucher of excessive) this.#reporters.setExcessive(tx, voucher, atMs);
    for (const voucher of ended) this.#reporters.setExcessive(tx, voucher, null);
  }

  nameDays(domain: number, { fromDay, toDay }: DayRange, names: readonly string[]): NameDay[] {
    return this.#sqlite
      .query<NameDay, [number, number, number, string, string]>(
        `SELECT name, day, sum(messages) messages, sum(aligned) aligned FROM dmarc_daily_names
          WHERE domain = ?1 AND day BETWEEN ?2 AND ?3 AND name IN (SELECT value FROM json_each(?4))${this.#trust}
          GROUP BY day, name`,
      )
      .all(domain, fromDay, toDay, JSON.stringify(names), this.#deciding(domain));
  }

  /** The days of a range that reports are about, the last ones of very many. */
  reportedDays(domain: number, { fromDay, toDay }: DayRange): number[] {
    return this.#sqlite
      .query<{ day: number }, [number, number, number, number, string]>(
        `SELECT DISTINCT day FROM dmarc_daily_reporters WHERE domain = ?1 AND day BETWEEN ?2 AND ?3${this.#trust}
          ORDER BY day DESC LIMIT ?4`,
      )
      .all(domain, fromDay, toDay, REPORTED_DAYS_MAX, this.#deciding(domain))
      .map(({ day }) => day);
  }

  /** Active live domains that are not declared to send no mail, whose last report arrived at `beforeMs` or earlier, and that were not alerted since. */
  silentDomains(after: number, beforeMs: number, limit: number): SilentDomain[] {
    return this.#sqlite
      .query<SilentDomain, [number, number, number]>(
        `SELECT number, last_report_at_ms lastReportAtMs FROM dmarc_domains d
          WHERE number > ? AND last_report_at_ms <= ? AND mode = 'live' AND status = 'active' AND monitoring_enabled = 1
            AND sends_mail IS NOT 0 AND deleted_at_ms IS NULL AND ${OF_ENABLED_ACCOUNT}
            AND NOT EXISTS (SELECT 1 FROM dmarc_alerts a WHERE a.domain = d.number AND a.rule = 'reports_stopped'
              AND a.subject = date(d.last_report_at_ms / 1000, 'unixepoch'))
          ORDER BY number LIMIT ?`,
      )
      .all(after, beforeMs, limit);
  }

  /** The policies that reporters found at `name` in a range of days, the newest day first. */
  reportedPolicies(domain: number, { fromDay, toDay }: DayRange, name: string): ReportedPolicy[] {
    // A space in `sameness` stands before the author of a report that is not trusted.
    return this.#sqlite
      .query<Omit<ReportedPolicy, "policy"> & { policy: string }, [number, number, number, string, number, string]>(
        `SELECT lower(coalesce(org, '')) reporter, day, min(begin_ms) beginMs, max(end_ms) endMs, policy
          FROM dmarc_reports
          WHERE domain = ?1 AND day BETWEEN ?2 AND ?3 AND is_complete = 1 AND policy_domain = ?4 AND instr(sameness, ' ') = 0
            AND voucher IN (SELECT value FROM json_each(?6))
          GROUP BY day, reporter, policy ORDER BY day DESC LIMIT ?5`,
      )
      .all(domain, fromDay, toDay, name, POLICIES_MAX, this.#deciding(domain))
      .map((row) => ({ ...row, policy: parsePublishedPolicy(row.policy) }));
  }

  /** Subjects of the policy lapses that were alerted since. */
  alertedLapses(domain: number, sinceMs: number): string[] {
    return this.#sqlite
      .query<{ subject: string }, [number, number]>(
        `SELECT subject FROM dmarc_alerts
          WHERE domain = ? AND rule = 'policy_weakened' AND subject GLOB 'reports:*' AND at_ms >= ?`,
      )
      .all(domain, sinceMs)
      .map(({ subject }) => subject);
  }

  /** The TLS reports on which decisions rely that arrived since. */
  tlsReportsSince(domain: number, sinceMs: number): StoredTlsReport[] {
    return this.#sqlite
      .query<Omit<StoredTlsReport, "policies"> & { body: string }, [number, number, number, string]>(
        `SELECT org, begin_ms beginMs, end_ms endMs, received_at_ms receivedAtMs, body
          FROM (SELECT * FROM dmarc_tls_reports WHERE domain = ?1 AND instr(sameness, ' ') = 0
            AND voucher IN (SELECT value FROM json_each(?4)) ORDER BY id DESC LIMIT ?2)
          WHERE received_at_ms >= ?3`,
      )
      .all(domain, TLS_REPORTS_MAX, sinceMs, this.#deciding(domain))
      .map(({ body, ...report }) => ({ ...report, policies: parseTlsReportBody(body).policies }));
  }

  /** The last alert about each subject of the rule `tls_failures`. */
  lastTlsAlerts(domain: number): { readonly subject: string; readonly body: string }[] {
    return this.#sqlite
      .query<{ subject: string; body: string }, [number, number]>(
        `SELECT subject, max(at_ms) atMs, body FROM dmarc_alerts WHERE domain = ? AND rule = 'tls_failures'
          GROUP BY subject ORDER BY 2 DESC LIMIT ?`,
      )
      .all(domain, TLS_SUBJECTS_MAX);
  }

  /** The vouchers whose reports decide, as JSON. */
  #deciding(domain: number) {
    return JSON.stringify(decidingVouchers(this.#reporters.ofDomain(domain)));
  }
}

/** Messages of one day; days are whole days since 1970 (UTC). */
export interface DayMail {
  readonly day: number;
  readonly messages: number;
  readonly aligned: number;
  /** Not aligned, but recognized as forwarded by the receiver. */
  readonly forwarded: number;
}

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
            AND iif(?6 IS NULL, d.monitoring_enabled = 1, d.number IN (SELECT value FROM json_each(?6)))
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
