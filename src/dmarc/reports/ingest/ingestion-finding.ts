import { z } from "zod";
import type { OutcomeReason, ReportReading, PeriodProblem } from "../report/report.ts";
import { UNAUTHENTICATED } from "./rollup.ts";

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
  /** The same report with another id is stored already. */
  | "other_report_id"
  /** The report was stored until the same one came from its reporter, or from the owner. */
  | "replaced"
  /** The domain has 1,000 failure reports of that day already. */
  | "failure_reports_limit"
  /** The report was about a domain that has been deleted. */
  | "domain_deleted"
  /** The files of the upload unpack to more than one upload may. */
  | "upload_too_large"
  /** A bug. The bytes are kept, and the ingestion can be retried. */
  | "internal_error"
  /** Reading it did not end. */
  | "took_too_long"
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
  /** Of a `failure_report` that is a complaint of a recipient (`Feedback-Type: abuse`). */
  complaint: z.literal(true).optional(),
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
export const parseFindings = ({ findings }: { findings: string | null }): StoredFinding[] =>
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
  reason: null,
  name: null,
  report_id: null,
  domain_id: null,
  domain: null,
  org_name: null,
  external_report_id: null,
} as const;

/** The finding that follows from what was parsed alone. */
export const ingestionFinding = (reading: ReportReading): IngestionFinding => {
  const { outcome, reason, name, line, report, tlsReport, failureReport } = reading;
  return {
    ...NOTHING,
    outcome,
    reason,
    name,
    domain: report?.policy.domain ?? tlsReport?.policies[0]?.domain ?? failureReport?.reportedDomain ?? null,
    org_name: report?.orgName ?? tlsReport?.orgName ?? null,
    external_report_id: report?.reportId ?? tlsReport?.reportId ?? null,
    ...(line === null ? {} : { line }),
    ...(failureReport?.feedbackType === "abuse" ? { complaint: true } : {}),
    ...unreadRows(report),
  };
};

const unreadRows = (report: ReportReading["report"]): Pick<StoredFinding, "unread_rows"> => {
  const rows = (report?.skippedRows ?? []).reduce((sum, skipped) => sum + skipped.rows, 0);
  return rows === 0 ? {} : { unread_rows: rows };
};

/** Why nothing could be read. */
export type IngestionFailure = Extract<
  FindingReason,
  "internal_error" | "took_too_long" | "gave_up" | "upload_too_large"
>;

export const failureFinding = (reason: IngestionFailure): IngestionFinding => ({
  ...NOTHING,
  outcome: "rejected",
  reason,
});

/** What is left of a finding about a domain that was deleted. The name of a file mostly contains the domain. */
export const deletedDomainFinding = ({ outcome }: StoredFinding): IngestionFinding => ({
  ...NOTHING,
  outcome,
  reason: "domain_deleted",
});

const MESSAGES: Readonly<Record<FindingReason, string>> = {
  no_records: "The report is valid and contains no records.",
  no_usable_rows: "The report is valid, but none of its records has a source IP and a count.",
  unused: "The mail only says that there was nothing to report.",
  failure_report:
    "A failure report about a single message; it is not counted. With `store_failure_reports` of the domain, it is stored.",
  failure_reports_limit:
    "A failure report; the domain has 1,000 of that day already. The mail is stored, the report is not.",
  delivery_report: "A bounce or another message of a mail system, not a report.",
  tls_report: "A TLS report (RFC 8460).",
  entry_too_large: "A file in it is too large when unpacked.",
  mail_too_large: "It is too large when unpacked.",
  too_many_entries: "The archive contains too many files.",
  nested_too_deep: "Archives or mails are nested too deeply.",
  gzip_damaged: "The gzip file is damaged.",
  zip_damaged: "The zip archive is damaged.",
  zip_encrypted: "The zip archive is encrypted.",
  zip_method_unsupported: "The zip archive uses an unsupported compression method.",
  doctype: "The XML contains a DOCTYPE; rejected.",
  not_a_report: "The XML is not a DMARC report.",
  malformed: "The XML is malformed.",
  truncated: "A part of the report is missing, or its tags do not match. It is not counted.",
  too_deep: "The XML is nested too deeply.",
  too_many_records: "The report has too many records.",
  domain_missing: "The report does not name its policy domain.",
  period_missing: "The report does not name its period.",
  message_too_large: "The mail is too large.",
  message_too_complex: "The mail has too many parts, or parts nested too deeply.",
  tls_report_damaged: "The TLS report is damaged.",
  no_report: "It contains no report.",
  foreign_domain: "The report is about a domain that is not enrolled. Enroll the domain, then retry the ingestion.",
  not_authentic:
    "The mail failed SPF, DKIM and DMARC, so its report is not counted. If you know that it is genuine, retry it with accept_unauthenticated.",
  authenticity_unknown: "The mail is not authenticated; this domain accepts authenticated reports only.",
  other_author:
    "The mail is authenticated as another domain than the reporter's; this domain accepts authenticated reports only.",
  period_in_future: "The period of the report is in the future.",
  period_too_long: "The period of the report is longer than 400 days.",
  older_than_retention:
    "The report is stored, but is older than the domain's retention and will be removed within the hour.",
  duplicate_differs: "The same report with different records is stored already. The first one counts.",
  other_report_id: "The same report with another id is stored already: the same reporter, period and rows.",
  replaced: "The same report arrived from its reporter, or was uploaded. Only the other one counts.",
  domain_deleted: "The report was about a domain that has been deleted, with all its data.",
  upload_too_large: "The files of the upload are too large when unpacked. Retry this one alone.",
  internal_error: "An internal error occurred. The ingestion can be retried.",
  took_too_long: "Reading did not end within a minute. The bytes are kept, and the ingestion can be retried.",
  gave_up: "The service stopped several times while reading this ingestion. It can be retried.",
};

