import { z } from "zod";
import type { ReportOutcome, OutcomeReason, ReportReading } from "../report/outcome.ts";
import type { PeriodProblem } from "./report-period.ts";

/** Why a finding is what it is, beside what reading alone can say. */
export type FindingReason =
  | OutcomeReason
  /** The report is about a domain that the account has not enrolled. */
  | "foreign_domain"
  /** The mail failed SPF, DKIM and DMARC. */
  | "not_authentic"
  /** Whether the mail is authenticated is not known (yet), and is to be judged again or the domain accepts no such reports. */
  | "authenticity_unknown"
  /** The domain accepts authenticated reports only, and the mail is authenticated as somebody else's than the reporter's. */
  | "other_author"
  /** The report is about days that are still to come, or about so many that none can be named. */
  | PeriodProblem
  /** Stored, but so old that the domain's retention removes it within the hour. */
  | "older_than_retention"
  /** The report is there already, with other rows: the first one was kept. */
  | "duplicate_differs"
  /** It was stored, until the same report came from its reporter, or from the owner; that one counts. */
  | "replaced"
  /** The domain has so many failure reports of that day already. */
  | "failure_reports_limit"
  /** It was about a domain that was deleted since: no more is known of it. */
  | "domain_deleted"
  /** The files of its upload unpack to more than one upload may. */
  | "upload_too_large"
  /** A bug of ours. The bytes are kept, and reading can be tried again. */
  | "internal_error"
  /** ReportReading was begun several times, and the service never lived to see its end. */
  | "gave_up";

/** What was found in one place of a mail or file, and what became of it. The names are those of the interface. */
export interface IngestionFinding {
  readonly outcome: ReportOutcome;
  /** Null when there is nothing to explain. */
  readonly reason: FindingReason | null;
  /** The name of the part or entry; null where it has none. */
  readonly name: string | null;
  /** Our id of the report that is stored, also when it was so before. */
  readonly report_id: string | null;
  /** The enrolled domain that it counts for. */
  readonly domain_id: string | null;
  /** The domain that it is about, as it says. */
  readonly domain: string | null;
  readonly org_name: string | null;
  /** The id that the reporter gave it. */
  readonly external_report_id: string | null;
  /** Of a report that is not counted as its reporter's: who its mail is authenticated as, or `UNAUTHENTICATED`. */
  readonly author?: string;
  /** Of `truncated` XML: the line where a piece is found to be missing; told in the sentence about it. */
  readonly line?: number;
  /** Of `authenticity_unknown`; told in the sentence about it. */
  readonly doubt?: AuthenticationDoubt;
}

/** Why nobody knows whether a mail is authentic. */
export interface AuthenticationDoubt {
  /** A sentence for people; null when the mail was not judged. */
  readonly message: string | null;
  /** Whether it is judged again by itself. */
  readonly again: boolean;
}

/** What became of all of a mail or file. */
export interface IngestionConclusion {
  readonly outcome: ReportOutcome;
  readonly reason: FindingReason | null;
}

/** The most telling first. */
const OUTCOMES_BY_WEIGHT: readonly ReportOutcome[] = ["rejected", "quarantined", "stored", "duplicate", "empty"];

/** The most telling of some findings; of equals the first. Nothing found at all cannot happen, and is called a bug. */
export const ingestionConclusion = (findings: readonly IngestionFinding[]): IngestionConclusion => {
  for (const outcome of OUTCOMES_BY_WEIGHT) {
    const telling = findings.find((finding) => finding.outcome === outcome);
    if (telling !== undefined) return { outcome, reason: telling.reason };
  }
  return { outcome: "rejected", reason: "internal_error" };
};

/** The finding that says no more than a reading does. */
export const ingestionFinding = ({
  outcome,
  reason,
  name,
  line,
  report,
  tlsReport,
  failureReport,
}: ReportReading): IngestionFinding => ({
  outcome,
  reason,
  name,
  report_id: null,
  domain_id: null,
  domain: report?.policy.domain ?? tlsReport?.policies[0]?.domain ?? failureReport?.reportedDomain ?? null,
  org_name: report?.orgName ?? tlsReport?.orgName ?? null,
  external_report_id: report?.reportId ?? tlsReport?.reportId ?? null,
  ...(line === null ? {} : { line }),
});

/** The finding for what could not be dealt with at all. */
export const failureFinding = (reason: "internal_error" | "gave_up" | "upload_too_large"): IngestionFinding => ({
  outcome: "rejected",
  reason,
  name: null,
  report_id: null,
  domain_id: null,
  domain: null,
  org_name: null,
  external_report_id: null,
});

const text = z.string().nullable();

/** One finding, as the interface shows it. */
export const findingSchema = z
  .object({
    outcome: z.enum(["stored", "duplicate", "empty", "quarantined", "rejected"]),
    reason: text.meta({ description: "Why; null when there is nothing to explain." }),
    message: z.string().meta({ description: "What that means, in a sentence." }),
    name: text.meta({ description: "The name of the part of the mail, or of the entry of the archive." }),
    report_id: text.meta({ description: "The stored report, also when it was there before." }),
    domain_id: text.meta({ description: "The enrolled domain that it counts for." }),
    domain: text.meta({ description: "The domain that it is about." }),
    org_name: text,
    authenticated_as: text.meta({
      description:
        "Of a report that does not count as its reporter's: the organization that its mail is authenticated as. Null otherwise, and when it is not authenticated.",
    }),
    external_report_id: text.meta({ description: "The id that the reporter gave it." }),
  })
  .meta({ title: "DmarcFinding" });
