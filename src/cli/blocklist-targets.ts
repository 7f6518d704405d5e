import { readFileSync } from "node:fs";
import { type Command, Option } from "commander";
import { systemClock } from "../base/clock.ts";
import { createLog } from "../base/log.ts";
import { isId, type KeyMode } from "../base/secrets.ts";
import { batchView, ordersOf, readCsvBatch } from "../blocklist/batch.ts";
import { severityRankOf } from "../blocklist/severity.ts";
import { type Owner, TARGET_STATUSES, type TargetRow, type TargetStatus } from "../blocklist/store.ts";
import type { Targets } from "../blocklist/targets.ts";
import { composeTargets } from "../compose-targets.ts";
import { freshResolverOf, systemPlatform } from "../compose-engine.ts";
import { SEVERITIES, type Severity } from "../dnsbl/blocklist.ts";
import { createUrlPolicy } from "../net/fetch-url.ts";
import { webhookUrlSchema } from "../webhooks/schemas.ts";
import { table } from "./terminal-text.ts";
import { CommandFailed, type Io, print, UsageError } from "./io.ts";
import { accountIdOf, loadConfig, openDatabase } from "./data-directory.ts";

type Blocklist = ReturnType<typeof composeTargets>;
type TargetView = ReturnType<Targets["view"]>;

interface Wanted {
  readonly account: string;
  readonly mode: KeyMode;
  readonly json?: boolean;
}

const SHOWN_DEFAULT = 100;
const SHOWN_MAX = 10_000;
const LISTINGS_SHOWN_MAX = 3;
/** Status with which a command ends that found something at least as bad as `--fail-on`. */
const EXIT_LISTED = 3;

const HEADINGS = ["SEVERITY", "TARGET", "STATUS", "LISTED ON", "SINCE", "LABEL"];

const rowOf = ({ severity, value, status, listings, listed_on, label }: TargetView): string[] => {
  const names = listings.length > 0 ? [...new Set(listings.map(({ id }) => id))] : [...listed_on];
  const more = names.length - LISTINGS_SHOWN_MAX;
  const since = listings[0]?.since.slice(0, 16).replace("T", " ") ?? "";
  const listed = names.slice(0, LISTINGS_SHOWN_MAX).join(", ") + (more > 0 ? ` and ${more} more` : "");
  return [severity ?? "-", value, status, listed, since, label ?? ""];
};

const targetTable = (views: readonly TargetView[], io: Io): string =>
  views.length === 0 ? "There are no such targets." : table(HEADINGS, views.map(rowOf), io.columns);

/** Fails with status 3 when one of `found` is at least as bad as `min`. */
export const failOnSeverity = (
  min: Severity | undefined,
  found: ReadonlyArray<{ readonly name: string; readonly severity: Severity | null }>,
): void => {
  if (min === undefined) return;
  const bad = found.filter(({ severity }) => severity !== null && severityRankOf(severity) >= severityRankOf(min));
  const names = [...new Set(bad.map(({ name }) => name))];
  if (names.length === 0) return;
  throw new CommandFailed(`Listed with severity ${min} or worse: ${names.join(", ")}`, "listed", EXIT_LISTED);
};

/** `--fail-on`, for commands that find listings. */
export const failOnOption = (): Option =>
  new Option("--fail-on <severity>", "end with status 3 when something is listed that is at least this bad").choices([
    ...SEVERITIES,
  ]);

/** The rows of a walk, up to `limit`. */
const readUpTo = (read: ReturnType<Targets["listWorst"]>, limit: number): TargetRow[] => {
  const rows: TargetRow[] = [];
  let behind: string | null = null;
  do {
    const stretch = read(behind, SHOWN_MAX, limit - rows.length);
    rows.push(...stretch.rows);
    behind = stretch.end;
  } while (behind !== null && rows.length < limit);
  return rows;
};

const findByName = (targets: Targets, owner: Owner, text: string): TargetRow => {
  if (isId(text)) return targets.find(owner, text);
  const [found] = readUpTo(targets.listWorst(owner, { value: text }), 1);
  if (found === undefined)
    throw new CommandFailed(`${text} is not watched. \`blocklist targets list\` shows what is.`, "unknown_target");
  return found;
};

const addedText = ({ created, exists, invalid, results }: ReturnType<typeof batchView>): string => {
  const problems = results
    .filter(({ status }) => status === "invalid")
    .map(({ row, given, problem }) => `  row ${row}, ${given}: ${problem}`);
  return [`${created} added, ${exists} watched before, ${invalid} invalid.`, ...problems].join("\n");
};

const readLimit = (text: string): number => {
  const limit = /^\d{1,9}$/.test(text) ? Number(text) : 0;
  if (limit < 1 || limit > SHOWN_MAX) throw new UsageError(`--limit is a whole number from 1 to ${SHOWN_MAX}.`);
  return limit;
};

const readFileOrStdin = async (io: Io, path: string): Promise<string> => {
  if (path === "-") {
    const lines = [];
    for await (const line of io.stdinLines()) lines.push(line);
    return lines.join("\n");
  }
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw new CommandFailed(`${path} cannot be read: ${error instanceof Error ? error.message : error}`, "file");
  }
};

