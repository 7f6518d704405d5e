import { comparisonView } from "../bulk/comparisons.ts";
import { CHANGES, JOB_STATUSES } from "../bulk/results/schemas.ts";
import { exportRows } from "../bulk/results/job-rows.ts";
import type { BulkJobs } from "../bulk/jobs.ts";
import { EXPORT_COLUMNS, PRESETS, writeResults } from "../bulk/results/results-csv.ts";
import { VERDICTS } from "../verify/result.ts";
import { argument, choice, command, group, limit, option, required, type Terminal, toggle, unless } from "./command.ts";
import { inService } from "./service.ts";
import { tableTime } from "./terminal-text.ts";

type JobView = ReturnType<BulkJobs["describe"]>;

const rowOf = ({ id, name, status, created_at, rows, verdicts, credits }: JobView): string[] => [
  ...[id, name ?? "", status, tableTime(created_at), `${rows.finished} of ${rows.total}`],
  ...[verdicts.deliverable, verdicts.risky, verdicts.undeliverable, credits.charged].map(String),
];

const tableOf = ({ table }: Terminal, jobs: readonly JobView[]): string =>
  table(
    ["ID", "NAME", "STATUS", "CREATED", "ROWS", "DELIVERABLE", "RISKY", "UNDELIVERABLE", "CHARGED"],
    jobs.map(rowOf),
  );

const EXAMPLE_ID = "019aa0d6-5b7e-7c31-9f4c-0d9a3c3f1a52";
const ON = inService("lists");
const ARGS = { id: argument("<id>", "id of the list") };

const WITH = option("<id>", "id of the other list (default: the one before of the same name)");

interface JobCommand {
  readonly description: string;
  /** The name of the action in the audit log. */
  readonly audited?: string;
  readonly act: (bulk: BulkJobs, ...args: Parameters<BulkJobs["cancel"]>) => ReturnType<BulkJobs["cancel"]>;
}

const jobCommand = (name: string, { description, audited, act }: JobCommand) =>
  command({
    description,
    example: `lists ${name} ${EXAMPLE_ID}`,
    on: ON,
    args: ARGS,
    async run(context, { id }) {
      const { caller, perform } = context;
      const { jobs } = context.service.bulk;
      const work = () => act(jobs, caller, id);
      const job = jobs.describe(
        await (audited === undefined ? work() : perform({ action: audited, subject: id }, work)),
      );
      context.print(job, () => tableOf(context, [job]));
    },
  });

/** The lists that an account has submitted. */
const LISTS = group(
  {
    description: "Show, cancel and retry the lists of an account, and write their results.",
    example: "lists list --account acme",
  },
  {
    list: command({
      description: "Show the lists of an account, newest first.",
      example: "lists list --status running",
      on: ON,
      options: { status: choice("<status>", JOB_STATUSES, "only this status"), limit: limit(50, 1_000) },
      run(context, { status, limit: shown }) {
        const { bulk } = context.service;
        const listed = bulk.jobs.list(context.caller, { status }, { before: null, limit: shown });
        const jobs = listed.map((job) => bulk.jobs.describe(job));
        context.print({ jobs }, () => tableOf(context, jobs));
      },
    }),
    results: command({
      description: "Write the results of a list to standard output as CSV.",
      example: `lists results ${EXAMPLE_ID} > results.csv`,
      json: null,
      on: ON,
      args: ARGS,
      options: {
        verdict: choice("<verdict>", VERDICTS, "only finished rows of this verdict"),
        columns: choice(
          "<columns>",
          EXPORT_COLUMNS,
          "the uploaded columns with the results, without them, or addresses",
        ),
        clean: toggle("addresses without the names and mailto: of their cells"),
        distinct: toggle("only the first row of each address"),
        preset: choice("<tool>", PRESETS, "columns as the import of this newsletter tool names them"),
        defuse: unless("do not prefix cells that a spreadsheet would run as formulas"),
      },
      async run({ service: { bulk }, caller, io }, { id, verdict, distinct, columns, clean, preset, defuse }) {
        const { number } = bulk.jobs.find(caller, id);
        const wanted = { filters: { verdict }, isDistinct: distinct || preset !== undefined };
        const rows = writeResults(bulk.jobs.formatOf(number), exportRows(bulk.run.lists, number, wanted), {
          columns,
          clean,
          preset,
          defuse,
        });
        for await (const chunk of rows) await io.write(chunk);
      },
    }),
    compare: command({
      description: "Compare a list with an earlier one: what became undeliverable, recovered, is new or gone.",
      example: `lists compare ${EXAMPLE_ID}`,
      on: ON,
      args: ARGS,
      options: { with: WITH },
      async run({ service: { bulk }, caller, print, table }, { id, with: other }) {
        const view = comparisonView(await bulk.comparisons.compare(caller, id, other));
        const rows = Object.entries(view.counts).map(([change, count]) => [change, String(count)]);
        print(
          view,
          () =>
            `Compared with ${view.with.id} of ${tableTime(view.with.created_at)}.\n\n${table(["CHANGE", "ADDRESSES"], rows)}`,
        );
      },
    }),
    changes: command({
      description: "Write the addresses of a change between two lists to standard output as CSV.",
      example: `lists changes ${EXAMPLE_ID} --change became_undeliverable > bounced.csv`,
      json: null,
      on: ON,
      args: ARGS,
      options: { with: WITH, change: required(choice("<change>", CHANGES, "what happened to the addresses")) },
      async run({ service: { bulk }, caller, io }, { id, with: other, change }) {
        const comparison = await bulk.comparisons.compare(caller, id, other);
        for await (const chunk of bulk.comparisons.csv(comparison, change)) await io.write(chunk);
      },
    }),
    show: jobCommand("show", {
      description: "Show a list with its counts.",
      act: async (bulk, caller, id) => bulk.find(caller, id),
    }),
    cancel: jobCommand("cancel", {
      description:
        "End a list early; finished rows stay, the other credits are released. A running server stops within seconds.",
      audited: "jobs.cancel",
      act: (bulk, caller, id) => bulk.cancel(caller, id),
    }),
    retry: jobCommand("retry", {
      description: "Verify the unsettled addresses of a completed list again; the running server does the work.",
      audited: "jobs.retry",
      act: (bulk, caller, id) => bulk.retry(caller, id, null),
    }),
    remove: command({
      description: "Delete a list that has ended, with its results.",
      example: `lists remove ${EXAMPLE_ID}`,
      on: ON,
      args: ARGS,
      async run({ service: { bulk }, caller, perform, print }, { id }) {
        await perform({ action: "jobs.remove", subject: id }, () => bulk.jobs.remove(caller, id));
        await bulk.jobs.removed();
        print({ removed: id }, () => `Removed ${id}.`);
      },
    }),
  },
);

export const LIST_COMMANDS = { lists: LISTS };
