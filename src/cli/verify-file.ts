import { rmSync } from "node:fs";
import { open, rename } from "node:fs/promises";
import { systemClock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { type Random, sha256 } from "../base/secrets.ts";
import { HEADER_CHOICES } from "../bulk/columns-address.ts";
import { type Inspection, readRows } from "../bulk/csv.ts";
import { fileSource } from "../bulk/csv-source.ts";
import { jobObject } from "../bulk/job-object.ts";
import { readingOf } from "../bulk/list-reading.ts";
import { hashOf, inspectOrRefuse } from "../bulk/orders.ts";
import { exportRows } from "../bulk/pages.ts";
import { resultsFormatSchema, writeResults as resultsOf } from "../bulk/results-csv.ts";
import type { JobRow } from "../bulk/store.ts";
import { isJsonOrder } from "../bulk/upload-json.ts";
import { composeAccounts } from "../compose.ts";
import { type BulkDeps, composeBulk } from "../compose-bulk.ts";
import type { Config } from "../config.ts";
import { takeServerLock } from "../db/lock.ts";
import type { Db } from "../db/open.ts";
import type { Engine } from "../verify/engine.ts";
import { CommandFailed, type Io, print, UsageError } from "./io.ts";
import { checkPaths, type PathOptions, type Paths } from "./verify-file-paths.ts";
import { counted } from "./progress.ts";
import { showProgress } from "./verify-file-progress.ts";
import { openDatabaseAt } from "./workspace.ts";

export interface FileOptions extends PathOptions {
  readonly json?: boolean;
  readonly column?: string;
  readonly header?: string;
}

export interface FileDeps {
  readonly io: Io;
  readonly config: Config;
  readonly engine: Engine;
  readonly outages: BulkDeps["outages"];
  readonly log: Log;
  readonly random: Random;
}

const OWNER = "file";

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

const removeState = (state: string): void => {
  for (const ending of ["", "-wal", "-shm"]) rmSync(state + ending, { force: true });
};

const takeLock = (path: string) => {
  try {
    return takeServerLock(path);
  } catch (error) {
    throw new CommandFailed(`${path} cannot be written: ${messageOf(error)}`, "out");
  }
};

/** One process at a time works on a state; the lock's own files go with it. */
const lockState = ({ state }: Paths) => {
  const path = `${state}-lock`;
  const lock = takeLock(path);
  if (lock === null) throw new CommandFailed(`Another process is working on ${state}.`, "already_running");
  return () => {
    lock.release();
    for (const ending of ["", "-journal"]) rmSync(path + ending, { force: true });
  };
};

type Bulk = ReturnType<typeof composeBulk>;

/** The job that an earlier run left, if it is of the same list with the same options. */
const findEarlier = ({ jobs }: Bulk, fingerprint: string, { state }: Paths): JobRow | null => {
  const [job] = jobs.withStatus(["queued", "running", "completed"]);
  if (job === undefined) return null;
  if (job.name === fingerprint) return job;
  throw new CommandFailed(
    `${state} belongs to another list or other options. Finish that first, or remove the file to give it up.`,
    "other_list",
  );
};

/** Enters the list in the state, with an account that has a credit for every row: files cost nothing. */
const enter = async (db: Db, { intake }: Bulk, { list, inspection, name }: Entry): Promise<JobRow> => {
  const { shape } = inspection;
  const { accounts, store } = composeAccounts(db, systemClock);
  accounts.create(OWNER);
  accounts.grantCredits(OWNER, shape.rows, "a file");
  const accountId = store.findAccountByName(OWNER)?.id ?? "";
  const about = { name, source: null, webhookUrl: null, format: shape, rowsMax: shape.rows };
  const reading = readingOf(shape);
  return intake.receive(
    { accountId, keyId: OWNER, mode: "live" },
    { ...about, reading, batches: readRows(fileSource(list), shape) },
    { onQueue: { earlier: () => null, write: () => undefined }, discard: () => undefined },
  );
};

interface Entry {
  readonly list: string;
  readonly inspection: Inspection;
  readonly name: string;
}

/** Writes the results beside the target first, so that the target is whole or not there. */
const writeResults = async ({ jobs, lists }: Bulk, job: JobRow, out: string): Promise<void> => {
  const file = await open(`${out}.part`, "w");
  try {
    const results = resultsOf(
      resultsFormatSchema.parse(JSON.parse(jobs.formatOf(job.number) ?? "null")),
      exportRows(lists, job.number),
    );
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
  // The list was not taken in whole: nothing has been asked yet.
  db.close();
  removeState(state);
  return openDatabaseAt(state);
};

const workOff = async (db: Db, bulk: Bulk, job: JobRow, io: Io): Promise<JobRow> => {
  const look = () => bulk.jobs.get(job.number) ?? job;
  bulk.runner.start();
  const hide = showProgress(io, () => ({ job: look(), forecast: bulk.runner.forecast(look()) }));
  const signal = await Promise.race([bulk.runner.untilEnded(job.number), io.untilSignal()]);
  hide();
  if (typeof signal === "string" && look().status !== "completed") {
    await bulk.runner.stop();
    db.close();
    throw new CommandFailed("Interrupted. The same command goes on where this one stopped.", "interrupted");
  }
  return look();
};

/** `verify --file LIST --out RESULTS`: works a list off with the runner of the service, resumable, without credits. */
export const verifyFile = async (
  options: FileOptions,
  { io, config, engine, outages, log, random }: FileDeps,
): Promise<void> => {
  const header = HEADER_CHOICES.find((choice) => choice === (options.header ?? "auto"));
  if (header === undefined) throw new UsageError("--header is auto, true or false.");
  const paths = checkPaths(options);
  const unlock = lockState(paths);
  try {
    if (await isJsonOrder(paths.list)) throw new CommandFailed("This is JSON; a list is a CSV.", "file");
    const list = fileSource(paths.list);
    const wish = { header, ...(options.column === undefined ? {} : { column: options.column }) };
    const name = sha256(JSON.stringify([await hashOf(list), wish]));
    const inspection = await inspectOrRefuse(list, wish);
    const db = openState(paths.state);
    const { ledger } = composeAccounts(db, systemClock);
    const bulk = composeBulk({
      config,
      db,
      ledger,
      engine,
      outages,
      clock: systemClock,
      random,
      log,
      checks: null,
    });
    const earlier = findEarlier(bulk, name, paths);
    if (earlier !== null) io.err(`Going on with ${paths.state}.`);
    const job = earlier ?? (await enter(db, bulk, { list: paths.list, inspection, name }));
    const ended = job.status === "completed" ? job : await workOff(db, bulk, job, io);
    if (ended.status !== "completed") throw new CommandFailed(`The list could not be worked off: ${ended.status}.`);
    await writeResults(bulk, ended, paths.out).catch((error: unknown) => {
      const advice = "Nothing is lost: the same command tries again.";
      throw new CommandFailed(`${options.out} could not be written: ${messageOf(error)}. ${advice}`, "out");
    });
    const { rows, addresses, verdicts, sub_statuses } = jobObject(ended, bulk.jobs.counts(ended.number));
    await bulk.runner.stop();
    db.close();
    removeState(paths.state);
    const summary = { out: options.out, rows: rows.total, addresses: addresses.total, verdicts, sub_statuses };
    print(io, options.json, summary, () => {
      const counts = Object.entries(verdicts).map(([verdict, count]) => `${verdict} ${count.toLocaleString("en")}`);
      const totals = `${counted(rows.total, "row", "rows")}, ${counted(addresses.total, "address", "addresses")}`;
      return `${totals}: ${counts.join(", ")}\n${options.out}`;
    });
  } finally {
    unlock();
  }
};
