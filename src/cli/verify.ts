import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { systemClock } from "../foundation/base/clock.ts";
import { wait, waitFor } from "../foundation/base/wait.ts";
import { createLog } from "../foundation/base/log.ts";
import { systemRandom, type Random } from "../foundation/base/secrets.ts";
import { openSuppressions } from "../accounts/open.ts";
import { EngineSlice } from "../verify/open.ts";
import { freshResolverOf, systemPlatform } from "../service/platform.ts";
import type { Config } from "../service/config.ts";
import { waitMsOf, type ConcludedVerification } from "../verify/verdict.ts";
import type { VerificationEngine } from "../verify/engine.ts";
import { explain } from "../verify/explain.ts";
import { SUB_STATUSES } from "../verify/result.ts";
import { safeLine } from "../foundation/base/visible-text.ts";
import { argument, command, option, toggle, unless } from "./command.ts";
import { CommandFailed, type Io, UsageError, print } from "./io.ts";
import { type ListRun, type FileOptions, verifyFile, layoutOf } from "./verify-file.ts";
import { openDatabase } from "./data-directory.ts";
import { databasePath, loadConfig } from "./prepare-directory.ts";
import { open } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileSource } from "../bulk/reading/csv-records.ts";
import { type PathOptions, checkList } from "./verify-file-paths.ts";
import { readRows, describeFormat } from "../bulk/reading/csv.ts";
import { type ListFile, openListFile } from "../bulk/arrival/submission.ts";
import { type Preview, previewSubmission } from "../bulk/arrival/preview.ts";
import { table } from "./terminal-text.ts";
import { counted } from "./progress.ts";

interface VerifyOptions extends FileOptions {
  readonly evidence: boolean;
  readonly retries: boolean;
}

/** Addresses verified at the same time; the pool limits the connections. */
const CONCURRENCY_MAX = 200;
/** Time for mail servers to reply to QUIT. */
const DRAIN_MS_MAX = 1_000;

const verifyOne = async (engine: VerificationEngine, email: string, io: Io): Promise<ConcludedVerification> => {
  let attempted = await engine.verify(engine.begin(email));
  while (attempted.kind === "retry") {
    const { evidence, retry } = attempted;
    io.err(`${evidence.address.normalized_email}: ${retry.reason}; next attempt at ${retry.due_at}`);
    await wait(systemClock, waitMsOf(retry));
    attempted = await engine.verify(evidence);
  }
  return attempted;
};

/** SGR parameters of ECMA-48: green, yellow, red. */
const COLORS = { deliverable: 32, risky: 33, undeliverable: 31 } as const;
const VERDICT_WIDTH = Math.max(...Object.keys(COLORS).map((verdict) => verdict.length));
const REASON_WIDTH = Math.max(...SUB_STATUSES.map((reason) => reason.length));

/** One line of text; with `width`, the widest address, in columns. */
const lineOf = ({ result, evidence }: ConcludedVerification, width: number | null): readonly string[] => {
  const { normalized_email, verdict, sub_status, quality_score, confidence } = result;
  const hint = evidence.address.suggestion === null ? "" : `  (did you mean ${evidence.address.suggestion}?)`;
  const [email, reason] = [normalized_email.padEnd(width ?? 0), sub_status.padEnd(width === null ? 0 : REASON_WIDTH)];
  const scores = [quality_score, confidence].map((score) => String(score).padStart(width === null ? 0 : 3));
  const padding = " ".repeat(width === null ? 0 : VERDICT_WIDTH - verdict.length);
  return [`${email}  `, verdict, `${padding}  ${reason}  quality ${scores[0]}  confidence ${scores[1]}${hint}`];
};

/** Prints a result: in columns and with colours on a terminal, where the addresses were given and their width is known. */
const printResult = (concluded: ConcludedVerification, { io, options, width }: VerifyOutput): void => {
  const { json, evidence } = options;
  const { result } = concluded;
  const line = lineOf(concluded, io.stdoutKind === "terminal" ? width : null);
  if (json) io.out(JSON.stringify(evidence ? { ...result, evidence: concluded.evidence } : result));
  else if (evidence) io.out(`${explain(concluded.evidence)}\n`);
  else if (io.stdoutKind !== "terminal" || io.styled === undefined) io.out(line.join(""));
  else {
    const [email = "", verdict, rest = ""] = line;
    io.styled(`${safeLine(email)}\u001b[${COLORS[result.verdict]}m${verdict}\u001b[0m${safeLine(rest)}\n`);
  }
};

interface VerifyOutput {
  readonly io: Io;
  readonly options: VerifyOptions;
  /** Of the widest address, in characters; null where it is not known. */
  readonly width: number | null;
}

