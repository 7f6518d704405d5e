import type { DayRange } from "../../base/days.ts";
import { AUTHOR } from "../ingest/report-store.ts";
import type { Db } from "../../db/open.ts";
import { RANK_STEP } from "../ingest/row-facts.ts";
import type { Disposition } from "../report/report-values.ts";

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
  /** What the DNS says; null when that is nothing, or it was not asked. */
  readonly reverseName: string | null;
  readonly isConfirmed: 0 | 1 | null;
  /** The network that announces the address; null when none does, or it was not looked up. */
  readonly asn: number | null;
  readonly asName: string | null;
  readonly country: string | null;
  readonly reportRef: string;
  readonly org: string | null;
  /** As in `ReportRowStored`. */
  readonly author: string;
  /** The domain in From of the mail that brought it, where that is authenticated. */
  readonly authenticatedFrom: string | null;
  readonly reportId: string | null;
  readonly beginMs: number;
  readonly endMs: number;
}

/** The place of a record in the order of reading: the greatest comes first. */
export interface RecordKey {
  readonly day: number;
  readonly rank: number;
  /** `number` of the report. */
  readonly report: number;
  readonly position: number;
}

/** Where records are looked for: all of a domain, those of some sources, or those of a report, each by number. */
export type RecordScope =
  { readonly domain: number } | { readonly sources: readonly number[] } | { readonly report: number };

/** What the rows of a page have in common; null for what is not asked for. */
export interface RecordConditions {
  readonly sourceIp: string | null;
  readonly disposition: Disposition | null;
  readonly aligned: boolean | null;
  readonly headerFrom: string | null;
  /** In lower case. Names beyond ASCII all pass: SQLite does not know their lower case. */
  readonly reporter: string | null;
}

/** Rows from `before` (not itself) to `end` (itself), both in the order of reading. */
export interface RecordWindow {
  readonly before: RecordKey;
  readonly end: RecordKey;
}

/** What a reporter said of a day. */
export interface ReporterDay {
  /** Lower case; empty for one without a name. */
  readonly reporter: string;
  readonly day: number;
  readonly messages: number;
  readonly aligned: number;
  readonly forwarded: number;
}

type Value = string | number | null;
type Parameters = [Readonly<Record<string, Value>>];

const ORDER = "day DESC, rank DESC, report DESC, position DESC";
const BEHIND = "(day, rank, report, position) < ($day, $rank, $report, $position)";
const TO_END = "(day, rank, report, position) >= ($endDay, $endRank, $endReport, $endPosition)";
// Few reports are being written at a time: their numbers are read once for a statement, out of an index of their own.
const TRAITS = `report NOT IN (SELECT number FROM dmarc_reports WHERE is_complete = 0)
    AND rank >= $rankMin AND rank < $rankBelow
    AND ($sourceIp IS NULL OR source_ip = $sourceIp)
    AND ($disposition IS NULL OR disposition = $disposition)
    AND ($headerFrom IS NULL OR header_from = $headerFrom)
    AND ($reporter IS NULL OR EXISTS (SELECT 1 FROM dmarc_reports o WHERE o.number = report
      AND (lower(coalesce(o.org, '')) = $reporter OR o.org GLOB '*[^ -~]*')))`;

