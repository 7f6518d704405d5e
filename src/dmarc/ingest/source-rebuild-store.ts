import type { Db, Tx } from "../../db/open.ts";
import type { DomainRow } from "../domains/domain-store.ts";
import type { ReportRow } from "../report/report-row.ts";
import type { RecordBody } from "./report-store.ts";
import type { CountedDay, Counts } from "./rollup.ts";

/** Where a walk through the sources of before they were stored by address stands. */
export interface LegacyCursor {
  readonly domain: number;
  readonly number: number;
}

/** A source of before sources were stored by address. */
export interface LegacySource extends LegacyCursor {
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
  /** False when the report is not counted, or gone. */
  readonly isComplete: 0 | 1;
  readonly isTrusted: 0 | 1;
  readonly org: string | null;
  /** Empty for what is trusted: see `CountedReporter`. */
  readonly author: string;
  readonly messages: number;
  readonly policy: string;
}

const RECORDS = `SELECT c.rowid, c.day, c.source_ip AS sourceIp, c.count, c.disposition, c.dkim, c.spf, c.header_from AS headerFrom, c.body,
  coalesce(p.is_complete, 0) AS isComplete, coalesce(instr(p.sameness, ' ') = 0, 1) AS isTrusted, p.org,
  CASE WHEN instr(p.sameness, ' ') > 0 THEN substr(p.sameness, instr(p.sameness, ' ') + 1) ELSE '' END AS author, coalesce(p.messages, 0) AS messages,
  coalesce(p.policy, '{}') AS policy
  FROM dmarc_records c LEFT JOIN dmarc_reports p ON p.number = c.report WHERE c.source = ? LIMIT ?`;

/** The first and last day on which anything is counted for a source (2) of a domain (1) between two days (3, 4), asked day by day: the index has the day before the source. */
const COUNTED_DAYS = `WITH RECURSIVE days (day) AS (SELECT ?3 UNION ALL SELECT day + 1 FROM days WHERE day < ?4)
  SELECT min(n.day) AS firstDay, max(n.day) AS lastDay FROM days CROSS JOIN dmarc_daily n ON n.domain = ?1 AND n.day = days.day AND n.source = ?2`;

/** Statements for moving the records of a source to other sources. */
export const createSourceRebuildStore = ({ sqlite }: Db) => {
  const sourcesWhere = (place: string) =>
    `SELECT s.domain, s.number, d.domain AS name, d.mode, s.first_day AS firstDay, s.last_day AS lastDay,
      s.first_seen_at_ms AS firstSeenAtMs, s.is_reviewed AS isReviewed
      FROM dmarc_sources s INDEXED BY dmarc_sources_legacy CROSS JOIN dmarc_domains d ON d.number = s.domain AND d.deleted_at_ms IS NULL
      WHERE instr(s.key, ' ') = 0 AND ${place} ORDER BY s.domain, s.number LIMIT ?`;
  const ofDomain = sqlite.prepare<LegacySource, [number, number, number]>(
    sourcesWhere("s.domain = ? AND s.number > ?"),
  );
  const ofNext = sqlite.prepare<LegacySource, [number, number]>(sourcesWhere("s.domain > ?"));
  const records = sqlite.prepare<LegacyRecord, [number, number]>(RECORDS);
  const hasRecords = sqlite.prepare<unknown, [number]>("SELECT 1 FROM dmarc_records WHERE source = ? LIMIT 1");
  const move = sqlite.prepare("UPDATE dmarc_records SET source = ? WHERE rowid = ?");
  const inherit = sqlite.prepare(
    "UPDATE dmarc_sources SET first_seen_at_ms = min(first_seen_at_ms, ?), is_reviewed = max(is_reviewed, ?) WHERE number = ?",
  );
  const counts = sqlite.prepare<Counts, [number, number, number, boolean]>(
    `SELECT messages, aligned, aligned_dkim AS alignedDkim, aligned_spf AS alignedSpf, forwarded, authenticated, quarantined, rejected
      FROM dmarc_daily WHERE domain = ? AND day = ? AND source = ? AND is_trusted = ?`,
  );
  const countedDays = sqlite.prepare<{ firstDay: number | null; lastDay: number | null }, number[]>(COUNTED_DAYS);
  const setDays = sqlite.prepare("UPDATE dmarc_sources SET first_day = ?, last_day = ? WHERE number = ?");
  const drop = sqlite.prepare("DELETE FROM dmarc_sources WHERE number = ?");

  return {
    /** Some sources of domains that are there, after one; none after the last. */
    legacySourcesAfter({ domain, number }: LegacyCursor, limit: number): LegacySource[] {
      const same = ofDomain.all(domain, number, limit);
      return same.length > 0 ? same : ofNext.all(domain, limit);
    },
    /** The first records of a source. */
    recordsOf: (number: number, limit: number): LegacyRecord[] => records.all(number, limit),
    hasRecords: (number: number): boolean => hasRecords.get(number) !== null,
    /** Gives a record to another source; to none when `source` is 0. */
    moveRecord: (_tx: Tx, rowid: number, source: number): void => void move.run(source, rowid),
    /** A source that takes over records of another was first seen when that was, and is as well known. */
    inherit: (_tx: Tx, number: number, { firstSeenAtMs, isReviewed }: LegacySource): void =>
      void inherit.run(firstSeenAtMs, isReviewed, number),
    /** What is counted of a source on a day; null for nothing. */
    countsOf: ({ domain, number }: LegacyCursor, { day, isTrusted }: CountedDay): Counts | null =>
      counts.get(domain, day, number, isTrusted),
    /** Leaves a source without records the days that are still counted for it, or removes it when there is none. */
    settle(_tx: Tx, { domain, number, firstDay, lastDay }: LegacySource): void {
      const days = countedDays.get(domain, number, firstDay, lastDay);
      if (days === null || days.firstDay === null || days.lastDay === null) drop.run(number);
      else if (days.firstDay !== firstDay || days.lastDay !== lastDay) setDays.run(days.firstDay, days.lastDay, number);
    },
  };
};

export type SourceRebuildStore = ReturnType<typeof createSourceRebuildStore>;