const MESSAGES_BY_OUTCOME: Readonly<Record<StoredFinding["outcome"], string>> = {
  stored: "The report is stored.",
  duplicate: "The report is stored already.",
  empty: "It contains nothing to count.",
  quarantined: "It is stored, but not counted.",
  rejected: "It could not be read.",
};

/** Where the outcome changes the meaning of the reason. */
const MESSAGES_BY_OUTCOME_AND_REASON: Readonly<Record<string, string>> = {
  "stored duplicate_differs":
    "The report replaced another one with different records, whose mail was not authenticated.",
  "stored failure_report": "The failure report about a single message is stored. It is not counted.",
  "stored tls_report": "The TLS report (RFC 8460) is stored.",
  "duplicate tls_report": "The TLS report (RFC 8460) is stored already.",
  "quarantined tls_report": "A TLS report (RFC 8460) about no enrolled domain.",
};

const COMPLAINT =
  "A complaint of a recipient about a message (`Feedback-Type: abuse`), not a DMARC report. It is not counted.";

type FindingDetails = Partial<
  Pick<StoredFinding, "doubt" | "line" | "author" | "org_name" | "unread_rows" | "complaint">
>;

/** What a finding means, in one or two sentences; undefined for a reason of another version. */
export const findingMessage = (
  outcome: string,
  reason: string | null,
  details: FindingDetails = {},
): string | undefined => {
  const message = messageOf(outcome, reason, details);
  const rows = details.unread_rows ?? 0;
  if (outcome !== "stored" || rows === 0 || message === undefined) return message;
  const what = rows === 1 ? "One of its rows" : `${rows.toLocaleString("en-US")} of its rows`;
  return `${message} ${what} cannot be read and ${rows === 1 ? "is" : "are"} not counted; \`skipped_rows\` of the report says why.`;
};

/** What the finding means that decided the outcome of a mail or file; empty for a reason of another version. */
export const conclusionMessage = (row: IngestionConclusionRow): string => {
  const deciding = parseFindings(row).find(({ outcome, reason }) => outcome === row.outcome && reason === row.reason);
  return findingMessage(row.outcome ?? "", row.reason, deciding) ?? "";
};

interface IngestionConclusionRow {
  readonly outcome: StoredFinding["outcome"] | null;
  readonly reason: string | null;
  readonly findings: string | null;
}

const messageOf = (
  outcome: string,
  reason: string | null,
  { doubt, line, author, complaint, org_name: claimed = null }: FindingDetails,
): string | undefined => {
  if (reason === "failure_report" && complaint === true) {
    return outcome === "stored" ? `${COMPLAINT} It is stored with the failure reports of the domain.` : COMPLAINT;
  }
  if (reason === "authenticity_unknown" && doubt !== undefined) return doubtMessage(doubt);
  if (outcome === "stored" && reason === null && author !== undefined) return untrustedMessage(author, claimed);
  if (reason === "other_author" && author !== undefined) {
    return `The mail is authenticated as ${author}, but ${claimMessage(claimed)}; this domain accepts authenticated reports only.`;
  }
  if (reason === "truncated" && line !== undefined) {
    return `A part of the report is missing, or its tags do not match, at or before line ${line}. It is not counted.`;
  }
  const messages: Readonly<Record<string, string>> = reason === null ? MESSAGES_BY_OUTCOME : MESSAGES;
  return MESSAGES_BY_OUTCOME_AND_REASON[`${outcome} ${reason}`] ?? messages[reason ?? outcome];
};

const claimMessage = (name: string | null) =>
  name === null ? "its report names no reporter" : `its report claims to be from ${name}`;

const untrustedMessage = (author: string, claimed: string | null) => {
  const mail = author === UNAUTHENTICATED ? "Its mail is not authenticated" : `Its mail is authenticated as ${author}`;
  return `The report is stored. ${mail}, but ${claimMessage(claimed)}: it is counted separately, and advice ignores it.`;
};

const doubtMessage = ({ message, again }: NonNullable<StoredFinding["doubt"]>) => {
  if (!again) return message === null ? MESSAGES.authenticity_unknown : `${MESSAGES.authenticity_unknown} ${message}`;
  const cause = message === null ? "." : `: ${message}`;
  return `The mail is not authenticated yet${cause} It will be checked again within a day.`;
};
