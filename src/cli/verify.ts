import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Command } from "commander";
import { isoTime, systemClock } from "../base/clock.ts";
import { wait, waitFor } from "../base/wait.ts";
import { createLog } from "../base/log.ts";
import { systemRandom } from "../base/secrets.ts";
import { composeSuppressions } from "../compose.ts";
import { composeEngine, freshResolverOf, systemPlatform } from "../compose-engine.ts";
import type { Config } from "../config.ts";
import { type ConcludedVerification, concludeVerification } from "../verify/verdict.ts";
import { beginEvidence, type VerificationEngine, waitMsOf } from "../verify/engine.ts";
import { explain } from "../verify/explain.ts";
import { CommandFailed, type Io, UsageError } from "./io.ts";
import { type FileOptions, verifyFile } from "./verify-file.ts";
import { previewFile } from "./verify-file-preview.ts";
import { withStreams } from "./verify-file-streams.ts";
import { loadConfig, openDatabase } from "./data-directory.ts";

interface VerifyOptions extends FileOptions {
  readonly evidence?: boolean;
  readonly retries: boolean;
}

/** Addresses under way at a time; the pool bounds the connections. */
const AT_ONCE_MAX = 200;
/** For mail servers to answer our QUIT. */
const DRAIN_MS_MAX = 1_000;

const verifyOne = async (
  engine: VerificationEngine,
  email: string,
  io: Io,
  withRetries: boolean,
): Promise<ConcludedVerification> => {
  let evidence = await engine.attempt(beginEvidence(email));
  for (let retry = engine.planRetry(evidence); withRetries && retry !== null; retry = engine.planRetry(evidence)) {
    evidence = { ...evidence, retries: [...evidence.retries, retry] };
    io.err(`${evidence.address.normalized_email}: ${retry.reason}; asking again at ${retry.due_at}`);
    await wait(systemClock, waitMsOf(retry));
    evidence = await engine.attempt(evidence);
  }
  return concludeVerification(evidence, isoTime(systemClock.nowMs()));
};

const lineOf = ({ result, evidence }: ConcludedVerification): string => {
  const { normalized_email, verdict, sub_status, quality_score, confidence } = result;
  const hint = evidence.address.suggestion === null ? "" : `  (did you mean ${evidence.address.suggestion}?)`;
  return `${normalized_email}  ${verdict}  ${sub_status}  quality ${quality_score}  confidence ${confidence}${hint}`;
};

const output = (concluded: ConcludedVerification, { json, evidence }: VerifyOptions): string => {
  if (json) return JSON.stringify(evidence ? { ...concluded.result, evidence: concluded.evidence } : concluded.result);
  return evidence ? `${explain(concluded.evidence)}\n` : lineOf(concluded);
};

async function* addressesOf(given: readonly string[], io: Io): AsyncIterable<string> {
  if (given.length > 0) yield* given;
  else for await (const line of io.stdinLines()) if (line.trim() !== "") yield line.trim();
}

/** `verify ADDRESS…`: one-shot, without server or database. Prints in the order in which the addresses were given. */
export const addVerifyCommand = (program: Command, io: Io): void => {
  program
    .command("verify")
    .description("verify addresses by asking their mail servers; needs no server, costs no credits")
    .argument("[address...]", "the addresses; without any, lines of standard input")
    .option("--evidence", "what was asked, what was answered, what was concluded and why")
    .option("--no-retries", "conclude at once instead of waiting out greylisting")
    .option("--file <path>", "verify a list (CSV or .xlsx; - is standard input); resumes when it is started again")
    .option("--out <path>", "with --file: output CSV; - is standard output")
    .option("--column <column>", "with --file: name or zero-based index of the column of addresses")
    .option("--header <choice>", "with --file: whether the first row names the columns: auto, true, false")
    .option("--dry-run", "with --file: show how the list is read and what is in it; verify nothing")
    .option("--force", "with --file: replace what stands at --out")
    .option("--json", "print a JSON object a line: the result object of the API; with --file: the totals")
    .action(async (given: string[], options: VerifyOptions) => {
      checkUsage(given, options, io);
      if (options.dryRun)
        return withStreams(options, io, (paths, streams) => previewFile(paths, streams, systemRandom));
      const settings = loadConfig(io);
      const config = options.retries ? settings : { ...settings, retryWaitsS: [] };
      const platform = systemPlatform(config);
      const suppressions = openSuppressions(config, io);
      const fresh = freshResolverOf(config);
      const log = createLog("warn", systemClock, io.err);
      const surroundings = { log, fresh };
      const { engine, pool, outages } = composeEngine(config, platform, suppressions?.match ?? null, surroundings);
      const close = async () => {
        outages.stop();
        await waitFor(systemClock, pool.drain(), { timeoutMs: DRAIN_MS_MAX });
        suppressions?.close();
        platform.close();
        fresh.close();
      };
      if (options.file !== undefined) {
        try {
          return await withStreams(options, io, (paths, streams) =>
            verifyFile(paths, { io: streams, config, engine, outages, log, random: platform.random }),
          );
        } finally {
          await close();
        }
      }
      const queue: Array<Promise<ConcludedVerification>> = [];
      const printFirst = async () => {
        const first = await queue.shift();
        if (first !== undefined) io.out(output(first, options));
      };
      for await (const email of addressesOf(given, io)) {
        queue.push(verifyOne(engine, email, io, options.retries));
        if (queue.length >= AT_ONCE_MAX) await printFirst();
      }
      while (queue.length > 0) await printFirst();
      await close();
    });
};

const checkUsage = (given: readonly string[], options: VerifyOptions, io: Io): void => {
  const { file, out, column, header, force, dryRun, evidence } = options;
  if (file === undefined && [out, column, header, force, dryRun].some((option) => option !== undefined))
    throw new UsageError("--out, --column, --header, --dry-run and --force belong to --file.");
  if (file !== undefined && (given.length > 0 || evidence))
    throw new UsageError("--file goes without addresses and without --evidence.");
  if (file === undefined && given.length === 0 && io.stdinIsTerminal)
    throw new UsageError("Give at least one address, or pipe a list in.");
};

/** The operator's list, where this machine has a database; without one nothing is on it. */
const openSuppressions = (config: Config, io: Io) => {
  if (!existsSync(join(config.dataDir, "postwarden.db"))) return null;
  try {
    const db = openDatabase(io, config);
    return { match: composeSuppressions(db, systemClock).match, close: () => db.close() };
  } catch (error) {
    if (!(error instanceof CommandFailed)) throw error;
    io.err(`The list of suppressions is not used: ${error.message}`);
    return null;
  }
};
