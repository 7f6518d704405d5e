import type { DayRange } from "../../../foundation/base/days.ts";
import { AUTHOR } from "../../reports/ingest/report-store.ts";
import type { Db } from "../../../foundation/db/open.ts";
import type { Disposition } from "../../reports/report/report-values.ts";
import type { Steps } from "../../../foundation/base/in-steps.ts";
import { statements } from "../../../foundation/db/statements.ts";
import { readDays } from "../sources/day-steps.ts";
import { RANK_STEP } from "../../reports/ingest/rollup.ts";

/** A record as it is stored, with its reverse name and its report. `body` is the JSON of a `RecordBody`. */
export interface RecordRow extends RecordKey {
  readonly sourceIp: string;
  readonly count: number;
  readonly disposition: Disposition | null;
  readonly dkim: "pass" | "fail" | null;
  readonly spf: "pass" | "fail" | null;
  readonly isAligned: 0 | 1;
  readonly isForwarded: 0 | 1;
  readonly headerFrom: string | null;
  readonly body: string;
  /** `number` of the source. */
  readonly source: number;
  /** The reverse name; null when there is none, or it is not known yet. */
  readonly reverseName: string | null;
  readonly isConfirmed: 0 | 1 | null;
  /** The AS that announces the address; null when none does, or it is not known yet. */
  readonly asn: number | null;
  readonly asName: string | null;
  readonly country: string | null;
  readonly reportRef: string;
  readonly org: string | null;
  /** As in `ReportRowStored`. */
  readonly author: string;
  /** The header_from domain of the mail that brought the report, where it is authenticated. */
  readonly authenticatedFrom: string | null;
  readonly reportId: string | null;
  readonly beginMs: number;
  readonly endMs: number;
}

/** The position of a record in a list: the greatest key comes first. */
export interface RecordKey {
  readonly day: number;
  readonly rank: number;
  /** `number` of the report. */
  readonly report: number;
  readonly position: number;
}

/** The records of a domain, of some sources, or of a report, each by number. */
export type RecordScope =
  { readonly domain: number } | { readonly sources: readonly number[] } | { readonly report: number };

/** What all records of a page have in common; null for no condition. */
export interface RecordConditions {
  readonly sourceIp: string | null;
  readonly disposition: Disposition | null;
  readonly aligned: boolean | null;
  readonly headerFrom: string | null;
  /** In lower case. Names beyond ASCII all match, because SQLite cannot fold their case. */
  readonly reporter: string | null;
}

/** Records from `before` (exclusive) to `end` (inclusive), in the order of the list. */
interface RecordWindow {
  readonly before: RecordKey;
  readonly end: RecordKey;
}

/** The messages that a reporter counted on a day. */
interface ReporterDay {
  /** Lower case; empty for one without a name. */
  readonly reporter: string;
  readonly day: number;
  readonly messages: number;
  readonly aligned: number;
  readonly forwarded: number;
}

/** Sorts after every record of a day. */
export const endOfDay = (day: number): RecordKey => ({ day, rank: -1, report: -1, position: -1 });

/** Compares two records by their positions. */
export const inListOrder = (a: RecordKey, b: RecordKey): number =>
  b.day - a.day || b.rank - a.rank || b.report - a.report || b.position - a.position;

type Value = string | number | null;
type Parameters = [Readonly<Record<string, Value>>];

const ORDER = "day DESC, rank DESC, report DESC, position DESC";
const BEHIND = "(day, rank, report, position) < ($day, $rank, $report, $position)";
const TO_END = "(day, rank, report, position) >= ($endDay, $endRank, $endReport, $endPosition)";
// Few reports are being written at a time; their numbers are read once per statement, from an index.
const TRAITS = `report NOT IN (SELECT number FROM dmarc_reports WHERE is_complete = 0)
    AND rank >= $rankMin AND rank < $rankBelow
    AND ($sourceIp IS NULL OR source_ip = $sourceIp)
    AND ($disposition IS NULL OR disposition = $disposition)
    AND ($headerFrom IS NULL OR header_from = $headerFrom)
    AND ($reporter IS NULL OR EXISTS (SELECT 1 FROM dmarc_reports o WHERE o.number = report
      AND (lower(coalesce(o.org, '')) = $reporter OR o.org GLOB '*[^ -~]*')))`;

/** Joins the rows of the records whose keys the inner query finds. */
const joined = (
  keys: string,
  order: string,
) => `SELECT c.day, c.rank, c.report, c.position, c.source_ip sourceIp, c.count, c.disposition,
    c.dkim, c.spf, c.is_aligned isAligned, c.is_forwarded isForwarded, c.header_from headerFrom, c.body, c.source,
    n.name reverseName, n.is_confirmed isConfirmed, n.asn, n.as_name asName, n.country, r.id reportRef, r.org, ${AUTHOR} author,
    CASE r.authenticity WHEN 'pass' THEN json_extract(r.authenticity_body, '$.from') END authenticatedFrom, r.report_id reportId, r.begin_ms beginMs,
    r.end_ms endMs
  FROM (${keys}) k
  CROSS JOIN dmarc_records c ON c.report = k.report AND c.position = k.position
  CROSS JOIN dmarc_reports r ON r.number = c.report
  LEFT JOIN dmarc_reverse_names n ON n.ip = c.source_ip
  ORDER BY ${order}`;

