import { readFileSync } from "node:fs";
import { type Command, Option } from "commander";
import { systemClock } from "../foundation/base/clock.ts";
import { createLog } from "../foundation/base/log.ts";
import { isId, type Owner } from "../foundation/base/secrets.ts";
import { batchView, newTargetsOf, readCsvBatch } from "../blocklist/batch.ts";
import { discoverAndAdd } from "../blocklist/discovery.ts";
import { severityRankOf } from "../blocklist/lists/blocklist.ts";
import { TARGET_STATUSES, type TargetRow, type TargetStatus } from "../blocklist/store.ts";
import type { Targets } from "../blocklist/targets.ts";
import { BlocklistSlice } from "../blocklist/open.ts";
import { Outbound } from "../notifications/open.ts";
import { freshResolverOf, mailerOf, systemPlatform } from "../service/platform.ts";
import { SEVERITIES, type Severity } from "../foundation/base/severity.ts";
import { createUrlPolicy } from "../foundation/net/fetch-url.ts";
import { webhookUrlSchema } from "../notifications/webhooks/url-store.ts";
import { table } from "./terminal-text.ts";
import { type AccountOptions, addCommand, addGroup, ofAccount, readLimit } from "./command.ts";
import { CommandFailed, describeFileError, type Io, print, UsageError } from "./io.ts";
import { accountIdOf, openDatabase, performAction } from "./data-directory.ts";
import { failOnOption, failOnSeverity } from "./fail-on.ts";
import { loadConfig } from "./prepare-directory.ts";

type TargetView = ReturnType<Targets["view"]>;

const SHOWN_DEFAULT = 100;
const SHOWN_MAX = 10_000;
const LISTINGS_SHOWN_MAX = 3;
const HEADINGS = ["SEVERITY", "TARGET", "STATUS", "LISTED ON", "SINCE", "LABEL"];

const rowOf = ({ severity, value, status, listings, listed_on, label }: TargetView): string[] => {
  const names = listings.length > 0 ? [...new Set(listings.map(({ id }) => id))] : [...listed_on];
  const more = names.length - LISTINGS_SHOWN_MAX;
  const since = listings[0]?.since.slice(0, 16).replace("T", " ") ?? "";
  const listed = names.slice(0, LISTINGS_SHOWN_MAX).join(", ") + (more > 0 ? ` and ${more} more` : "");
  return [severity ?? "-", value, status, listed, since, label ?? ""];
};

const targetTable = (views: readonly TargetView[], io: Io): string =>
  views.length === 0 ? "No targets." : table(HEADINGS, views.map(rowOf), io.columns);

/** The rows of a paged query, up to `limit`. */
const readUpTo = (read: ReturnType<Targets["listWorst"]>, limit: number): TargetRow[] => {
  const rows: TargetRow[] = [];
  let behind: string | null = null;
  do {
    const page = read(behind, SHOWN_MAX, limit - rows.length);
    rows.push(...page.rows);
    behind = page.next;
  } while (behind !== null && rows.length < limit);
  return rows;
};

const findByName = (targets: Targets, owner: Owner, text: string): TargetRow => {
  if (isId(text)) return targets.find(owner, text);
  const [found] = readUpTo(targets.listWorst(owner, { value: text }), 1);
  if (found === undefined)
    throw new CommandFailed(
      `${text} is not monitored. \`postwarden blocklist targets list\` shows all targets.`,
      "unknown_target",
    );
  return found;
};

const addedText = ({ created, exists, invalid, results }: ReturnType<typeof batchView>): string => {
  const problems = results
    .filter(({ status }) => status === "invalid")
    .map(({ row, given, problem }) => `  row ${row}, ${given}: ${problem}`);
  return [`${created} added, ${exists} already monitored, ${invalid} invalid.`, ...problems].join("\n");
};

const valuesOf = (targets: ReadonlyArray<{ readonly value: string }>): string[] => targets.map(({ value }) => value);

const readFileOrStdin = async (io: Io, path: string): Promise<string> => {
  if (path === "-") {
    const lines = [];
    for await (const line of io.stdinLines()) lines.push(line);
    return lines.join("\n");
  }
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw new CommandFailed(describeFileError(path, error), "file");
  }
};

