import { errorText } from "../foundation/base/errors.ts";
import { rmSync } from "node:fs";
import { open, rename } from "node:fs/promises";
import { systemClock } from "../foundation/base/clock.ts";
import type { Log } from "../foundation/base/log.ts";
import { type Random, sha256 } from "../foundation/base/secrets.ts";
import { HEADER_CHOICES, type HeaderChoice } from "../bulk/reading/columns-address.ts";
import { readRows, describeFormat } from "../bulk/reading/csv.ts";
import { type EncodingName, ENCODINGS, fileSource } from "../bulk/reading/csv-records.ts";
import { jobView } from "../bulk/results/job-object.ts";
import { type ListFile, type ListFileOptions, openListFile, hashOf } from "../bulk/arrival/submission.ts";
import { exportRows } from "../bulk/results/job-rows.ts";
import { writeResults as resultsOf } from "../bulk/results/results-csv.ts";
import type { JobRow } from "../bulk/results/job-store.ts";
import { AccountsSlice } from "../accounts/open.ts";
import { type BulkRunDeps, BulkRun } from "../bulk/open.ts";
import type { Config } from "../service/config.ts";
import { takeServerLock } from "../foundation/db/database-files.ts";
import type { Db } from "../foundation/db/open.ts";
import { CommandFailed, type Io, print, UsageError } from "./io.ts";
import { checkPaths, type PathOptions, type Paths } from "./verify-file-paths.ts";
import { counted, showProgress } from "./progress.ts";
import { openDatabaseAt } from "./data-directory.ts";

export interface FileOptions extends PathOptions {
  readonly json?: boolean;
  readonly column?: string | undefined;
  readonly header?: string | undefined;
  readonly encoding?: string | undefined;
  readonly sheet?: string | undefined;
  readonly dryRun?: boolean;
}

export interface ListRun {
  readonly io: Io;
  readonly config: Config;
  readonly engine: BulkRunDeps["engine"];
  readonly log: Log;
  readonly random: Random;
}

const OWNER = "file";

const removeState = (state: string): void => {
  for (const ending of ["", "-wal", "-shm"]) rmSync(state + ending, { force: true });
};

const takeLock = (path: string) => {
  try {
    return takeServerLock(path);
  } catch (error) {
    throw new CommandFailed(`${path} is not writable: ${errorText(error)}`, "out");
  }
};

/** Locks the state file for this process. The returned function unlocks it and removes the lock files. */
const lockState = ({ state }: Paths) => {
  const path = `${state}-lock`;
  const lock = takeLock(path);
  if (lock === null)
    throw new CommandFailed(
      `Another process uses ${state}. Wait for it to end, or give another --out.`,
      "already_running",
    );
  return () => {
    lock.release();
    for (const ending of ["", "-journal"]) rmSync(path + ending, { force: true });
  };
};

/** The job of an earlier run of the same list with the same options; null when there is none. */
const findEarlier = ({ jobs }: BulkRun, fingerprint: string, { state }: Paths): JobRow | null => {
  const [job] = jobs.withStatus(["queued", "running", "completed"]);
  if (job === undefined) return null;
  if (job.name === fingerprint) return job;
  throw new CommandFailed(
    `${state} belongs to another list or other options. Finish that run first, or remove the file to discard it.`,
    "other_list",
  );
};

/** Stores the list as a job, with an account that has a credit for every row: files cost nothing. */
const storeList = async (
  db: Db,
  { intake }: BulkRun,
  { source, inspection, reading, name }: Entry,
): Promise<JobRow> => {
  const { shape } = inspection;
  const { accounts, store } = new AccountsSlice({ db, clock: systemClock });
  accounts.create(OWNER);
  accounts.grantCredits(OWNER, shape.rows, "a file");
  const accountId = store.findAccountByName(OWNER)?.id ?? "";
  const about = { name, source: null, webhookUrl: null, notifyEmail: null, format: shape, rowsMax: shape.rows };
  return intake.receive(
    { accountId, keyId: OWNER, mode: "live" },
    { ...about, reading, batches: readRows(source, shape) },
  );
};

interface Entry extends ListFile {
  /** The same for the same list with the same options. */
  readonly name: string;
}

