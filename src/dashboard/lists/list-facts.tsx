import { type JobQueries, listTitle } from "../../bulk/job-queries.ts";
import type { JobRow } from "../../bulk/results/job-store.ts";
import type { BulkJobs } from "../../bulk/jobs.ts";
import { Badge } from "../components/badge.tsx";
import { StackBar, type StackPart } from "../components/chart.tsx";
import { Link } from "../components/link.tsx";
import { countText, Num, numberText, Percent } from "../components/number.tsx";
import { Table } from "../components/table.tsx";
import { Time } from "../components/time.tsx";
import { type PauseReason, stateWords, timeLeftText } from "./list-words.ts";

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

/** A list as its job object says, and who started it. */
export interface ListFacts {
  readonly job: JobRow;
  readonly verdicts: { readonly deliverable: number; readonly risky: number; readonly undeliverable: number };
  readonly secondsLeft: number | null;
  readonly pausedReason: PauseReason | null;
  readonly startedBy: string;
}

/** The verdicts of a list as the parts of its bar; `rest`: what is not finished. */
export const verdictParts = ({ verdicts, job }: Pick<ListFacts, "verdicts" | "job">): StackPart[] => [
  { title: "Deliverable", kind: "ok", value: verdicts.deliverable },
  { title: "Risky", kind: "warn", value: verdicts.risky },
  { title: "Undeliverable", kind: "bad", value: verdicts.undeliverable },
  ...(job.rowsEmpty > 0 ? [{ title: "Without an address", kind: "unknown" as const, value: job.rowsEmpty }] : []),
  ...(job.rowsFinished < job.rowsTotal
    ? [{ title: "To do", kind: "rest" as const, value: job.rowsTotal - job.rowsFinished }]
    : []),
];

const Progress = ({ job, verdicts, secondsLeft }: ListFacts) => {
  const isRunning = job.status === "running" || job.status === "queued";
  // The share of a few rows says nothing about the list.
  const isStopped = !isRunning && job.rowsFinished < job.rowsTotal;
  return (
    <>
      <StackBar parts={verdictParts({ job, verdicts })} hasLegend={false} />
      <span class="second">
        {isRunning && (
          <>
            <Percent part={job.addressesFinished} whole={job.addressesTotal} />
            {secondsLeft !== null && `, ${timeLeftText(secondsLeft)}`}
          </>
        )}
        {isStopped && `${numberText(job.rowsFinished)} of ${countText(job.rowsTotal, "row")} finished`}
        {!isRunning && !isStopped && (
          <>
            <Percent part={verdicts.deliverable} whole={job.rowsFinished - job.rowsEmpty} /> deliverable
          </>
        )}
      </span>
    </>
  );
};

const columns = [
  { title: "List" },
  { title: "Status", isWide: true },
  { title: "Results" },
  { title: "Addresses", align: "end", isWide: true },
  { title: "Started", isWide: true },
] as const;

/** The lists of an account, one a row. */
export const ListTable = ({ lists }: { readonly lists: readonly ListFacts[] }) => (
  <Table
    caption="Lists, newest first"
    columns={columns}
    rows={lists.map((facts) => {
      const { job, pausedReason, startedBy } = facts;
      const { kind, label } = stateWords(job.status, pausedReason);
      return {
        key: job.id,
        cells: [
          <>
            <Link href={`/lists/${job.id}`} class="plain clamp">
              {listTitle(job.name)}
            </Link>
            <span class="second">{countText(job.rowsTotal, "row")}</span>
            <span class="narrow-only">
              <Badge kind={kind}>{label}</Badge>
            </span>
          </>,
          <Badge kind={kind}>{label}</Badge>,
          <Progress {...facts} />,
          <Num value={job.addressesTotal} />,
          <>
            <Time atMs={job.createdAtMs} />
            <span class="second clamp">by {startedBy}</span>
          </>,
        ],
      };
    })}
  />
);