/** Changes targets with an entry in the audit log, which names the first target, and how many. A command that changes none has none. */
type PerformOnTargets = <T>(
  action: "targets.add" | "targets.check" | "targets.remove",
  targets: readonly string[],
  work: () => Promise<T>,
) => Promise<T>;

/** Runs `work` with the targets of an account of the data directory. */
const withTargets = async (
  io: Io,
  { account, mode }: AccountOptions,
  work: (blocklist: BlocklistSlice, owner: Owner, perform: PerformOnTargets) => Promise<void>,
): Promise<void> => {
  const config = loadConfig(io);
  const db = openDatabase(io, config);
  const [platform, resolver] = [systemPlatform(config), freshResolverOf(config)];
  const log = createLog("warn", systemClock, io.err);
  try {
    const { clock, random } = platform;
    // The service that uses the same database sends the events.
    const outbound = new Outbound({ db, clock }, config, { mailer: mailerOf(config) });
    const fresh = { ...platform, resolver };
    const blocklist = new BlocklistSlice({ db, clock, log, random }, config, { platform: fresh, outbound });
    const owner = { accountId: accountIdOf(db, account), mode };
    await work(blocklist, owner, (action, given, change) => {
      const [subject = null, after] = [given[0], { targets: given.length }];
      return performAction(io, db, {
        action: { action, accountId: owner.accountId, subject, after },
        work: change,
        isRecordedUnchanged: () => false,
      });
    });
  } finally {
    resolver.close();
    platform.close();
    db.close();
  }
};

interface ListOptions extends AccountOptions {
  readonly status?: TargetStatus;
  readonly severity?: Severity;
  readonly label?: string;
  readonly limit: string;
}

interface AddOptions extends AccountOptions {
  readonly label?: string;
  readonly alertSeverityMin?: Severity;
}

const addAll = async (io: Io, options: AddOptions, textOf: () => Promise<string>): Promise<void> => {
  const [text, { webhookAllowNetworks }] = [await textOf(), loadConfig(io)];
  const webhookUrl = webhookUrlSchema(createUrlPolicy(webhookAllowNetworks));
  const common = {
    ...(options.label === undefined ? {} : { label: options.label }),
    ...(options.alertSeverityMin === undefined ? {} : { alert_severity_min: options.alertSeverityMin }),
  };
  await withTargets(io, options, async ({ targets }, owner, perform) => {
    const rows = await readCsvBatch(text, common, webhookUrl);
    const wanted = newTargetsOf(rows);
    const values = wanted.map(({ target }) => target);
    const view = batchView(rows, await perform("targets.add", values, () => targets.addMany(owner, wanted)));
    print(io, options.json, view, () => addedText(view));
    if (view.invalid > 0)
      throw new CommandFailed(`${view.invalid} of ${rows.length} rows were not added.`, "invalid_rows");
  });
};

/** `blocklist targets list | add | import | discover | check | remove`: what an account monitors, in the database. */
export const addTargetCommands = (blocklist: Command, io: Io): void => {
  const group = addGroup(blocklist, "targets", {
    description: "List, add, check and remove the targets that an account monitors.",
    example: "blocklist targets list --account acme",
  });
  addTargetList(group, io);
  withAddOptions(
    addCommand(group, "add", {
      description: "Monitor domains, IP addresses and ranges of IPv4 addresses.",
      example: "blocklist targets add example.com 192.0.2.1 --account acme",
    }),
  )
    .argument("<target...>", "such as example.com, 192.0.2.1 or 192.0.2.0/24")
    .action((given: string[], options: AddOptions) => addAll(io, options, async () => given.join("\n")));
  withAddOptions(
    addCommand(group, "import", {
      description: "Monitor the targets in a CSV file (target,label,webhook_url,alert_severity_min).",
      example: "blocklist targets import targets.csv --account acme",
    }),
  )
    .argument("<file>", "path of the file; - is standard input")
    .action((path: string, options: AddOptions) => addAll(io, options, () => readFileOrStdin(io, path)));
  addTargetDiscover(group, io);
  addTargetCheck(group, io);
  addTargetRemove(group, io);
};

interface DiscoverOptions extends AddOptions {
  readonly egress?: boolean;
  readonly dryRun?: boolean;
}