/** Runs `work` with the targets of an account of the data directory. */
const withTargets = async (
  io: Io,
  { account, mode }: Wanted,
  work: (blocklist: Blocklist, owner: Owner) => Promise<void>,
): Promise<void> => {
  const config = loadConfig(io);
  const db = openDatabase(io, config);
  const [platform, resolver] = [systemPlatform(config), freshResolverOf(config)];
  const log = createLog("warn", systemClock, io.err);
  try {
    const blocklist = composeTargets({ config, db, log, platform: { ...platform, resolver } });
    await work(blocklist, { accountId: accountIdOf(db, account), mode });
  } finally {
    resolver.close();
    platform.close();
    db.close();
  }
};

/** Adds what is common to all of these commands. */
const ofAccount = (command: Command): Command =>
  command
    .requiredOption("--account <name>", "the account")
    .addOption(new Option("--mode <mode>", "targets of live or of test keys").choices(["live", "test"]).default("live"))
    .option("--json", "print JSON");

interface AddOptions extends Wanted {
  readonly label?: string;
  readonly alertSeverityMin?: Severity;
}

const addAll = async (io: Io, wanted: AddOptions, textOf: () => Promise<string>): Promise<void> => {
  const text = await textOf();
  const webhookUrl = webhookUrlSchema(createUrlPolicy(loadConfig(io).webhookAllowNetworks));
  const common = {
    ...(wanted.label === undefined ? {} : { label: wanted.label }),
    ...(wanted.alertSeverityMin === undefined ? {} : { alert_severity_min: wanted.alertSeverityMin }),
  };
  await withTargets(io, wanted, async ({ targets }, owner) => {
    const rows = await readCsvBatch(text, common, webhookUrl);
    const view = batchView(rows, await targets.addMany(owner, ordersOf(rows)));
    print(io, wanted.json, view, () => addedText(view));
    if (view.invalid > 0)
      throw new CommandFailed(`${view.invalid} of ${rows.length} rows were not added.`, "invalid_rows");
  });
};

/** `blocklist targets list | add | import | check | remove`: what an account watches, in the database itself. */
export const addTargetCommands = (blocklist: Command, io: Io): void => {
  const group = blocklist.command("targets").description("list, add, check and remove what an account watches");

  ofAccount(group.command("list").description("show targets, the worst first"))
    .addOption(new Option("--status <status>", "only those").choices([...TARGET_STATUSES]))
    .addOption(new Option("--severity <severity>", "only those at least this bad").choices([...SEVERITIES]))
    .option("--label <text>", "only those with this label")
    .option("--limit <n>", `how many, up to ${SHOWN_MAX}`, String(SHOWN_DEFAULT))
    .action((wanted: Wanted & { status?: TargetStatus; severity?: Severity; label?: string; limit: string }) =>
      withTargets(io, wanted, async ({ targets }, owner) => {
        const { status, severity, label } = wanted;
        const severityRankMin = severity === undefined ? undefined : severityRankOf(severity);
        const rows = readUpTo(targets.listWorst(owner, { status, label, severityRankMin }), readLimit(wanted.limit));
        const views = rows.map(targets.view);
        print(io, wanted.json, { targets: views }, () => targetTable(views, io));
      }),
    );

  const adding = (command: Command): Command =>
    ofAccount(command)
      .option("--label <text>", "a label for those without one")
      .addOption(new Option("--alert-severity-min <severity>", "send nothing below it").choices([...SEVERITIES]));

  adding(group.command("add").description("watch domains, addresses and ranges of IPv4 addresses"))
    .argument("<target...>", "such as example.com, 192.0.2.1 or 192.0.2.0/24")
    .action((given: string[], wanted: AddOptions) => addAll(io, wanted, async () => given.join("\n")));

  adding(
    group.command("import").description("watch what a CSV file lists (target,label,webhook_url,alert_severity_min)"),
  )
    .argument("<file>", "the file, or - for standard input")
    .action((path: string, wanted: AddOptions) => addAll(io, wanted, () => readFileOrStdin(io, path)));

  ofAccount(group.command("check").description("check targets now, and record the result"))
    .argument("<target...>", "targets, or their ids")
    .addOption(failOnOption())
    .action((given: string[], wanted: Wanted & { failOn?: Severity }) =>
      withTargets(io, wanted, async ({ targets, check }, owner) => {
        const found = given.map((text) => findByName(targets, owner, text));
        const views: TargetView[] = [];
        for (const target of found) {
          const finished = await check(target);
          if (finished !== null) views.push(targets.view(finished));
        }
        print(io, wanted.json, { targets: views }, () => targetTable(views, io));
        failOnSeverity(
          wanted.failOn,
          views.map(({ value, severity }) => ({ name: value, severity })),
        );
      }),
    );

  ofAccount(group.command("remove").description("stop watching targets, and remove their history"))
    .argument("<target...>", "targets, or their ids")
    .action((given: string[], wanted: Wanted) =>
      withTargets(io, wanted, async ({ targets }, owner) => {
        const found = given.map((text) => findByName(targets, owner, text));
        for (const { id } of found) await targets.remove(owner, id);
        const removed = found.map(({ value }) => value);
        print(io, wanted.json, { removed }, () => `${removed.length} removed.`);
      }),
    );
};
