import type { DayRange } from "../../../foundation/base/days.ts";
import type { Steps } from "../../../foundation/base/in-steps.ts";
import { OF_ENABLED_ACCOUNT } from "../../../foundation/db/statements.ts";
import type { Db, Tx } from "../../../foundation/db/open.ts";
import { readDays } from "../../insight/sources/day-steps.ts";
import { ReporterStore, decidingVouchers } from "../../records/domains/reporter-store.ts";
import {
  parsePublishedPolicy,
  parseTlsReportBody,
  type PublishedPolicy,
  type TlsReportBody,
} from "../../reports/report/report.ts";
import type { DmarcAlertRow } from "../../records/domains/alert-store.ts";
import type { DomainRow } from "../../records/domains/domain-store.ts";

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
/** Of `is_unreviewed`, which is 0 or 1 otherwise. A review that a crash ended is begun again. */
const IN_REVIEW = 2;
/** TLS reports of one review, the newest ones. */
const TLS_REPORTS_MAX = 500;
const TLS_SUBJECTS_MAX = 1_000;

/**
 * What the alert rules read and write. `domain` is always the `number` of a domain. With `trustedOnly`, sums by day are of the reports
 * only on which decisions rely (`decidingVouchers`); policies and TLS reports always are.
 */
export class AlertRuleStore {
  readonly #sqlite: Db["sqlite"];
  /** Restricts daily sums to trusted reports. */
  readonly #trust: string;
  /** The sources that were not reviewed yet, of domain 1. */
  readonly #unreviewed: string;
  readonly #reporters: ReporterStore;

  constructor({ sqlite }: Pick<Db, "sqlite">, { trustedOnly = false }: { readonly trustedOnly?: boolean } = {}) {
    this.#sqlite = sqlite;
    this.#trust = trustedOnly ? " AND is_trusted IN (SELECT value FROM json_each(?5))" : " AND ?5 IS NOT NULL";
    const vouched = trustedOnly ? `AND (is_vouched = 1 OR ${NAMED_BY_UNKNOWN})` : "AND ?2 IS NOT NULL";
    this.#unreviewed = `FROM dmarc_sources s WHERE domain = ?1 AND is_reviewed = 0 ${vouched}`;
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
        `SELECT number FROM dmarc_domains WHERE is_unreviewed <> 0 AND deleted_at_ms IS NULL AND number > ? AND ${OF_ENABLED_ACCOUNT}
          ORDER BY number LIMIT ?`,
      )
      .all(after, limit)
      .map(({ number }) => number);
  }

  /** Marks a domain that is about to be reviewed: a report that arrives during that takes the mark away. */
  beginReview(_tx: Tx, domain: number): void {
    this.#sqlite.query(`UPDATE dmarc_domains SET is_unreviewed = ${IN_REVIEW} WHERE number = ?`).run(domain);
  }

  /** Ends the review of a domain: unless a report arrived meanwhile, or with `isPending`, it need not be reviewed again. */
  endReview(_tx: Tx, domain: number, isPending: boolean): void {
    this.#sqlite
      .query(`UPDATE dmarc_domains SET is_unreviewed = ? WHERE number = ? AND is_unreviewed = ${IN_REVIEW}`)
      .run(isPending ? 1 : 0, domain);
  }

  /** Numbers of the stored sources that were not reviewed yet; with `trustedOnly`, of those that the reports in use name. */
  unreviewedSources(domain: number): number[] {
    return this.#sqlite
      .query<{ number: number }, [number, string]>(`SELECT number ${this.#unreviewed}`)
      .all(domain, this.#deciding(domain))
      .map(({ number }) => number);
  }

  /**
   * Whether one of them need not wait for a reverse name: its address was looked up, it has no single address, or it was first seen at
   * `seenByMs` or earlier.
   */
  hasReviewable(domain: number, seenByMs: number): boolean {
    return (
      this.#sqlite
        .query<unknown, [number, string, number]>(
          `SELECT 1 ${this.#unreviewed} AND (first_seen_at_ms <= ?3 OR key LIKE '*%' OR EXISTS (SELECT 1 FROM dmarc_reverse_names
            WHERE ip = substr(key, 1, instr(key, ' ') - 1) AND asked_at_ms IS NOT NULL)) LIMIT 1`,
        )
        .get(domain, this.#deciding(domain), seenByMs) !== null
    );
  }

  markSources(_tx: Tx, numbers: readonly number[]): void {
    this.#sqlite
      .query("UPDATE dmarc_sources SET is_reviewed = 1 WHERE number IN (SELECT value FROM json_each(?))")
      .run(JSON.stringify(numbers));
  }

  /** The mail of some stored sources by day; with null of all, or of all on the days on which some of it was aligned. */
  sourceDays(domain: number, range: DayRange, among: readonly number[] | "aligned" | null): Steps<SourceDay[]> {
    const isSome = among !== null && among !== "aligned";
    const all = among === null ? "?4 IS NOT NULL" : "aligned > 0 AND ?4 IS NOT NULL";
    const condition = isSome ? "source IN (SELECT value FROM json_each(?4))" : all;
    const statement = this.#sqlite.query<SourceDay, [number, number, number, string, string]>(
      `SELECT source, day, sum(messages) messages, sum(aligned) aligned, sum(forwarded) forwarded FROM dmarc_daily
        WHERE domain = ?1 AND day BETWEEN ?2 AND ?3 AND ${condition}${this.#trust} GROUP BY day, source`,
    );
    const [numbers, deciding] = [JSON.stringify(isSome ? among : []), this.#deciding(domain)];
    return readDays(range, ({ fromDay, toDay }) => statement.all(domain, fromDay, toDay, numbers, deciding));
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
