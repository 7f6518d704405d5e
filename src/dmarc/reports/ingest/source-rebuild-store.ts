import type { Db, Tx } from "../../../foundation/db/open.ts";
import type { DomainRow } from "../../records/domains/domain-store.ts";
import type { RecordBody } from "../report/report.ts";
import type { ReportRow } from "../report/report-row.ts";
import { AUTHOR } from "./report-store.ts";
import type { CountedDay, Counts } from "./rollup.ts";
import { statements } from "../../../foundation/db/statements.ts";

/** The last source that a walk through the legacy sources has done. */
export interface LegacyCursor {
  readonly domain: number;
  readonly number: number;
}

/** A source that an earlier version stored, by what authenticated and not by address. */
export interface LegacySource extends LegacyCursor {
  /** The name of the domain. */
  readonly name: string;
  readonly mode: DomainRow["mode"];
  readonly firstDay: number;
  readonly lastDay: number;
  readonly firstSeenAtMs: number;
  readonly isReviewed: 0 | 1;
}

/** A record of such a source, and what its report says about how it was counted. */
export interface LegacyRecord extends Omit<ReportRow, keyof RecordBody> {
  readonly rowid: number;
  readonly day: number;
  readonly body: string;
  /** 0 when the report is not counted, or deleted. */
  readonly isComplete: 0 | 1;
  readonly voucher: number;
  readonly org: string | null;
  /** Empty for a trusted report: see `CountedReporter`. */
  readonly author: string;
  readonly messages: number;
  /** Alignment modes of the published policy. */
  readonly adkim: "r" | "s" | null;
  readonly aspf: "r" | "s" | null;
}

const RECORDS = `SELECT c.rowid, c.day, c.source_ip AS sourceIp, c.count, c.disposition, c.dkim, c.spf, c.header_from AS headerFrom, c.body,
  coalesce(r.is_complete, 0) AS isComplete, CASE WHEN instr(r.sameness, ' ') > 0 THEN 0 ELSE coalesce(r.voucher, 1) END AS voucher, r.org, coalesce(${AUTHOR}, '') AS author,
  coalesce(r.messages, 0) AS messages, r.policy ->> 'adkim' AS adkim, r.policy ->> 'aspf' AS aspf
  FROM dmarc_records c LEFT JOIN dmarc_reports r ON r.number = c.report WHERE c.source = ? LIMIT ?`;

/** First and last day on which a source (2) of a domain (1) is counted between two days (3, 4); day by day, as the index wants it. */
const COUNTED_DAYS = `WITH RECURSIVE days (day) AS (SELECT ?3 UNION ALL SELECT day + 1 FROM days WHERE day < ?4)
  SELECT min(n.day) AS firstDay, max(n.day) AS lastDay FROM days CROSS JOIN dmarc_daily n ON n.domain = ?1 AND n.day = days.day AND n.source = ?2`;

const legacySources = (where: string): string =>
  `SELECT s.domain, s.number, d.domain AS name, d.mode, s.first_day AS firstDay, s.last_day AS lastDay,
    s.first_seen_at_ms AS firstSeenAtMs, s.is_reviewed AS isReviewed
    FROM dmarc_sources s INDEXED BY dmarc_sources_legacy CROSS JOIN dmarc_domains d ON d.number = s.domain AND d.deleted_at_ms IS NULL
    WHERE instr(s.key, ' ') = 0 AND ${where} ORDER BY s.domain, s.number LIMIT ?`;

const prepareStatements = ({ sqlite }: Pick<Db, "sqlite">) =>
  statements({
    ofDomain: () =>
      sqlite.prepare<LegacySource, [number, number, number]>(legacySources("s.domain = ? AND s.number > ?")),
    ofNextDomains: () => sqlite.prepare<LegacySource, [number, number]>(legacySources("s.domain > ?")),
    records: () => sqlite.prepare<LegacyRecord, [number, number]>(RECORDS),
    hasRecords: () => sqlite.prepare<unknown, [number]>("SELECT 1 FROM dmarc_records WHERE source = ? LIMIT 1"),
    move: () => sqlite.prepare("UPDATE dmarc_records SET source = ? WHERE rowid = ?"),
    inherit: () =>
      sqlite.prepare(
        "UPDATE dmarc_sources SET first_seen_at_ms = min(first_seen_at_ms, ?), is_reviewed = max(is_reviewed, ?) WHERE number = ?",
      ),
    counts: () =>
      sqlite.prepare<Counts, [number, number, number, number]>(
        `SELECT messages, aligned, aligned_dkim AS alignedDkim, aligned_spf AS alignedSpf, forwarded, authenticated, quarantined, rejected
      FROM dmarc_daily WHERE domain = ? AND day = ? AND source = ? AND is_trusted = ?`,
      ),
    countedDays: () => sqlite.prepare<{ firstDay: number | null; lastDay: number | null }, number[]>(COUNTED_DAYS),
    setDays: () => sqlite.prepare("UPDATE dmarc_sources SET first_day = ?, last_day = ? WHERE number = ?"),
    remove: () => sqlite.prepare("DELETE FROM dmarc_sources WHERE number = ?"),
  });

/** Moves records of legacy sources to other sources. */
export class SourceRebuildStore {
  readonly #sql;

  constructor(db: Pick<Db, "sqlite">) {
    this.#sql = prepareStatements(db);
  }

  /** The next legacy sources after one, of domains that are not deleted; none after the last. */
  legacySourcesAfter({ domain, number }: LegacyCursor, limit: number): LegacySource[] {
    const same = this.#sql.ofDomain.all(domain, number, limit);
    return same.length > 0 ? same : this.#sql.ofNextDomains.all(domain, limit);
  }

  recordsOf(number: number, limit: number): LegacyRecord[] {
    return this.#sql.records.all(number, limit);
  }

  hasRecords(number: number): boolean {
    return this.#sql.hasRecords.get(number) !== null;
  }

  /** Gives a record to another source; to none when `source` is 0. */
  moveRecord(_tx: Tx, rowid: number, source: number): void {
    this.#sql.move.run(source, rowid);
  }

  /** A source that takes over records of another was first seen when that was. */
  inherit(_tx: Tx, number: number, { firstSeenAtMs, isReviewed }: LegacySource): void {
    this.#sql.inherit.run(firstSeenAtMs, isReviewed, number);
  }

  /** What is counted of a source on a day; null for nothing. */
  countsOf({ domain, number }: LegacyCursor, { day, voucher }: CountedDay): Counts | null {
    return this.#sql.counts.get(domain, day, number, voucher);
  }

  /** Leaves a source without records only the days on which it is still counted; removes it when there are none. */
  finishSource(_tx: Tx, { domain, number, firstDay, lastDay }: LegacySource): void {
    const days = this.#sql.countedDays.get(domain, number, firstDay, lastDay);
    if (days === null || days.firstDay === null || days.lastDay === null) this.#sql.remove.run(number);
    else if (days.firstDay !== firstDay || days.lastDay !== lastDay)
      this.#sql.setDays.run(days.firstDay, days.lastDay, number);
  }
}
