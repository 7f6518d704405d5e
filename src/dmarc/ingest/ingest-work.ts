import type { AuthenticityFinding } from "../authenticity/authenticity-verdict.ts";
import type { DomainRow, DomainStore } from "../domains/domain-store.ts";
import type { Context, Counting } from "./ingest-count.ts";
import type { CountStore } from "./ingest-store.ts";
import type { Ending, IngestionStore, NewIngestion } from "./ingestion-store.ts";
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
  readonly failure: "internal_error" | "gave_up" | null;
  /** Whether it is a mail, whose authenticity can be judged. */
  readonly isMail: boolean;
  /** What was found out about that already. */
  readonly proof: AuthenticityFinding | null;
  /** Large reports, by the report they are of. */
  readonly staged: ReadonlyMap<Report, StagedReport>;
}

/** What was written down. */
export interface Written {
  readonly ingestion: NewIngestion;
  readonly ending: Ending;
}

/** What the works of one transaction share. */
export interface Batch extends Context {
  readonly stores: IngestStores;
  readonly counting: Counting;
  readonly rollup: Rollup;
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

/** Whether a domain that wants authentic reports only must not have this one. */
export const isForged = ({ ingestion, proof }: Work, domain: DomainRow): boolean =>
  domain.requireAuthenticReports && ingestion.via === "smtp" && proof?.authenticity === "fail";
