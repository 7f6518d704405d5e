import { organisationalDomain } from "../../mail/organisational-domain.ts";
import type { AuthenticationResults } from "../authentication/authentication-results.ts";
import type { DomainRow, DomainStore } from "../domains/domain-store.ts";
import type { ReportAuthorStore } from "../domains/report-author-store.ts";
import type { WriteContext, RowCounter } from "./row-counter.ts";
import type { CountStore } from "./count-store.ts";
import type { IngestionFinding, FindingReason } from "./ingestion-finding.ts";
import { type IngestionResult, type IngestionStore, isJudgedAgain, type NewIngestion } from "./ingestion-store.ts";
import type { ReportReading } from "../report/outcome.ts";
import type { Report } from "../report/report.ts";
import { type ClaimedReporter, isReportersDomain } from "../report/reporter.ts";
import type { ReportStore } from "./report-store.ts";
import { type CountedReporter, type CountedRow, type Rollup, UNAUTHENTICATED } from "./rollup.ts";

/** The stores that what was read goes into. */
export interface IngestStores {
  readonly ingestions: IngestionStore;
  readonly reports: ReportStore;
  readonly counts: CountStore;
  readonly domains: DomainStore;
  readonly authors: Pick<ReportAuthorStore, "add">;
}

/** A report whose rows are written already, in a report that does not count yet. */
export interface StagedReport {
  readonly number: number;
  readonly id: string;
  /** `number` of the domain that it was written for. */
  readonly domain: number;
  readonly content: string;
  readonly placed: readonly CountedRow[];
}

/** Something that was read, and is to be written down. */
export interface Work {
  readonly ingestion: NewIngestion;
  /** Whether the database has never heard of it; else it waits there, and is still to be waiting when it is written. */
  readonly isNew: boolean;
  readonly readings: readonly ReportReading[];
  /** Set when it could not be read: there are no readings then. */
  readonly failure: "internal_error" | "gave_up" | "upload_too_large" | null;
  /** Whether it is a mail, whose authenticity can be judged. */
  readonly isMail: boolean;
  /** What was found out about that already. */
  readonly proof: AuthenticationResults | null;
  /** Large reports, by the report they are of. */
  readonly staged: ReadonlyMap<Report, StagedReport>;
}

/** What was written down. */
export interface Written {
  readonly ingestion: NewIngestion;
  readonly ending: IngestionResult;
  /** Numbers of reports that it replaced: they do not count any more, and some of their rows are still to be removed. */
  readonly replaced: readonly number[];
}

/** What the works of one transaction share. */
export interface Batch extends WriteContext {
  readonly stores: IngestStores;
  readonly counting: RowCounter;
  readonly rollup: Rollup;
  /** As in `Written`, of the work that is being written. */
  readonly replaced: number[];
  /** The enrolled domain that a policy domain of an owner belongs to. */
  readonly cover: (owner: Work["ingestion"], policyDomain: string) => DomainRow | undefined;
  /** A report arrived for a domain; with `isNews` one to be looked at by the alert rules. */
  readonly touch: (domain: DomainRow, receivedAtMs: number, isNews: boolean) => void;
}

/** One reading of a work, with the ids of the reports that findings of the work named before. */
export interface ReadingInWork {
  readonly work: Work;
  readonly reading: ReportReading;
  readonly named: Set<string>;
}

/** Whose word a report is. */
export interface ReportTrust {
  /** The owner handed it in, or its mail is authenticated as the reporter's. */
  readonly isTrusted: boolean;
  /** Of one that is not: the organisational domain that its mail is authenticated as, or `UNAUTHENTICATED`. */
  readonly author: string | null;
  /** The organisational domain that its mail is authenticated as; null for what the owner handed in or accepted. */
  readonly authenticatedAs: string | null;
}

const VOUCHED_FOR: ReportTrust = { isTrusted: true, author: null, authenticatedAs: null };
const OF_NOBODY: ReportTrust = { isTrusted: false, author: UNAUTHENTICATED, authenticatedAs: null };

/** Whether it is mail that anybody may have sent: to the receiver, or to a mailbox from which it was fetched. */
export const isUnsolicitedMail = ({ via }: Pick<NewIngestion, "via">): boolean => via === "smtp" || via === "imap";

/**
 * Whose word a report is. Files are vouched for by who has them, mails by an owner who accepted them, and nothing of test keys
 * is judged.
 */
