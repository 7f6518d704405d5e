import type { ReportRow } from "./report-row.ts";
import type { PolicyKeyword, ReportRowProblem } from "./report-values.ts";

/** The published policy as a report states it. Null where it states nothing valid. */
export interface PublishedPolicy {
  /** Lower case A-labels. */
  readonly domain: string;
  readonly p: PolicyKeyword | null;
  readonly sp: PolicyKeyword | null;
  readonly np: PolicyKeyword | null;
  readonly adkim: "r" | "s" | null;
  readonly aspf: "r" | "s" | null;
  readonly pct: number | null;
  readonly fo: string | null;
  /** RFC 9990: the policy was published with `t=y`. */
  readonly testing: boolean | null;
  /** RFC 9990: how the policy was found. */
  readonly discoveryMethod: "psl" | "treewalk" | null;
}

/** Deviations that were tolerated. */
export type ReportNotice =
  | "text_repaired"
  | "period_reversed"
  | "period_incomplete"
  /** Texts or entries of records were left out, because a record exceeded `REPORT_ROW_BYTES_MAX`; nothing that is counted. */
  | "records_shortened"
  | "org_name_missing"
  | "report_id_missing";

/** One aggregate report (RFC 9990, and RFC 7489 App. C with its many variants). */
export interface Report {
  readonly version: string | null;
  /** The reporter's name, else the domain of its address, else null. */
  readonly orgName: string | null;
  readonly email: string | null;
  readonly extraContactInfo: string | null;
  /** As written but for white space; reporters reuse ids. */
  readonly reportId: string | null;
  readonly generator: string | null;
  readonly errors: readonly string[];
  /** Milliseconds since 1970; `beginMs` is never after `endMs`. */
  readonly beginMs: number;
  readonly endMs: number;
  readonly policy: PublishedPolicy;
  /** The rows that can be counted, in document order. */
  readonly rows: readonly ReportRow[];
  /** The rows that cannot, by reason. */
  readonly skippedRows: ReadonlyArray<{ readonly reason: ReportRowProblem; readonly rows: number }>;
  readonly notices: readonly ReportNotice[];
}

/** Limits of one report. Texts and nesting are limited by `XML_LIMITS`. */
export const REPORT_LIMITS = { recordsMax: 100_000, errorsMax: 20, errorCharactersMax: 500 } as const;

/** The messages of a report. */
export const countMessages = (report: Report): number => report.rows.reduce((sum, { count }) => sum + count, 0);
