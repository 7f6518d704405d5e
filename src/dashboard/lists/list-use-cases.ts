import type { JobQueries } from "../../bulk/job-queries.ts";
import type { JobRow } from "../../bulk/results/job-store.ts";
import type { BulkJobs } from "../../bulk/jobs.ts";
import type { ListFacts } from "./list-table.tsx";

/** The use cases behind the pages of lists. */
export interface ListUseCases {
  readonly bulk: BulkJobs;
  readonly queries: JobQueries;
  /** Who started a job, by its `keyId`: the address of a user or the name of a key. */
  readonly starterName: (keyId: string) => string;
}

/** A job as the pages show it. */
export const listFacts = ({ bulk, starterName }: ListUseCases, job: JobRow): ListFacts => {
  const { verdicts, estimated_seconds_left: secondsLeft, paused_reason: pausedReason } = bulk.describe(job);
  return { job, verdicts, secondsLeft, pausedReason, startedBy: starterName(job.keyId) };
};
