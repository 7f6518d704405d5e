import type { FailureReport } from "./failure-report.ts";
import type { Report } from "./report.ts";
import type { TlsReport } from "./tls-report.ts";

/** What became of something sent to us. `duplicate` is for the store to say; reading alone never answers it. */
export type ReportOutcome = "stored" | "duplicate" | "empty" | "quarantined" | "rejected";

/** Nothing to count, and no reason to worry. */
export type EmptyReason =
  /** A sound report without a record. */
  | "no_records"
  /** A sound report, none of whose rows can be counted (`skippedRows` says why). */
  | "no_usable_rows"
  /** A mail that only says `unused`, which some reporters send on days without traffic. */
  | "unused";

/** Understood, kept, and not counted: it is no aggregate report. */
export type QuarantineReason = "failure_report" | "delivery_report" | "tls_report";

/** Why an archive, or the bytes in it, could not be had. */
export type UnpackProblem =
  | "entry_too_large"
  | "mail_too_large"
  | "too_many_entries"
  | "nested_too_deep"
  | "gzip_damaged"
  | "zip_damaged"
  | "zip_encrypted"
  | "zip_method_unsupported";

/** Why XML is no report that can be counted. */
export type ReportProblem =
  /** A document type declaration, which no report has and which is only ever an attack. */
  | "doctype"
  /** XML, but without the element `feedback`. */
  | "not_a_report"
  | "malformed"
  /** It ends before its root element does, or an end tag fits no start tag: a piece is missing. */
  | "truncated"
  | "too_deep"
  | "too_many_records"
  | "domain_missing"
  | "period_missing";

/** Why XML is no report that can be counted, and where. */
export interface ReportFault {
  readonly problem: ReportProblem;
  /** For `truncated`: the line of the document, from 1, where the piece is found to be missing. Else null. */
  readonly line: number | null;
}

export type RejectReason =
  | UnpackProblem
  | ReportProblem
  | "message_too_large"
  | "message_too_complex"
  | "tls_report_damaged"
  /** Nothing in it is, or holds, a report. */
  | "no_report";

export type OutcomeReason = EmptyReason | QuarantineReason | RejectReason;

/** What reading found in one place: a file, an entry of an archive, a part of a mail. */
export interface ReportReading {
  readonly outcome: Exclude<ReportOutcome, "duplicate">;
  /** Null for `stored` alone. */
  readonly reason: OutcomeReason | null;
  /** The name of the part or entry; null where it has none. */
  readonly name: string | null;
  /** For `truncated` XML: the line of the document, from 1, where a piece is found to be missing. Else null. */
  readonly line: number | null;
  /** For `stored`, and for an `empty` one that is a report. */
  readonly report: Report | null;
  /** For `quarantined` as `tls_report`. */
  readonly tlsReport: TlsReport | null;
  /** For `quarantined` as `failure_report`, as far as it could be read. */
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

/** A sound report: `stored` when a row can be counted, else `empty`. */
export const reportReading = (report: Report, name: string | null): ReportReading => {
  if (report.rows.length > 0) return { ...NOTHING, outcome: "stored", reason: null, name, report };
  return empty(report.skippedRows.length > 0 ? "no_usable_rows" : "no_records", { name, report });
};
