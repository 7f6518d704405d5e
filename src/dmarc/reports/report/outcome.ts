import type { FailureReport } from "./failure-report.ts";
import type { Report } from "./report.ts";
import type { TlsReport } from "./tls-report.ts";

/** What became of a report. `duplicate` follows from what is stored; parsing alone never returns it. */
export type ReportOutcome = "stored" | "duplicate" | "empty" | "quarantined" | "rejected";

/** Nothing to count, and nothing wrong. */
export type EmptyReason =
  /** A valid report without records. */
  | "no_records"
  /** A valid report, none of whose rows can be counted (`skippedRows` says why). */
  | "no_usable_rows"
  /** A mail that only says `unused`, which some reporters send on days without traffic. */
  | "unused";

/** Understood, kept, and not counted: not an aggregate report. */
export type QuarantineReason = "failure_report" | "delivery_report" | "tls_report";

/** Why an archive, or a file in it, could not be unpacked. */
export type UnpackProblem =
  | "entry_too_large"
  | "mail_too_large"
  | "too_many_entries"
  | "nested_too_deep"
  | "gzip_damaged"
  | "zip_damaged"
  | "zip_encrypted"
  | "zip_method_unsupported";

/** Why XML is not a report that can be counted. */
export type ReportProblem =
  /** A document type declaration, which no report has and attacks use. */
  | "doctype"
  /** XML, but without the element `feedback`. */
  | "not_a_report"
  | "malformed"
  /** The XML ends before its root element, or an end tag has no start tag: a part is missing. */
  | "truncated"
  | "too_deep"
  | "too_many_records"
  | "domain_missing"
  | "period_missing";

/** Why XML is not a report that can be counted, and where. */
export interface ReportFault {
  readonly problem: ReportProblem;
  /** For `truncated`: the line of the document, from 1, at which the part is missing. Otherwise null. */
  readonly line: number | null;
}

export type RejectReason =
  | UnpackProblem
  | ReportProblem
  | "message_too_large"
  | "message_too_complex"
  | "tls_report_damaged"
  /** The file contains no report. */
  | "no_report";

export type OutcomeReason = EmptyReason | QuarantineReason | RejectReason;

/** What was found in one part: a file, an entry of an archive, a MIME part. */
export interface ReportReading {
  readonly outcome: Exclude<ReportOutcome, "duplicate">;
  /** Null for `stored` alone. */
  readonly reason: OutcomeReason | null;
  /** The name of the part or entry; null where it has none. */
  readonly name: string | null;
  /** For `truncated` XML: the line of the document, from 1, at which a part is missing. Otherwise null. */
  readonly line: number | null;
  /** For `stored`, and for `empty` if it is a report. */
  readonly report: Report | null;
  /** For `quarantined` as `tls_report`. */
  readonly tlsReport: TlsReport | null;
  /** For `quarantined` as `failure_report`, as far as it could be parsed. */
  readonly failureReport: FailureReport | null;
}

const NOTHING = { name: null, line: null, report: null, tlsReport: null, failureReport: null } as const;

export const rejected = (
  reason: RejectReason,
  name: string | null = null,
  line: number | null = null,
): ReportReading => ({
  ...NOTHING,
  outcome: "rejected",
  reason,
  name,
  line,
});

export const empty = (
  reason: EmptyReason,
  found: Partial<Pick<ReportReading, "name" | "report">> = {},
): ReportReading => ({
  ...NOTHING,
  outcome: "empty",
  reason,
  ...found,
});

export const quarantined = (
  reason: QuarantineReason,
  found: Partial<Pick<ReportReading, "name" | "tlsReport" | "failureReport">> = {},
): ReportReading => ({ ...NOTHING, outcome: "quarantined", reason, ...found });

/** A valid report: `stored` when a row can be counted, else `empty`. */
export const reportReading = (report: Report, name: string | null): ReportReading => {
  if (report.rows.length > 0) return { ...NOTHING, outcome: "stored", reason: null, name, report };
  return empty(report.skippedRows.length > 0 ? "no_usable_rows" : "no_records", { name, report });
};
