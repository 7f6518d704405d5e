import { z } from "zod";
import type { OutcomeReason, ReportReading } from "../report/outcome.ts";
import type { PeriodProblem } from "./report-period.ts";

/** Why a finding is what it is, beside what the parser alone can say. */
export type FindingReason =
  | OutcomeReason
  /** The report is about a domain that the account has not enrolled. */
  | "foreign_domain"
  /** The mail failed SPF, DKIM and DMARC. */
  | "not_authentic"
  /** The mail is not authenticated (yet): it will be checked again, or the domain accepts authenticated reports only. */
  | "authenticity_unknown"
  /** The domain accepts authenticated reports only, and the mail is authenticated as another domain than the reporter's. */
  | "other_author"
  | PeriodProblem
  /** Stored, but so old that the domain's retention removes it within the hour. */
  | "older_than_retention"
  /** The same report with other rows is stored already. */
  | "duplicate_differs"
  /** It was stored until the same report came from its reporter, or from the owner. */
  | "replaced"
  /** The domain has 1,000 failure reports of that day already. */
  | "failure_reports_limit"
  /** It was about a domain that has been deleted. */
  | "domain_deleted"
  /** The files of the upload unpack to more than one upload may. */
  | "upload_too_large"
  /** A bug. The bytes are kept, and the ingestion can be retried. */
  | "internal_error"
  /** The service ended several times while it read this ingestion. */
  | "gave_up";

export const OUTCOMES = ["stored", "duplicate", "empty", "quarantined", "rejected"] as const;

const text = z.string().nullable();

const storedFindingSchema = z.object({
  outcome: z.enum(OUTCOMES),
  reason: text,
  name: text,
  report_id: text,
  domain_id: text,
  domain: text,
  org_name: text,
  external_report_id: text,
  /** Of a report that is not trusted: who its mail is authenticated as, or `UNAUTHENTICATED`. */
  author: z.string().optional(),
  /** Of `truncated` XML: the line at which a piece is missing. */
  line: z.number().optional(),
  /** Rows of a report that cannot be read; absent for none. */
  unread_rows: z.number().optional(),
  /** Of `authenticity_unknown`: a sentence, null when the mail was not checked; and whether it will be checked again. */
  doubt: z.object({ message: text, again: z.boolean() }).optional(),
});

/** A finding as it was stored, perhaps by another version, whose reasons this one may not know. */
export type StoredFinding = Readonly<z.infer<typeof storedFindingSchema>>;

/** What was found in one part of a mail or file, and what became of it. The names are those of the API. */
export type IngestionFinding = StoredFinding & { readonly reason: FindingReason | null };

/** What became of a mail or file as a whole. */
export type IngestionConclusion = Pick<StoredFinding, "outcome" | "reason">;

const storedFindings = z.array(storedFindingSchema);

/** The findings in the column of that name; none while the ingestion is pending. */
export const parseFindings = ({ findings }: { readonly findings: string | null }): StoredFinding[] =>
  findings === null ? [] : storedFindings.parse(JSON.parse(findings));

/** The most significant first. */
const OUTCOMES_BY_WEIGHT = ["rejected", "quarantined", "stored", "duplicate", "empty"] as const;

/** Outcome and reason of the most significant finding; of equals the first. No finding at all would be a bug. */
export const ingestionConclusion = (findings: readonly StoredFinding[]): IngestionConclusion => {
  for (const outcome of OUTCOMES_BY_WEIGHT) {
    const first = findings.find((finding) => finding.outcome === outcome);
    if (first !== undefined) return { outcome, reason: first.reason };
  }
  return { outcome: "rejected", reason: "internal_error" };
};

const NOTHING = {
  ...{ reason: null, name: null, report_id: null, domain_id: null },
  ...{ domain: null, org_name: null, external_report_id: null },
} as const;

/** The finding that follows from what was parsed alone. */
export const ingestionFinding = (reading: ReportReading): IngestionFinding => {
  const { outcome, reason, name, line, report, tlsReport, failureReport } = reading;
  return {
    ...{ ...NOTHING, outcome, reason, name },
    domain: report?.policy.domain ?? tlsReport?.policies[0]?.domain ?? failureReport?.reportedDomain ?? null,
    org_name: report?.orgName ?? tlsReport?.orgName ?? null,
    external_report_id: report?.reportId ?? tlsReport?.reportId ?? null,
    ...(line === null ? {} : { line }),
    ...unreadRows(report),
  };
};

const unreadRows = (report: ReportReading["report"]): Pick<StoredFinding, "unread_rows"> => {
  const rows = (report?.skippedRows ?? []).reduce((sum, skipped) => sum + skipped.rows, 0);
  return rows === 0 ? {} : { unread_rows: rows };
};

/** Why nothing could be read. */
export type IngestionFailure = Extract<FindingReason, "internal_error" | "gave_up" | "upload_too_large">;

export const failureFinding = (reason: IngestionFailure): IngestionFinding => ({
  ...{ ...NOTHING, outcome: "rejected", reason },
});

/** What is left of a finding about a domain that was deleted. The name of a file mostly contains the domain. */
export const deletedDomainFinding = ({ outcome }: StoredFinding): IngestionFinding => ({
  ...{ ...NOTHING, outcome, reason: "domain_deleted" },
});