/** What is read of records whose keys another query finds: rows are joined for what is wanted only. */
const joined = (
  keys: string,
  order: string,
): string => `SELECT c.day, c.rank, c.report, c.position, c.source_ip sourceIp, c.count, c.disposition,
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
const select = (where: string): string =>
  joined(
    `SELECT report, position FROM dmarc_records WHERE ${where} AND ${BEHIND} AND ${TO_END} AND ${TRAITS}
      ORDER BY ${ORDER} LIMIT $limit`,
    "c.day DESC, c.rank DESC, c.report DESC, c.position DESC",
  );

const IN_PLACE = joined(
  "SELECT report, position FROM dmarc_records WHERE report = $report AND position > $position ORDER BY position LIMIT $limit",
  "c.position",
);

const skip = (where: string): string =>
  `SELECT day, rank, report, position FROM dmarc_records WHERE ${where} AND ${BEHIND} AND ${TO_END} ORDER BY ${ORDER} LIMIT 1 OFFSET $skipped`;

const startOf = ({ day, rank, report, position }: RecordKey) => ({ day, rank, report, position });
const endOf = ({ day, rank, report, position }: RecordKey) => ({
  endDay: day,
  endRank: rank,
  endReport: report,
  endPosition: position,
});

/** The rank says whether a record is aligned, and stands in every index. */
const ranksOf = (aligned: boolean | null) => ({
  rankMin: aligned === false ? RANK_STEP : 0,
  rankBelow: aligned === true ? RANK_STEP : Number.MAX_SAFE_INTEGER,
});

/** Reads the records that reports consist of. Those of a report that is still being written are not there. */
export const createRecordStore = ({ sqlite }: Pick<Db, "sqlite">) => {
  const prepare = (where: string) => ({
    rows: sqlite.prepare<RecordRow, Parameters>(select(where)),
    skip: sqlite.prepare<RecordKey, Parameters>(skip(where)),
  });
  const ofDomain = prepare("domain = $place");
  const ofSource = prepare("source = $place");
  const ofSources = prepare("source IN (SELECT value FROM json_each($place))");
  const ofReport = prepare("report = $place");
  const inPlace = sqlite.prepare<RecordRow, Parameters>(IN_PLACE);

  const reporterDays = sqlite.prepare<ReporterDay, [string, number, number]>(
    `SELECT lower(coalesce(r.org, '')) reporter, c.day, sum(c.count) messages, sum(c.is_aligned * c.count) aligned,
      sum(c.is_forwarded * c.count) forwarded
    FROM dmarc_records c CROSS JOIN dmarc_reports r ON r.number = c.report AND r.is_complete = 1
    WHERE c.source IN (SELECT value FROM json_each(?)) AND c.day BETWEEN ? AND ? GROUP BY 1, 2`,
  );

  const statementsFor = (wanted: RecordScope): { readonly of: typeof ofDomain; readonly place: string | number } => {
    if ("domain" in wanted) return { of: ofDomain, place: wanted.domain };
    if ("report" in wanted) return { of: ofReport, place: wanted.report };
    const [only] = wanted.sources;
    if (only !== undefined && wanted.sources.length === 1) return { of: ofSource, place: only };
    return { of: ofSources, place: JSON.stringify(wanted.sources) };
  };

  return {
    /** The first records of a window that have the traits: the newest day first, of a day the worst first. */
    records(wanted: RecordScope, { before, end }: RecordWindow, traits: RecordConditions, limit: number): RecordRow[] {
      const { of, place } = statementsFor(wanted);
      const { aligned, ...values } = traits;
      return of.rows.all({ place, ...startOf(before), ...endOf(end), ...values, ...ranksOf(aligned), limit });
    },
    /** What reporters said of some sources together, day by day; reports without a name are one reporter. */
    reporterDays: (sources: readonly number[], { fromDay, toDay }: DayRange): ReporterDay[] =>
      reporterDays.all(JSON.stringify(sources), fromDay, toDay),
    /** The records of a report behind a position, in the order in which the report has them. */
    recordsInPlace: (report: number, position: number, limit: number): RecordRow[] =>
      inPlace.all({ report, position, limit }),
    /** The key of the record that is the `count`th of a window, whatever its traits; undefined when there are fewer. */
    keyAt(wanted: RecordScope, { before, end }: RecordWindow, count: number): RecordKey | undefined {
      const { of, place } = statementsFor(wanted);
      return of.skip.get({ place, ...startOf(before), ...endOf(end), skipped: count - 1 }) ?? undefined;
    },
  };
};

export type RecordStore = ReturnType<typeof createRecordStore>;