/** Writes the results to a temporary file first, so that `out` is complete or does not exist. */
const writeResults = async ({ jobs, lists }: BulkRun, job: JobRow, out: string): Promise<void> => {
  const file = await open(`${out}.part`, "w");
  try {
    const results = resultsOf(jobs.formatOf(job.number), exportRows(lists, job.number));
    for await (const chunk of results) await file.writeFile(chunk);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(`${out}.part`, out);
};

const openState = (state: string): Db => {
  const db = openDatabaseAt(state);
  const isCutOff = db.sqlite
    .query("SELECT 1 FROM bulk_jobs WHERE status NOT IN ('queued', 'running', 'completed')")
    .get();
  if (isCutOff === null) return db;
  // The list was not stored completely, so no address has been verified yet.
  db.close();
  removeState(state);
  return openDatabaseAt(state);
};

const runJob = async (db: Db, bulk: BulkRun, job: JobRow, io: Io): Promise<JobRow> => {
  const look = () => bulk.jobs.get(job.number) ?? job;
  bulk.runner.start();
  const hide = showProgress(io, () => ({ job: look(), forecast: bulk.runner.forecast(look()) }));
  const signal = await Promise.race([bulk.runner.untilEnded(job.number), io.untilSignal()]);
  hide();
  if (typeof signal === "string" && look().status !== "completed") {
    await bulk.runner.stop();
    db.close();
    throw new CommandFailed("Interrupted. Run the same command again to resume.", "interrupted");
  }
  return look();
};

/** Reads `--header`. */
const headerChoiceOf = ({ header = "auto" }: FileOptions): HeaderChoice => {
  const choice = HEADER_CHOICES.find((known) => known === header);
  if (choice === undefined) throw new UsageError(`--header: "${header}" is not auto, true or false.`);
  return choice;
};

/** Reads `--encoding`. */
const encodingOf = ({ encoding }: FileOptions): EncodingName | undefined => {
  const name = ENCODINGS.find((known) => known === encoding?.toLowerCase());
  if (encoding !== undefined && name === undefined)
    throw new UsageError(`--encoding: "${encoding}" is not one of ${ENCODINGS.join(", ")}.`);
  return name;
};

/** How the options want the list to be read. */
export const layoutOf = (options: FileOptions): ListFileOptions["layout"] => {
  const encoding = encodingOf(options);
  return {
    header: headerChoiceOf(options),
    ...(options.column === undefined ? {} : { column: options.column }),
    ...(encoding === undefined ? {} : { encoding }),
    ...(options.sheet === undefined ? {} : { sheet: options.sheet }),
  };
};

/** `verify --file LIST --out RESULTS`: verifies a list with the job runner of the service, resumable, without credits. */
export const verifyFile = async (options: FileOptions, { io, config, engine, log, random }: ListRun): Promise<void> => {
  const requested = layoutOf(options);
  const paths = checkPaths(options);
  const unlock = lockState(paths);
  const sheetPath = `${paths.state}-sheet`;
  try {
    // A run that was killed may have left it.
    rmSync(sheetPath, { force: true });
    await using list = await openListFile(paths.list, { layout: requested, sheetPath });
    const name = sha256(JSON.stringify([await hashOf(fileSource(paths.list)), requested]));
    await verifyList({ ...list, name }, { paths, options, io, config, engine, log, random });
  } finally {
    unlock();
  }
};

interface VerifyListOptions extends ListRun {
  readonly paths: Paths;
  readonly options: FileOptions;
}

const verifyList = async (
  list: Entry,
  { paths, options, io, config, engine, log, random }: VerifyListOptions,
): Promise<void> => {
  const db = openState(paths.state);
  const { credits } = new AccountsSlice({ db, clock: systemClock });
  const runtime = { db, clock: systemClock, log, random };
  const bulk = new BulkRun(runtime, config, { engine, attempts: engine.attempts, credits, checks: null });
  const earlier = findEarlier(bulk, list.name, paths);
  if (earlier !== null) io.err(`Resuming from ${paths.state}.`);
  io.err(describeFormat(list.reading));
  const job = earlier ?? (await storeList(db, bulk, list));
  const ended = job.status === "completed" ? job : await runJob(db, bulk, job, io);
  if (ended.status !== "completed")
    throw new CommandFailed(`The list was not completed: its status is ${ended.status}.`);
  await writeResults(bulk, ended, paths.out).catch((error: unknown) => {
    const advice = "Nothing is lost: run the same command again to retry.";
    throw new CommandFailed(`${options.out} is not writable: ${errorText(error)}. ${advice}`, "out");
  });
  const { format, rows, addresses, verdicts, sub_statuses } = jobView(ended, bulk.jobs.counts(ended.number));
  await bulk.runner.stop();
  db.close();
  removeState(paths.state);
  const outName = options.outName ?? options.out;
  const totals = { rows: rows.total, empty: rows.empty, addresses: addresses.total };
  print(io, options.json, { out: outName, format, ...totals, verdicts, sub_statuses }, () => {
    const counts = Object.entries(verdicts).map(([verdict, count]) => `${verdict} ${count.toLocaleString("en")}`);
    const empty = rows.empty === 0 ? "" : ` (${rows.empty.toLocaleString("en")} empty)`;
    const size = `${counted(rows.total, "row", "rows")}${empty}, ${counted(addresses.total, "address", "addresses")}`;
    return `${size}: ${counts.join(", ")}\n${outName}`;
  });
};
