import { POLICIES } from "../../records/record/record-values.ts";
import type { ReportRow } from "./report-row.ts";
import { type ReportRowProblem, AUTH_RESULTS, OVERRIDES } from "./report-values.ts";
import { cached } from "../../../foundation/base/bounded-map.ts";
import { z } from "zod";
import type { TlsReport } from "./tls-report.ts";
import { DAY_MS, dayOfTime } from "../../../foundation/base/days.ts";
import type { FailureReport } from "./failure-report.ts";

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

/** What the column `body` of a report holds. */
export type ReportBody = Pick<
  Report,
  "version" | "extraContactInfo" | "generator" | "errors" | "notices" | "skippedRows"
>;

/** What the column `body` of a record holds. */
export type RecordBody = Pick<ReportRow, "envelopeFrom" | "envelopeTo" | "reasons" | "dkimResults" | "spfResults">;

/** What the column `body` of a TLS report holds. */
export type TlsReportBody = Pick<TlsReport, "contact" | "policies">;

const text = z.string().nullable().default(null);
const count = z.number();
const result = z.enum([...AUTH_RESULTS, "unknown"]);
const policyKeyword = z.enum(POLICIES).nullable().default(null);
const alignment = z.enum(["r", "s"]).nullable().default(null);

const recordBodySchema: z.ZodType<RecordBody> = z.object({
  envelopeFrom: text,
  envelopeTo: text,
  reasons: z.array(z.object({ type: z.enum(OVERRIDES), comment: text })),
  dkimResults: z.array(z.object({ domain: text, selector: text, result, humanResult: text })),
  spfResults: z.array(
    z.object({ domain: text, scope: z.enum(["mfrom", "helo"]).nullable().default(null), result, humanResult: text }),
  ),
});

const reportBodySchema: z.ZodType<ReportBody> = z.object({
  version: text,
  extraContactInfo: text,
  generator: text,
  errors: z.array(z.string()),
  notices: z.array(z.custom<Report["notices"][number]>((notice) => typeof notice === "string")),
  skippedRows: z.array(
    z.object({
      reason: z.custom<Report["skippedRows"][number]["reason"]>((reason) => typeof reason === "string"),
      rows: count,
    }),
  ),
});

const publishedPolicySchema = z.object({
  /** Lower case A-labels. */
  domain: z.string(),
  p: policyKeyword,
  sp: policyKeyword,
  np: policyKeyword,
  adkim: alignment,
  aspf: alignment,
  pct: count.nullable().default(null),
  fo: text,
  /** RFC 9990: the policy was published with `t=y`. */
  testing: z.boolean().nullable().default(null),
  /** RFC 9990: how the policy was found. */
  discoveryMethod: z.enum(["psl", "treewalk"]).nullable().default(null),
});

/** The published policy as a report states it. Null where it states nothing valid. */
export type PublishedPolicy = Readonly<z.infer<typeof publishedPolicySchema>>;

const tlsReportBodySchema: z.ZodType<TlsReportBody> = z.object({
  contact: text,
  policies: z.array(
    z.object({
      domain: text,
      policyType: text,
      successfulSessions: count,
      failedSessions: count,
      failures: z.array(z.object({ resultType: z.string(), sessions: count, mxHost: text })),
    }),
  ),
});

/** A body has 300 bytes, at most 16 kB. */
const BODIES_CACHED_MAX = 300;

/** Parses a stored JSON column. Throws when the stored text is not what this or an earlier version wrote. */
export const parseRecordBody = (body: string): RecordBody => recordBodySchema.parse(JSON.parse(body));
/** The same where many records of a domain are read: those of a sender mostly have the same text, which is parsed once. */
export const parseRepeatedBody = cached(BODIES_CACHED_MAX, parseRecordBody);
/** The same, or null for such a text. */
export const readRecordBody = (body: string): RecordBody | null => {
  try {
    return parseRecordBody(body);
  } catch {
    return null;
  }
};
export const parseReportBody = (body: string): ReportBody => reportBodySchema.parse(JSON.parse(body));
/** The reports about a domain have the same few policies. */
const POLICIES_CACHED_MAX = 1_000;
export const parsePublishedPolicy = cached(POLICIES_CACHED_MAX, (policy: string): PublishedPolicy =>
  publishedPolicySchema.parse(JSON.parse(policy)),
);
export const parseTlsReportBody = (body: string): TlsReportBody => tlsReportBodySchema.parse(JSON.parse(body));

interface Period {
  readonly beginMs: number;
  readonly endMs: number;
}

/** How far a reporter's clock may be ahead of ours. */
const FUTURE_DAYS_MAX = 2;
/** A longer period cannot be assigned to a day. */
const PERIOD_DAYS_MAX = 400;

/** Why a period cannot be assigned to a day. */
export type PeriodProblem = "period_in_future" | "period_too_long";

const middleOf = ({ beginMs, endMs }: Period) => beginMs + (endMs - beginMs) / 2;

/** The UTC day of a report: that of the middle of its period. */
export const dayOf = (period: Period): number => dayOfTime(middleOf(period));

/**
 * What is wrong with a report's period now; null for nothing, however old it is. A day in the future would be expired too late
 * or never. Such a report can be retried when the day has come.
 */
export const periodProblemOf = (period: Period, nowMs: number): PeriodProblem | null => {
  if (period.endMs - period.beginMs > PERIOD_DAYS_MAX * DAY_MS) return "period_too_long";
  return middleOf(period) > nowMs + FUTURE_DAYS_MAX * DAY_MS ? "period_in_future" : null;
};

/** Whether a day is so old that the next retention run expires it. */
export const isPastRetention = (day: number, { retentionDays }: { retentionDays: number }, nowMs: number) =>
  day < dayOfTime(nowMs) - retentionDays;

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