export const reportTrust = (
  { ingestion, proof }: Pick<Work, "ingestion" | "proof">,
  of: ClaimedReporter,
): ReportTrust => {
  if (!isUnsolicitedMail(ingestion) || ingestion.mode === "test") return VOUCHED_FOR;
  if (proof?.authenticity === "pass" && proof.from !== null) {
    const author = organisationalDomain(proof.from) ?? proof.from;
    if (isReportersDomain(author, of)) return { isTrusted: true, author: null, authenticatedAs: author };
    if (!isAccepted(ingestion)) return { isTrusted: false, author, authenticatedAs: author };
  }
  return isAccepted(ingestion) ? VOUCHED_FOR : OF_NOBODY;
};

const isAccepted = ({ acceptedAtMs }: NewIngestion): boolean => typeof acceptedAtMs === "number";

/** The reporter that a report is counted under. */
export const reporterOf = (
  { orgName }: ClaimedReporter,
  { author, authenticatedAs }: ReportTrust,
): CountedReporter => ({
  reporter: orgName?.toLowerCase() ?? "",
  author: author ?? authenticatedAs ?? "",
});

/** The sameness that a report is known by: those of different authors are never the same one. */
export const sameAs = (sameness: string, { author }: ReportTrust): string =>
  author === null ? sameness : `${sameness} ${author}`;

/** Why a report is not counted for a domain. */
export type ReportRefusal = Extract<FindingReason, "not_authentic" | "authenticity_unknown" | "other_author">;

/**
 * Why a report is not counted for a domain; null when it is. What is proven not to be from its sender never counts, and what the
 * DNS did not say enough about waits for that. A domain that accepts authenticated reports only takes those of the reporter.
 */
export const refusalOf = (
  work: Pick<Work, "ingestion" | "proof">,
  domain: DomainRow,
  { of, nowMs }: { readonly of: ClaimedReporter; readonly nowMs: number },
): ReportRefusal | null => {
  const { ingestion, proof } = work;
  const standing = reportTrust(work, of);
  if (standing.isTrusted) return null;
  if (proof?.authenticity === "fail") return "not_authentic";
  // Without bytes there is nothing to be judged again.
  if (isDoubtful(proof) && domain.rawRetentionDays > 0 && isJudgedAgain(ingestion.receivedAtMs, nowMs)) {
    return "authenticity_unknown";
  }
  if (!domain.requireAuthenticReports) return null;
  return standing.author === UNAUTHENTICATED ? "authenticity_unknown" : "other_author";
};

/** Whether the DNS may say more about a mail at another time. */
const isDoubtful = (proof: AuthenticationResults | null): boolean => proof?.temporary === true;

/** What is said of a report that is refused. Who was not judged may be later, like whom the DNS did not tell enough of. */
export const refusedAs = (
  { ingestion, proof }: Pick<Work, "ingestion" | "proof">,
  reason: ReportRefusal,
  nowMs: number,
): Pick<IngestionFinding, "outcome" | "reason" | "doubt" | "author"> => {
  const refused = { outcome: "quarantined", reason } as const;
  const from = proof?.from ?? null;
  if (reason === "other_author" && from !== null) return { ...refused, author: organisationalDomain(from) ?? from };
  if (reason !== "authenticity_unknown") return refused;
  const again = (proof === null || isDoubtful(proof)) && isJudgedAgain(ingestion.receivedAtMs, nowMs);
  return { ...refused, doubt: { message: proof?.message ?? null, again } };
};

/**
 * The enrolled domain that a policy domain belongs to. What came to an address that was revoked since does not count for
 * a domain that was enrolled after it came: that would bring the data of a deleted domain back.
 */
export const coveringDomain = (
  domains: DomainStore,
  ingestion: Work["ingestion"],
  policyDomain: string,
): DomainRow | undefined => {
  const found = domains.findCovering(ingestion, policyDomain);
  return found !== undefined && isTooLate(domains, ingestion, found) ? undefined : found;
};

/** See `coveringDomain`. */
export const isTooLate = (
  domains: DomainStore,
  { via, domain, receivedAtMs }: Work["ingestion"],
  { createdAtMs }: DomainRow,
): boolean =>
  via === "smtp" && receivedAtMs < createdAtMs && (domain === null || domains.findByNumber(domain) === undefined);
