import { type Command, Option } from "commander";
import { JOB_STATUSES } from "../bulk/results/schemas.ts";
import { exportRows } from "../bulk/results/job-rows.ts";
import type { BulkJobs } from "../bulk/jobs.ts";
import { writeResults } from "../bulk/results/results-csv.ts";
import { type AccountOptions, addCommand, addGroup, ofAccount, readLimit } from "./command.ts";
import { type Io, print } from "./io.ts";
import { withService } from "./service.ts";
import { table, tableTime } from "./terminal-text.ts";

const SHOWN_DEFAULT = 50;
const SHOWN_MAX = 1_000;

type JobView = ReturnType<BulkJobs["describe"]>;

const rowOf = ({ id, name, status, created_at, rows, verdicts, credits }: JobView): string[] => [
  ...[id, name ?? "", status, tableTime(created_at), `${rows.finished} of ${rows.total}`],
  ...[verdicts.deliverable, verdicts.risky, verdicts.undeliverable, credits.charged].map(String),
];

const jobTable = (jobs: readonly JobView[], { columns }: Io): string =>
  table(
    ["ID", "NAME", "STATUS", "CREATED", "ROWS", "DELIVERABLE", "RISKY", "UNDELIVERABLE", "CHARGED"],
    jobs.map(rowOf),
    columns,
  );

/** `jobs list | show | results | cancel | retry | remove`, also as `lists`: the lists that an account has submitted. */
export const addJobCommands = (program: Command, io: Io): void => {
  const group = addGroup(program, "jobs", {
    description: "Show, cancel and retry the lists of an account, and write their results.",
    example: "jobs list --account acme",
  }).alias("lists");
  addJobList(group, io);
  addJobResults(group, io);
  addJobCommand(group, io, {
    name: "show",
    description: "Show a list with its counts.",
    act: async (bulk, caller, id) => bulk.find(caller, id),
  });
  addJobCommand(group, io, {
    name: "cancel",
    description:
      "End a list early; finished rows stay, the other credits are released. A running server stops within seconds.",
    audited: "jobs.cancel",
    act: (bulk, caller, id) => bulk.cancel(caller, id),
  });
  addJobCommand(group, io, {
    name: "retry",
    description: "Verify the unsettled addresses of a completed list again; the running server does the work.",
    audited: "jobs.retry",
    act: (bulk, caller, id) => bulk.retry(caller, id, null),
  });
  addJobRemove(group, io);
};

interface ListOptions extends AccountOptions {
  readonly status?: (typeof JOB_STATUSES)[number];
  readonly limit: string;
}

const addJobList = (group: Command, io: Io): Command =>
  ofAccount(
    addCommand(group, "list", { description: "List jobs, newest first.", example: "jobs list --status running" }),
    "lists",
  )
    .addOption(new Option("--status <status>", "only this status").choices([...JOB_STATUSES]))
    .option("--limit <n>", `how many, up to ${SHOWN_MAX}`, String(SHOWN_DEFAULT))
    .action((options: ListOptions) => {
      const page = { before: null, limit: readLimit(options.limit, SHOWN_MAX) };
      return withService(io, options, async ({ service: { bulk }, caller }) => {
        const jobs = bulk.jobs.list(caller, { status: options.status }, page).map((job) => bulk.jobs.describe(job));
        print(io, options.json, { jobs }, () => jobTable(jobs, io));
      });
    });

type Act = (bulk: BulkJobs, ...args: Parameters<BulkJobs["cancel"]>) => ReturnType<BulkJobs["cancel"]>;

interface JobCommand {
  readonly name: string;
  readonly description: string;
  /** The name of the action in the audit log. */
  readonly audited?: string;
  readonly act: Act;
}

const EXAMPLE_ID = "019aa0d6-5b7e-7c31-9f4c-0d9a3c3f1a52";

const addJobCommand = (group: Command, io: Io, { name, description, audited, act }: JobCommand): Command =>
  ofAccount(addCommand(group, name, { description, example: `jobs ${name} ${EXAMPLE_ID}` }), "lists")
    .argument("<id>", "id of the job")
    .action((id: string, options: AccountOptions) =>
      withService(io, options, async ({ service: { bulk }, caller, perform }) => {
        const work = () => act(bulk.jobs, caller, id);
        const job = bulk.jobs.describe(
          await (audited === undefined ? work() : perform({ action: audited, subject: id }, work)),
        );
        print(io, options.json, job, () => jobTable([job], io));
      }),
    );

const addJobRemove = (group: Command, io: Io): Command =>
  ofAccount(
    addCommand(group, "remove", {
      description: "Delete a list that has ended, with its results.",
      example: `jobs remove ${EXAMPLE_ID}`,
    }),
    "lists",
  )
    .argument("<id>", "id of the job")
    .action((id: string, options: AccountOptions) =>
      withService(io, options, async ({ service: { bulk }, caller, perform }) => {
        await perform({ action: "jobs.remove", subject: id }, () => bulk.jobs.remove(caller, id));
        await bulk.jobs.removed();
        print(io, options.json, { removed: id }, () => `Removed ${id}.`);
      }),
    );

const addJobResults = (group: Command, io: Io): void => {
  ofAccount(
    addGroup(group, "results", {
      description: "Write the results of a list to standard output as CSV.",
      example: `jobs results ${EXAMPLE_ID} > results.csv`,
    }),
    "lists",
  )
    .argument("<id>", "id of the job")
    .option("--no-defuse", "do not prefix cells that a spreadsheet would run as formulas")
    .action((id: string, options: AccountOptions & { defuse: boolean }) =>
      withService(io, options, async ({ service: { bulk }, caller }) => {
        const { number } = bulk.jobs.find(caller, id);
        const rows = writeResults(bulk.jobs.formatOf(number), exportRows(bulk.run.lists, number), {
          defuse: options.defuse,
        });
        for await (const chunk of rows) await io.write(chunk);
      }),
    );
};