async function* addressesOf(given: readonly string[], io: Io): AsyncIterable<string> {
  if (given.length > 0) yield* given;
  else for await (const line of io.stdinLines()) if (line.trim() !== "") yield line.trim();
}

/** Verifies addresses and prints each result as soon as it is known. */
const verifyAddresses = async (
  engine: VerificationEngine,
  emails: AsyncIterable<string>,
  output: VerifyOutput,
): Promise<void> => {
  const running = new Set<Promise<void>>();
  const verifyAndPrint = async (email: string): Promise<void> =>
    printResult(await verifyOne(engine, email, output.io), output);
  for await (const email of emails) {
    const one: Promise<void> = verifyAndPrint(email).finally(() => running.delete(one));
    running.add(one);
    if (running.size >= CONCURRENCY_MAX) await Promise.race(running);
  }
  await Promise.all(running);
};

/** Runs `work` with an engine of its own. */
const withEngine = async (
  io: Io,
  { retries }: VerifyOptions,
  work: (run: Omit<ListRun, "io">) => Promise<void>,
): Promise<void> => {
  const settings = loadConfig(io);
  const config = retries ? settings : { ...settings, retryWaitsS: [] };
  const platform = systemPlatform(config);
  const fresh = freshResolverOf(config);
  const suppressions = findSuppressions(config, io);
  const log = createLog("warn", systemClock, io.err);
  const matchSuppression = suppressions?.match ?? null;
  const engine = new EngineSlice(platform, config, { matchSuppression, log, fresh });
  try {
    await work({ config, engine, log, random: platform.random });
  } finally {
    await waitFor(systemClock, engine.drain(), { timeoutMs: DRAIN_MS_MAX });
    suppressions?.close();
    platform.close();
    fresh.close();
  }
};

/** Verifies addresses or a list, without a server. */
const VERIFY = command({
  description: "Verify addresses or a list without a server and without credits.",
  example: "verify --file customers.csv --out results.csv",
  json: "print one JSON object per address, as in the API; with --file: the totals",
  args: { given: argument("[address...]", "addresses (default: lines of standard input)") },
  options: {
    evidence: toggle("print DNS responses, SMTP transcript, conclusions and reasons"),
    retries: unless("conclude at once instead of waiting out greylisting"),
    file: option("<path>", "list to verify (CSV or .xlsx; - is standard input); the same command resumes it"),
    out: option("<path>", "with --file: output CSV; - is standard output"),
    column: option("<column>", "with --file: column of the addresses, a name or a number from 0"),
    header: option("<choice>", "with --file: whether the first row names the columns: auto, true, false"),
    encoding: option("<name>", "with --file: encoding of a CSV that is not Unicode, such as windows-1250 or shift_jis"),
    sheet: option("<name>", "with --file: sheet of a workbook (default: the first with addresses)"),
    dryRun: toggle("with --file: show how the list is read; verify nothing"),
    force: toggle("with --file: replace an existing file at --out"),
  },
  run({ io, isJson: json }, { given, ...input }) {
    const options = { ...input, json };
    checkUsage(given, options, io);
    if (options.dryRun) return withStreams(options, io, (paths, streams) => previewFile(paths, streams, systemRandom));
    return withEngine(io, options, async (run) => {
      const width = given.length === 0 ? null : Math.max(...given.map((email) => email.trim().length));
      if (options.file === undefined)
        await verifyAddresses(run.engine.engines.live, addressesOf(given, io), { io, options, width });
      else await withStreams(options, io, (paths, streams) => verifyFile(paths, { ...run, io: streams }));
    });
  },
});

export const VERIFY_COMMANDS = { verify: VERIFY };

const checkUsage = (given: readonly string[], options: VerifyOptions, io: Io): void => {
  const { file, out, column, header, encoding, sheet, force, dryRun, evidence } = options;
  const ofFile = [out, column, header, encoding, sheet];
  if (file === undefined && (ofFile.some((text) => text !== undefined) || force || dryRun))
    throw new UsageError("--out, --column, --header, --encoding, --sheet, --dry-run and --force need --file.");
  if (file !== undefined && (given.length > 0 || evidence))
    throw new UsageError("--file cannot be combined with addresses or --evidence.");
  if (file === undefined && given.length === 0 && io.stdinIsTerminal)
    throw new UsageError("Give at least one address, or pipe a list in.");
};

/** The suppression list of the database; null without a database. */
const findSuppressions = (config: Config, io: Io) => {
  if (!existsSync(databasePath(config))) return null;
  try {
    const db = openDatabase(io, config);
    return { match: openSuppressions(db, systemClock).match, close: () => db.close() };
  } catch (error) {
    if (!(error instanceof CommandFailed)) throw error;
    io.err(`The suppression list is not used: ${error.message}`);
    return null;
  }
};