// The inner query walks an index.
const select = (where: string) =>
  joined(
    `SELECT report, position FROM dmarc_records WHERE ${where} AND ${BEHIND} AND ${TO_END} AND ${TRAITS}
      ORDER BY ${ORDER} LIMIT $limit`,
    "c.day DESC, c.rank DESC, c.report DESC, c.position DESC",
  );

const RECORDS_OF_REPORT = joined(
  "SELECT report, position FROM dmarc_records WHERE report = $report AND position > $position ORDER BY position LIMIT $limit",
  "c.position",
);

const skip = (where: string) =>
  `SELECT day, rank, report, position FROM dmarc_records WHERE ${where} AND ${BEHIND} AND ${TO_END} ORDER BY ${ORDER} LIMIT 1 OFFSET $skipped`;

const startOf = ({ day, rank, report, position }: RecordKey) => ({ day, rank, report, position });
const endOf = ({ day, rank, report, position }: RecordKey) => ({
  endDay: day,
  endRank: rank,
  endReport: report,
  endPosition: position,
});

/** The rank says whether a record is aligned, and is in every index. */
const ranksOf = (aligned: boolean | null) => ({
  rankMin: aligned === false ? RANK_STEP : 0,
  rankBelow: aligned === true ? RANK_STEP : Number.MAX_SAFE_INTEGER,
});

const REPORTER_DAYS = `SELECT lower(coalesce(r.org, '')) reporter, c.day, sum(c.count) messages, sum(c.is_aligned * c.count) aligned,
    sum(c.is_forwarded * c.count) forwarded
  FROM dmarc_records c CROSS JOIN dmarc_reports r ON r.number = c.report AND r.is_complete = 1
  WHERE c.source IN (SELECT value FROM json_each(?)) AND c.day BETWEEN ? AND ? GROUP BY 1, 2`;

const SCOPES = {
  domain: "domain = $scope",
  source: "source = $scope",
  sources: "source IN (SELECT value FROM json_each($scope))",
  report: "report = $scope",
} as const;

/** Reads the records of reports. Those of a report that is still being written are absent. */
export class RecordStore {
  readonly #scopes;
  readonly #sql;

  constructor({ sqlite }: Pick<Db, "sqlite">) {
    const prepare = (where: string) =>
      statements({
        records: () => sqlite.prepare<RecordRow, Parameters>(select(where)),
        skip: () => sqlite.prepare<RecordKey, Parameters>(skip(where)),
      });
    const { domain, source, sources, report } = SCOPES;
    this.#scopes = {
      domain: prepare(domain),
      source: prepare(source),
      sources: prepare(sources),
      report: prepare(report),
    };
    this.#sql = statements({
      recordsOfReport: () => sqlite.prepare<RecordRow, Parameters>(RECORDS_OF_REPORT),
      reporterDays: () => sqlite.prepare<ReporterDay, [string, number, number]>(REPORTER_DAYS),
    });
  }

  /** The first records of a window that meet the conditions: the newest day first, within a day the worst first. */
  records(
    scope: RecordScope,
    { before, end }: RecordWindow,
    { aligned, ...values }: RecordConditions,
    limit: number,
  ): RecordRow[] {
    const { statements, value } = this.#statementsFor(scope);
    const window = { ...startOf(before), ...endOf(end) };
    return statements.records.all({ scope: value, ...window, ...values, ...ranksOf(aligned), limit });
  }

  /** The key of the record that is the `count`th of a window, whatever its conditions; undefined when there are fewer. */
  keyAt(scope: RecordScope, { before, end }: RecordWindow, count: number): RecordKey | undefined {
    const { statements, value } = this.#statementsFor(scope);
    return statements.skip.get({ scope: value, ...startOf(before), ...endOf(end), skipped: count - 1 }) ?? undefined;
  }

  /** The records of a report after a position, in the order of the report. */
  recordsOfReport(report: number, position: number, limit: number): RecordRow[] {
    return this.#sql.recordsOfReport.all({ report, position, limit });
  }

  /** The messages of some sources by reporter and day; reporters without a name are one. */
  reporterDays(sources: readonly number[], range: DayRange): Steps<ReporterDay[]> {
    const [numbers, { reporterDays }] = [JSON.stringify(sources), this.#sql];
    return readDays(range, ({ fromDay, toDay }) => reporterDays.all(numbers, fromDay, toDay));
  }

  #statementsFor(scope: RecordScope) {
    if ("domain" in scope) return { statements: this.#scopes.domain, value: scope.domain };
    if ("report" in scope) return { statements: this.#scopes.report, value: scope.report };
    const [only] = scope.sources;
    if (only !== undefined && scope.sources.length === 1) return { statements: this.#scopes.source, value: only };
    return { statements: this.#scopes.sources, value: JSON.stringify(scope.sources) };
  }
}
