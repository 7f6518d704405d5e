import { systemClock } from "../foundation/base/clock.ts";
import { createLog } from "../foundation/base/log.ts";
import type { KeyMode } from "../foundation/base/secrets.ts";
import type { DomainOwner } from "../dmarc/records/domains/domain-store.ts";
import { ImportSlice, openFileReader } from "../dmarc/reports/open.ts";
import type { FileReader } from "../dmarc/reports/report/file-reader.ts";
import { systemPlatform } from "../service/platform.ts";
import type { Platform } from "../foundation/net/platform.ts";
import type { Db } from "../foundation/db/open.ts";
import { isDatabaseState } from "../foundation/base/errors.ts";
import { findingViews } from "../dmarc/reports/ingest/ingestion-schemas.ts";
import type { IngestionRow } from "../dmarc/reports/ingest/ingestion-store.ts";
import { accountOptions, argument, command } from "./command.ts";
import { accountIdOf, openDatabase, performInSteps } from "./data-directory.ts";
import { loadConfig } from "./prepare-directory.ts";
import { findFiles, type ReportBytes, type ReportPath, readReportBytes } from "./dmarc-files.ts";
import { createImportTally, type ImportTally, problemsText, showImport, tallyText } from "./dmarc-import-progress.ts";
import { CommandFailed, type Io } from "./io.ts";

/** Mails and files that are read and stored together. */
const BATCH_MAX = 256;
const BATCH_BYTES_MAX = 16 * 1024 * 1024;
/** Batches after which the garbage is collected: without this hint the heap of a long import keeps growing. */
const COLLECT_AFTER = 2;
/** Pages of the write-ahead log before a checkpoint: more than in a server, for speed. */
const CHECKPOINT_PAGES = 8_000;

/** What commands that store reports work with. */
export interface ReportDatabase {
  readonly db: Db;
  readonly platform: Platform;
  readonly reader: FileReader;
  readonly owner: Pick<DomainOwner, "accountId" | "mode">;
}

/** Opens the database for the account with a name, or the only account. A full disk is a failure of the command. */
export const withReportDatabase = async (
  io: Io,
  { account, mode }: { readonly account: string | undefined; readonly mode: KeyMode },
  work: (database: ReportDatabase) => Promise<void>,
): Promise<void> => {
  const config = loadConfig(io);
  const db = openDatabase(io, config);
  const platform = systemPlatform(config);
  const log = createLog("error", systemClock, io.err);
  const reader = openFileReader({ clock: platform.clock, log }, config, Bun.main);
  try {
    await work({ db, platform, reader, owner: { accountId: accountIdOf(db, account), mode } });
  } catch (error) {
    if (!isDatabaseState(error)) throw error;
    const advice = "Reports stored so far are kept. Run the same command again to continue.";
    throw new CommandFailed(`The database is not writable: ${String(error)}. ${advice}`, "database");
  } finally {
    reader.stop();
    platform.close();
    db.close();
  }
};

/** Ingestion for a command, which prints what goes wrong. */
export const openImport = ({ db, platform: { clock, resolver }, reader }: ReportDatabase, io: Io): ImportSlice =>
  new ImportSlice({ db, clock, log: createLog("error", systemClock, io.err) }, { resolver, reader });

/** The result of a file as JSON shows it. */
export const ingestionLine = (input: string, row: IngestionRow) => {
  const { id, outcome, reason } = row;
  return { input, id, outcome, reason, findings: findingViews(row) };
};

interface ImportOptions {
  readonly io: Io;
  readonly json: boolean | undefined;
  readonly tally: ImportTally;
}

/** Stores mails and files in batches, one while the next is read. A result is printed only when it is durable. */
class ReportImport {
  readonly #database: ReportDatabase;
  readonly #options: ImportOptions;
  readonly #ingestions: ImportSlice["ingestions"];
  #batch: Extract<ReportBytes, { problem: null }>[] = [];
  #batchBytes = 0;
  #sinceCollect = 0;
  #storing: Promise<void> = Promise.resolve();
  /** Lines about reports that are not yet durable. */
  #lines: string[] = [];

  constructor(database: ReportDatabase, options: ImportOptions) {
    this.#database = database;
    this.#options = options;
    this.#ingestions = openImport(database, options.io).ingestions;
  }