/** The path that means standard input or output. */
const STREAM = "-";

const saveStdin = async (io: Io, path: string): Promise<void> => {
  if (io.stdinIsTerminal) throw new UsageError("--file - reads standard input: pipe a list in.");
  const file = await open(path, "wx", 0o600);
  try {
    for await (const chunk of io.stdin()) await file.writeFile(chunk);
  } finally {
    await file.close();
  }
};

/**
 * Replaces `-` by the paths of temporary files: standard input is saved first, because a list is read more than once, and
 * results are written to standard output when they are complete. Everything else goes to standard error.
 */
const withStreams = async <O extends PathOptions>(
  options: O,
  io: Io,
  work: (options: O, io: Io) => Promise<void>,
): Promise<void> => {
  const { file, out } = options;
  if (file !== STREAM && out !== STREAM) return work(options, io);
  const folder = mkdtempSync(join(tmpdir(), "postwarden-"));
  const paths = {
    ...(file === STREAM ? { file: join(folder, "list") } : {}),
    ...(out === STREAM ? { out: join(folder, "results.csv") } : {}),
  };
  try {
    if (paths.file !== undefined) await saveStdin(io, paths.file);
    await work(
      { ...options, ...paths, ...(out === STREAM ? { outName: STREAM } : {}) },
      paths.out === undefined ? io : { ...io, out: io.err },
    );
    if (paths.out !== undefined) for await (const chunk of fileSource(paths.out)()) await io.write(chunk);
  } catch (error) {
    const isLost = paths.out !== undefined && error instanceof CommandFailed && error.code === "interrupted";
    throw isLost ? new CommandFailed("Interrupted. Only a run with --out FILE can be resumed.", "interrupted") : error;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};

const CELL_CHARACTERS_SHOWN = 40;

const shown = (text: string): string =>
  text.length > CELL_CHARACTERS_SHOWN ? `${text.slice(0, CELL_CHARACTERS_SHOWN)}…` : text;

const rowsTable = ({ first_rows: rows }: Preview): string =>
  table(
    ["ROW", "SUBMITTED", "READ AS", "NOTE"],
    rows.map(({ row_index, submitted_email, normalized_email, did_you_mean, reason }) => [
      String(row_index),
      shown(submitted_email),
      reason === null ? shown(normalized_email) : "",
      reason ?? (did_you_mean === null ? "" : `did you mean ${shown(did_you_mean)}?`),
    ]),
  );

const textOf = (preview: Preview, { reading }: ListFile): string => {
  const { rows, addresses, candidates } = preview;
  const others = candidates.filter(({ index }) => index !== reading.column.index);
  const { sheets } = preview;
  const names = others.map(({ index, name }) => `${index}${name === null ? "" : ` ${JSON.stringify(name)}`}`);
  return [
    describeFormat(reading),
    ...(sheets.length < 2 ? [] : [`Sheets: ${sheets.map((name) => JSON.stringify(name)).join(", ")}.`]),
    ...(names.length === 0 ? [] : [`Other columns with addresses: ${names.join(", ")}.`]),
    `${counted(rows.total, "row", "rows")}, ${counted(addresses.total, "address", "addresses")}; ${rows.duplicate.toLocaleString("en")} duplicate, ${rows.empty.toLocaleString("en")} empty, ${rows.invalid_syntax.toLocaleString("en")} not an address.`,
    "",
    rowsTable(preview),
  ].join("\n");
};

/** `verify --file LIST --dry-run`: shows how a list is read and what is in it, without the network. */
const previewFile = async (options: FileOptions, io: Io, random: Random): Promise<void> => {
  const { file, out, force } = options;
  if (file === undefined || file === "") throw new UsageError("--dry-run needs a --file.");
  if (out !== undefined || force) throw new UsageError("--dry-run cannot be combined with --out or --force.");
  const requested = layoutOf(options);
  checkList(resolve(file), file);
  const folder = mkdtempSync(join(tmpdir(), "postwarden-"));
  try {
    await using list = await openListFile(resolve(file), { layout: requested, sheetPath: join(folder, "sheet") });
    const { source, inspection, reading, sheets } = list;
    const { shape } = inspection;
    const about = {
      name: null,
      source: null,
      webhookUrl: null,
      notifyEmail: null,
      reading,
      format: shape,
      rowsMax: shape.rows,
    };
    const order = { inspection, sheets, list: { ...about, batches: readRows(source, shape) } };
    const preview = await previewSubmission(order, { credits: { available: 0, isHeld: false }, random });
    const { credits, ...rest } = preview;
    print(io, options.json, rest, () => textOf(preview, list));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};
