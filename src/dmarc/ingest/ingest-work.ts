import type { Authenticity, AuthenticityFinding } from "../authenticity/authenticity-verdict.ts";
import type { DomainRow, DomainStore } from "../domains/domain-store.ts";
import type { Context, Counting } from "./ingest-count.ts";
import type { CountStore } from "./ingest-store.ts";
import type { Finding } from "./ingest-finding.ts";
import { type Ending, type IngestionStore, isJudgedAgain, type NewIngestion } from "./ingestion-store.ts";
import type { Reading } from "../report/outcome.ts";
import type { Report } from "../report/report.ts";
import type { ReportStore } from "./report-store.ts";
import type { CountedRow, Rollup } from "./rollup.ts";

/** The stores that what was read goes into. */
export interface IngestStores {
  readonly ingestions: IngestionStore;
  readonly reports: ReportStore;
  readonly counts: CountStore;
  readonly domains: DomainStore;
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
  readonly readings: readonly Reading[];
  /** Set when it could not be read: there are no readings then. */
  readonly failure: "internal_error" | "gave_up" | "upload_too_large" | null;
  /** Whether it is a mail, whose authenticity can be judged. */
  readonly isMail: boolean;
  /** What was found out about that already. */
  readonly proof: AuthenticityFinding | null;
  /** Reports that say something else under the same name, by their number, and how authentic the mail is that brought them. */
  readonly rivals: ReadonlyMap<number, Authenticity | "pending">;
  /** Large reports, by the report they are of. */
  readonly staged: ReadonlyMap<Report, StagedReport>;
}

/** What was written down. */
export interface Written {
  readonly ingestion: NewIngestion;
  readonly ending: Ending;
  /** Numbers of reports that it replaced: they do not count any more, and some of their rows are still to be removed. */
  readonly replaced: readonly number[];
}

/** What the works of one transaction share. */
export interface Batch extends Context {
  readonly stores: IngestStores;
  readonly counting: Counting;
  readonly rollup: Rollup;
  /** As in `Written`, of the work that is being written. */
  readonly replaced: number[];
  /** The enrolled domain that a policy domain of an owner belongs to. */
  readonly cover: (owner: Work["ingestion"], policyDomain: string) => DomainRow | undefined;
  /** A report arrived for a domain; with `isNews` one to be looked at by the alert rules. */
  readonly touch: (domain: DomainRow, receivedAtMs: number, isNews: boolean) => void;
}

/** One reading of a work, with the ids of the reports that findings of the work named before. */
export interface Place {
  readonly work: Work;
  readonly reading: Reading;
  readonly named: Set<string>;
}

/** Why a domain that wants authentic reports only must not have this one; null when it may. Files are vouched for by who has them. */
export const refusalOf = (
  { ingestion, proof }: Pick<Work, "ingestion" | "proof">,
  domain: DomainRow,
): "not_authentic" | "authenticity_unknown" | null => {
  if (!domain.requireAuthenticReports || ingestion.via !== "smtp" || ingestion.mode === "test") return null;
  if (proof?.authenticity === "pass") return null;
  return proof?.authenticity === "fail" ? "not_authentic" : "authenticity_unknown";
};

/** What is said of a report that is refused. Who was not judged may be later, like whom the DNS did not tell enough of. */
export const refusedAs = (
  { ingestion, proof }: Pick<Work, "ingestion" | "proof">,
  reason: NonNullable<ReturnType<typeof refusalOf>>,
  nowMs: number,
): Pick<Finding, "outcome" | "reason" | "doubt"> => {
  const refused = { outcome: "quarantined", reason } as const;
  if (reason === "not_authentic") return refused;
  const again = (proof === null || proof.temporary === true) && isJudgedAgain(ingestion.receivedAtMs, nowMs);
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
