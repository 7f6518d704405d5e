import type { Command } from "commander";
import { systemClock } from "../base/clock.ts";
import { createLog } from "../base/log.ts";
import { isId } from "../base/secrets.ts";
import { composeImport } from "../compose-dmarc.ts";
import { type Platform, systemPlatform } from "../compose-engine.ts";
import type { Db } from "../db/open.ts";
import { isDatabaseState } from "../dmarc/ingest/ingest.ts";
import { findingViews } from "../dmarc/ingest/ingestion-view.ts";
import type { IngestionConclusion } from "../dmarc/ingest/ingestion-finding.ts";
import type { IngestionRow } from "../dmarc/ingest/ingestion-store.ts";
import { accountIdOf, loadConfig, openDatabase } from "./data-directory.ts";
import { addDmarcExport } from "./dmarc-export.ts";
import { addDmarcHealthCommand } from "./dmarc-health.ts";
import { findFiles, type ReportBytes, type ReportPath, readReportBytes } from "./dmarc-files.ts";
import { createImportTally, problemsText, showImport, tallyText } from "./dmarc-import-progress.ts";
import { CommandFailed, type Io, print, UsageError } from "./io.ts";
import { addMailboxCommand } from "./dmarc-mailbox.ts";

interface Wanted {
  readonly account?: string;
  readonly json?: boolean;
}

/** What is read and stored together. */
const BATCH_MAX = 64;
const BATCH_BYTES_MAX = 16 * 1024 * 1024;
/** Batches between two waits for the disk: nothing is told of before. */
const FLUSH_EVERY = 4;
/** Pages of the write-ahead log after which it is worked into the database: more than in a server, for speed. */
const CHECKPOINT_PAGES = 8_000;

/** Where a command works. */
interface Place {
  readonly db: Db;
  readonly platform: Platform;
}

interface Import {
  readonly io: Io;
  readonly json: boolean | undefined;
  readonly stdin: () => ReadableStream<Uint8Array>;
}

const incomingOf = (accountId: string, { input, bytes }: { readonly input: string; readonly bytes: Uint8Array }) => {
  const nobody = { client: null, helo: null, mailFrom: null };
  return { accountId, mode: "live" as const, domain: null, via: "import" as const, name: input, bytes, ...nobody };
};

const lineOf = (input: string, row: IngestionRow) => {
  const { id, outcome, reason } = row;
  return { input, id, outcome, reason, findings: findingViews(row) };
};

const importFiles = async (
  { db, platform }: Place,
  accountId: string,
  given: readonly string[],
  to: Import,
): Promise<void> => {
  const { io, json, stdin } = to;
  const files: ReportPath[] = await Array.fromAsync(findFiles(given));
  const { ingestions } = composeImport(db, platform, createLog("error", systemClock, io.err));
  const tally = createImportTally(files);
  let isInterrupted = false;
  void io.untilSignal().then(() => {
    isInterrupted = true;
  });
  const hide = showImport(io, tally);

  const told: string[] = [];
  let batches = 0;
  /** Brings everything stored so far to the disk, and tells of it. */
  const flush = (): void => {
    db.sqlite.run("PRAGMA synchronous = FULL");
    // In this mode a commit waits for the disk, and all commits before it stand in the same log.
    if (!db.isWritable()) throw new CommandFailed("The database cannot be written.", "database");
    db.sqlite.run("PRAGMA synchronous = NORMAL");
    for (const line of told.splice(0)) io.out(line);
  };

  let batch: Extract<ReportBytes, { problem: null }>[] = [];
  let bytes = 0;
  const store = async (): Promise<void> => {
    const rows = await ingestions.ingestFiles(batch.map((one) => incomingOf(accountId, one)));
    for (const [at, row] of rows.entries()) {
      const input = batch[at]?.input ?? "";
      tally.add(input, row);
      if (json) told.push(JSON.stringify(lineOf(input, row)));
    }
    batch = [];
    bytes = 0;
    batches += 1;
    if (batches % FLUSH_EVERY === 0) flush();
    // All that was read is garbage now; without the hint the heap grows on for long.
    Bun.gc(false);
  };
  try {
    for (const file of files) {
      for await (const one of readReportBytes(file, stdin)) {
        if (one.bytes === null) {
          tally.fail(one.input, one.problem);
          if (json) told.push(JSON.stringify({ input: one.input, id: null, outcome: "rejected", reason: one.problem }));
          continue;
        }
        batch.push(one);
        bytes += one.bytes.byteLength;
        if (batch.length >= BATCH_MAX || bytes >= BATCH_BYTES_MAX) await store();
        if (isInterrupted) break;
      }
      tally.finishFile(file);
      if (isInterrupted) break;
    }
    if (batch.length > 0) await store();
    flush();
  } finally {
    hide();
  }
  if (!json) io.out(tallyText(tally.look()));
  for (const line of json ? [] : problemsText(tally.look())) io.err(line);
  if (isInterrupted) {
    throw new CommandFailed(
      "Interrupted. What was stored stays; started again, it is found as duplicates.",
      "interrupted",
    );
  }
  const { rejected } = tally.look().outcomes;
  if (rejected > 0) throw new CommandFailed(`${rejected.toLocaleString("en")} could not be read.`, "rejected");
};

