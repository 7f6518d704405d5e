import { organisationalDomain } from "../../../foundation/mail/organisational-domain.ts";
import type { AuthenticationResults } from "../authentication/authentication-results.ts";
import type { Tx } from "../../../foundation/db/open.ts";
import type { DomainRow, DomainStore } from "../../records/domains/domain-store.ts";
import { type ReporterStore, VOUCHED_BY_NOBODY } from "../../records/domains/reporter-store.ts";
import { knownReporterOf, type ClaimedReporter, isReportersDomain, reporterBehind } from "../report/reporter.ts";
import type { FindingReason, IngestionFinding } from "./ingestion-finding.ts";
import { isAuthenticatedAgain, type NewIngestion } from "./ingestion-store.ts";
import { type CountedReporter, UNAUTHENTICATED } from "./rollup.ts";

/** What decides about the trust in a report: how it came, and the authentication results of its mail if that was authenticated. */
export interface ReportOrigin {
  readonly ingestion: NewIngestion;
  readonly authentication: AuthenticationResults | null;
}

/** Who authenticated a report. */
export interface ReportTrust {
  /** The owner handed it in or accepted it, or its mail is authenticated as the reporter's. */
  readonly isTrusted: boolean;
  /** Whether the owner handed it in or accepted it, or the reporter is known. Anybody can be another reporter. */
  readonly isKnown: boolean;
  /** Of a report that is not trusted: the organizational domain that its mail is authenticated as, or `UNAUTHENTICATED`. */
  readonly author: string | null;
  /** The organizational domain that its mail is authenticated as; null for what the owner handed in or accepted. */
  readonly authenticatedAs: string | null;
}

const BY_OWNER: ReportTrust = { isTrusted: true, isKnown: true, author: null, authenticatedAs: null };
const BY_NOBODY: ReportTrust = { isTrusted: false, isKnown: false, author: UNAUTHENTICATED, authenticatedAs: null };

/** Whether it is mail that anybody may have sent: to the receiver, or to a mailbox from which it was fetched. */
export const isUnsolicitedMail = ({ via }: Pick<NewIngestion, "via">): boolean => via === "smtp" || via === "imap";

/** Who authenticated a report that claims to be from a reporter. Test keys trust everything. */
export const reportTrust = ({ ingestion, authentication }: ReportOrigin, claimed: ClaimedReporter): ReportTrust => {
  if (!isUnsolicitedMail(ingestion) || ingestion.mode === "test") return BY_OWNER;
  const isAccepted = typeof ingestion.acceptedAtMs === "number";
  if (authentication?.authenticity === "pass" && authentication.from !== null) {
    const author = organisationalDomain(authentication.from) ?? authentication.from;
    const sender = { domain: authentication.from, localPart: authentication.localPart ?? null };
    const isKnown = isAccepted || knownReporterOf(sender) !== null;
    if (isReportersDomain(author, claimed)) return { isTrusted: true, isKnown, author: null, authenticatedAs: author };
    if (!isAccepted) return { isTrusted: false, isKnown: false, author, authenticatedAs: author };
  }
  return isAccepted ? BY_OWNER : BY_NOBODY;
};

/** The reporter under which a report is counted. */
export const countedReporter = (
  { orgName }: Pick<ClaimedReporter, "orgName">,
  { author, authenticatedAs }: ReportTrust,
): CountedReporter => ({ reporter: orgName?.toLowerCase() ?? "", author: author ?? authenticatedAs ?? "" });

/** The voucher under which a report about a day is counted, and notes its reporter. */
export const voucherFor = (
  { stores, tx }: { readonly stores: { readonly reporters: ReporterStore }; readonly tx: Tx },
  { number }: Pick<DomainRow, "number">,
  { claimed, trust, day }: { readonly claimed: ClaimedReporter; readonly trust: ReportTrust; readonly day: number },
): number => {
  const { isTrusted, isKnown, authenticatedAs } = trust;
  if (!isTrusted) return VOUCHED_BY_NOBODY;
  const author = authenticatedAs ?? reporterBehind(claimed.orgName?.toLowerCase() ?? "");
  return stores.reporters.vouch(tx, number, { author, isKnown, day });
};

/** The fingerprint under which a report is stored. Reports of different authors are never the same report. */
export const authoredFingerprint = (fingerprint: string, { author }: ReportTrust): string =>
  author === null ? fingerprint : `${fingerprint} ${author}`;

/** Why a report does not count for a domain. */
export type ReportRefusal = Extract<FindingReason, "not_authentic" | "authenticity_unknown" | "other_author">;

/**
 * Why a report does not count for a domain; null when it does. A mail that failed authentication never counts, and one whose
 * authentication may succeed later waits for that. A domain that requires authenticated reports accepts those of the reporter.
 */
export const reportRefusal = (
  origin: ReportOrigin,
  domain: DomainRow,
  { claimed, nowMs }: { readonly claimed: ClaimedReporter; readonly nowMs: number },
): ReportRefusal | null => {
  const { ingestion, authentication } = origin;
  const trust = reportTrust(origin, claimed);
  if (trust.isTrusted) return null;
  if (authentication?.authenticity === "fail") return "not_authentic";
  // Without kept bytes the mail cannot be authenticated again.
  const isKept = domain.rawRetentionDays > 0;
  if (authentication?.temporary === true && isKept && isAuthenticatedAgain(ingestion.receivedAtMs, nowMs)) {
    return "authenticity_unknown";
  }
  if (!domain.requireAuthenticReports) return null;
  return trust.author === UNAUTHENTICATED ? "authenticity_unknown" : "other_author";
};

/** What the finding says about a refused report. */
export const refusedFinding = (
  { ingestion, authentication }: ReportOrigin,
  reason: ReportRefusal,
  nowMs: number,
): Pick<IngestionFinding, "outcome" | "reason" | "doubt" | "author"> => {
  const refused = { outcome: "quarantined", reason } as const;
  const from = authentication?.from ?? null;
  if (reason === "other_author" && from !== null) return { ...refused, author: organisationalDomain(from) ?? from };
  if (reason !== "authenticity_unknown") return refused;
  const isOpen = authentication === null || authentication.temporary === true;
  const again = isOpen && isAuthenticatedAgain(ingestion.receivedAtMs, nowMs);
  return { ...refused, doubt: { message: authentication?.message ?? null, again } };
};

/**
 * Finds the enrolled domain that a policy domain belongs to, with one query per policy domain. Mail to a revoked address
 * does not count for a domain that was enrolled later: that would bring the data of a deleted domain back.
 */
export const createEnrolledDomainFinder = (domains: DomainStore) => {
  const known = new Map<string, DomainRow | undefined>();
  return (ingestion: NewIngestion, policyDomain: string): DomainRow | undefined => {
    const { accountId, mode, via, domain, receivedAtMs } = ingestion;
    const key = `${accountId} ${mode} ${policyDomain}`;
    if (!known.has(key)) known.set(key, domains.findCovering({ accountId, mode }, policyDomain));
    const found = known.get(key);
    const isOlder = found !== undefined && via === "smtp" && receivedAtMs < found.createdAtMs;
    return isOlder && (domain === null || domains.findByNumber(domain) === undefined) ? undefined : found;
  };
};

export type FindEnrolledDomain = ReturnType<typeof createEnrolledDomainFinder>;