const addTargetDiscover = (group: Command, io: Io): Command =>
  withAddOptions(
    addCommand(group, "discover", {
      description: "Monitor a domain with its mail hosts and the addresses in its SPF record.",
      example: "blocklist targets discover example.com --account acme --dry-run",
    }),
  )
    .argument("[domain]", "domain to look up; none with --egress alone")
    .option("--egress", "also the addresses that this service connects from")
    .option("--dry-run", "show what was found; add nothing")
    .action(async (domain: string | undefined, options: DiscoverOptions) => {
      const { egress, dryRun, label, alertSeverityMin, json } = options;
      if (domain === undefined && egress !== true) throw new UsageError("Give a domain, --egress, or both.", "domain");
      const request = { domain, egress, dry_run: dryRun, label, alert_severity_min: alertSeverityMin };
      await withTargets(io, options, async (parts, owner, perform) => {
        const discovered = await perform("targets.add", [domain ?? "egress"], () =>
          discoverAndAdd(parts, owner, request),
        );
        const rows = discovered.found.map(({ target, source, status, problem }) => [
          ...[target, status, source, problem ?? ""],
        ]);
        print(io, json, discovered, () =>
          [
            rows.length === 0
              ? "Nothing was found."
              : table(["TARGET", "STATUS", "SOURCE", "PROBLEM"], rows, io.columns),
            ...discovered.unknown,
          ].join("\n"),
        );
      });
    });

const withAddOptions = (command: Command): Command =>
  ofAccount(command, "targets")
    .option("--label <text>", "label of targets that have none")
    .addOption(new Option("--alert-severity-min <severity>", "send no alerts below this").choices([...SEVERITIES]));

const addTargetList = (group: Command, io: Io): Command =>
  ofAccount(
    addCommand(group, "list", {
      description: "List targets, most severe first.",
      example: "blocklist targets list --account acme --status listed",
    }),
    "targets",
  )
    .addOption(new Option("--status <status>", "only this status").choices([...TARGET_STATUSES]))
    .addOption(new Option("--severity <severity>", "only this severity or higher").choices([...SEVERITIES]))
    .option("--label <text>", "only this label")
    .option("--limit <n>", `how many, up to ${SHOWN_MAX}`, String(SHOWN_DEFAULT))
    .action((options: ListOptions) =>
      withTargets(io, options, async ({ targets }, owner) => {
        const { status, severity, label } = options;
        const severityRankMin = severity === undefined ? undefined : severityRankOf(severity);
        const limit = readLimit(options.limit, SHOWN_MAX);
        const rows = readUpTo(targets.listWorst(owner, { status, label, severityRankMin }), limit);
        const views = rows.map((row) => targets.view(row));
        print(io, options.json, { targets: views }, () => targetTable(views, io));
      }),
    );

const addTargetCheck = (group: Command, io: Io): Command =>
  ofAccount(
    addCommand(group, "check", {
      description: "Check targets now and store the result.",
      example: "blocklist targets check example.com --account acme --fail-on high",
    }),
    "targets",
  )
    .argument("<target...>", "targets or their ids")
    .addOption(failOnOption())
    .action((given: string[], options: AccountOptions & { failOn?: Severity }) =>
      withTargets(io, options, async (blocklist, owner, perform) => {
        const { targets } = blocklist;
        const views: TargetView[] = [];
        const found = given.map((text) => findByName(targets, owner, text));
        await perform("targets.check", valuesOf(found), async () => {
          for (const target of found) {
            const finished = await blocklist.check(target);
            if (finished !== null) views.push(targets.view(finished));
          }
        });
        print(io, options.json, { targets: views }, () => targetTable(views, io));
        failOnSeverity(
          options.failOn,
          views.map(({ value, severity }) => ({ name: value, severity })),
        );
      }),
    );

const addTargetRemove = (group: Command, io: Io): Command =>
  ofAccount(
    addCommand(group, "remove", {
      description: "Stop monitoring targets and delete their history.",
      example: "blocklist targets remove example.com --account acme",
    }),
    "targets",
  )
    .argument("<target...>", "targets or their ids")
    .action((given: string[], options: AccountOptions) =>
      withTargets(io, options, async ({ targets }, owner, perform) => {
        const found = given.map((text) => findByName(targets, owner, text));
        const removed = valuesOf(found);
        await perform("targets.remove", removed, async () => {
          for (const { id } of found) await targets.remove(owner, id);
        });
        print(io, options.json, { removed }, () => `${removed.length} removed.`);
      }),
    );