  /** Takes a mail or file, and stores the batch when it is full. */
  async add(one: ReportBytes): Promise<void> {
    const { tally } = this.#options;
    if (one.bytes === null) {
      tally.fail(one.input, one.problem);
      this.#note({ input: one.input, id: null, outcome: "rejected", reason: one.problem });
      return;
    }
    this.#batch.push(one);
    this.#batchBytes += one.bytes.byteLength;
    if (this.#batch.length < BATCH_MAX && this.#batchBytes < BATCH_BYTES_MAX) return;
    await this.#storing;
    this.#collectGarbage();
    this.#storing = this.#store();
    // The promise may reject before the next file awaits it.
    this.#storing.catch(() => undefined);
  }

  /** Resolves when what was begun is stored. Never rejects. */
  async settle(): Promise<void> {
    await this.#storing.catch(() => undefined);
  }

  /** Stores the last batch and makes everything durable. */
  async finish(): Promise<void> {
    await this.#storing;
    if (this.#batch.length > 0) await this.#store();
  }

  #note(line: object): void {
    if (this.#options.json) this.#lines.push(JSON.stringify(line));
  }

  async #store(): Promise<void> {
    const batch = this.#batch;
    this.#batch = [];
    this.#batchBytes = 0;
    const rows = await this.#ingestions.ingestFiles(batch.map((one) => this.#incoming(one)));
    for (const [at, row] of rows.entries()) {
      const input = batch[at]?.input ?? "";
      this.#options.tally.add(input, row);
      this.#note(ingestionLine(input, row));
    }
    this.#sync();
  }

  #collectGarbage(): void {
    this.#sinceCollect += 1;
    if (this.#sinceCollect < COLLECT_AFTER) return;
    this.#sinceCollect = 0;
    Bun.gc(true);
  }

  #incoming({ input, bytes }: { readonly input: string; readonly bytes: Uint8Array }) {
    const { owner } = this.#database;
    const noSession = { client: null, helo: null, mailFrom: null };
    return { ...owner, domain: null, via: "import" as const, name: input, bytes, ...noSession };
  }

  /** Syncs everything stored so far to the disk, and prints its results. */
  #sync(): void {
    const { db } = this.#database;
    db.sqlite.run("PRAGMA synchronous = FULL");
    // A commit in this mode waits for the disk, and all earlier commits are in the same log.
    if (!db.isWritable()) throw new CommandFailed("The database is not writable.", "database");
    db.sqlite.run("PRAGMA synchronous = NORMAL");
    for (const line of this.#lines.splice(0)) this.#options.io.out(line);
  }
}

/** Imports the reports in files, and prints what became of them. SIGINT stops it between two reports. */
const importFiles = async (
  database: ReportDatabase,
  files: readonly ReportPath[],
  { io, json, stdin }: { readonly io: Io; readonly json: boolean | undefined; readonly stdin: Stdin },
): Promise<void> => {
  const tally = createImportTally(files);
  const { db, owner } = database;
  const reports = new ReportImport(database, { io, json, tally });
  let isInterrupted = false;
  void io.untilSignal().then(() => {
    isInterrupted = true;
  });
  const hide = showImport(io, tally);
  const readAll = async (): Promise<void> => {
    try {
      for (const file of files) {
        for await (const one of readReportBytes(file, stdin)) {
          await reports.add(one);
          if (isInterrupted) break;
        }
        tally.finishFile(file);
        if (isInterrupted) break;
      }
      await reports.finish();
    } finally {
      await reports.settle();
    }
    db.sqlite.run("PRAGMA synchronous = FULL");
  };
  try {
    await performInSteps(io, db, {
      action: { action: "dmarc.reports.import", accountId: owner.accountId, subject: null },
      work: readAll,
      resultOf: () => tally.look().outcomes,
    });
  } finally {
    hide();
  }
  if (!json) io.out(tallyText(tally.look()));
  for (const line of json ? [] : problemsText(tally.look())) io.err(line);
  if (isInterrupted)
    throw new CommandFailed(
      "Interrupted. Reports stored so far are kept; run the same command again to continue.",
      "interrupted",
    );
  const { rejected, quarantined } = tally.look().outcomes;
  const kept = `${quarantined.toLocaleString("en")} kept, but not counted.`;
  if (rejected > 0) {
    const unread = `${rejected.toLocaleString("en")} could not be read.`;
    throw new CommandFailed(quarantined > 0 ? `${unread} ${kept}` : unread, "rejected");
  }
  if (quarantined > 0) throw new CommandFailed(kept, "quarantined");
};

export type Stdin = () => ReadableStream<Uint8Array>;

/** `dmarc import`: stores reports from files, with or without a running server. */
export const importCommand = (stdin: Stdin) =>
  command({
    description:
      "Store the DMARC reports in files, directories and mailboxes. Reports older than the retention of their domain are discarded. Ends with status 1 when something was rejected or quarantined.",
    example: "dmarc import ~/Maildir/.dmarc reports.mbox *.xml.gz",
    json: "print one JSON object per file",
    args: {
      given: argument("<file...>", "mails, mailboxes, XML, gzip and zip files, directories; - is standard input"),
    },
    options: accountOptions("reports"),
    run: ({ io, isJson: json }, { given, ...whose }) =>
      withReportDatabase(io, whose, async (database) => {
        database.db.sqlite.run("PRAGMA synchronous = NORMAL");
        database.db.sqlite.run(`PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES}`);
        await importFiles(database, await Array.fromAsync(findFiles(given)), { io, json, stdin });
      }),
  });