/** Reads ingestions again in this process, also beside a server: each is taken by whoever is first. */
const retry = async (
  { db, platform }: Place,
  accountId: string,
  { ids, isAccepted, io }: { readonly ids: readonly string[]; readonly isAccepted: boolean; readonly io: Io },
) => {
  const owner = { accountId, mode: "live" } as const;
  const { ingestions } = composeImport(db, platform, createLog("error", systemClock, io.err));
  const tally = createImportTally([]);
  const told = (id: string, ending: IngestionConclusion): void => tally.add(id, ending);
  const retried = await ingestions.readAgain(owner, ids.length === 0 ? "all" : ids, told, { isAccepted });
  const done = { retried, outcomes: tally.look().outcomes };
  return { tally, done: { ...done, ingestions: ids.map((id) => lineOf(id, ingestions.find(owner, id))) } };
};

interface WantedRetry extends Wanted {
  readonly all?: boolean;
  readonly acceptUnauthenticated?: boolean;
}

/** `dmarc import | retry | export | imap-check`: reports from files into the database and records out of it, beside a server or without one. */
export const addDmarcCommands = (
  program: Command,
  io: Io,
  stdin: () => ReadableStream<Uint8Array> = () => Bun.stdin.stream(),
): void => {
  const group = program
    .command("dmarc")
    .description("DMARC reports from files and from a mailbox, and the records of a domain");

  const withAccount = async (account: string | undefined, work: (place: Place, accountId: string) => Promise<void>) => {
    const config = loadConfig(io);
    const db = openDatabase(io, config);
    const platform = systemPlatform(config);
    try {
      await work({ db, platform }, accountIdOf(db, account));
    } catch (error) {
      if (!isDatabaseState(error)) throw error;
      const advice = "What was stored stays; the same command goes on.";
      throw new CommandFailed(`The database cannot be written: ${String(error)}. ${advice}`, "database");
    } finally {
      platform.close();
      db.close();
    }
  };

  addDmarcHealthCommand(group, io);
  addMailboxCommand(group, io);

  group
    .command("import")
    .description(
      "store the reports in files, directories, mailboxes, or on standard input (-); the retention of each domain holds for old ones at once",
    )
    .argument("<file...>", "mails, mailboxes, XML, gzip, zip, directories of them")
    .option("--account <name>", "the account; needed when there are several")
    .option("--json", "print a JSON object for each file")
    .action(async (files: string[], { account, json }: Wanted) =>
      withAccount(account, async (place, accountId) => {
        place.db.sqlite.run("PRAGMA synchronous = NORMAL");
        place.db.sqlite.run(`PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES}`);
        await importFiles(place, accountId, files, { io, json, stdin });
      }),
    );

  group
    .command("retry")
    .description("read again what was rejected or quarantined")
    .argument("[id...]", "ids of ingestions")
    .option("--all", "all that were rejected or quarantined")
    .option("--accept-unauthenticated", "count these mails although they are not authenticated: you vouch for them")
    .option("--account <name>", "the account; needed when there are several")
    .option("--json", "print JSON")
    .action(async (ids: string[], { account, json, all, acceptUnauthenticated: isAccepted = false }: WantedRetry) => {
      if ((ids.length === 0) !== (all === true)) throw new UsageError("Give ids, or --all.", "ids");
      if (all === true && isAccepted) {
        throw new UsageError("Name the mails that you accept: --accept-unauthenticated needs ids.", "ids");
      }
      const wrong = ids.find((id) => !isId(id));
      if (wrong !== undefined) throw new UsageError(`"${wrong}" is no id of an ingestion.`, "ids");
      await withAccount(account, async (place, accountId) => {
        const { done, tally } = await retry(place, accountId, { ids, isAccepted, io });
        print(io, json, done, () => {
          const lines = done.ingestions.map(
            ({ id, outcome, reason }) => `${id}  ${outcome ?? "pending"}  ${reason ?? ""}`,
          );
          const summary = ids.length === 0 && done.retried > 0 ? [tallyText(tally.look())] : [];
          const read = `${done.retried.toLocaleString("en")} read again.`;
          return [read, ...summary, ...lines.map((line) => line.trimEnd())].join("\n");
        });
        if (!json && ids.length === 0) for (const line of problemsText(tally.look())) io.err(line);
      });
    });

  addDmarcExport(group, io);
};
