import { readFileSync } from "node:fs";
import { systemClock } from "../foundation/base/clock.ts";
import { createLog } from "../foundation/base/log.ts";
import { isId, type Owner } from "../foundation/base/secrets.ts";
import { batchView, newTargetsOf, readCsvBatch } from "../blocklist/batch.ts";
import { createOwnAddressFinder } from "../dmarc/insight/sources/own-addresses.ts";
import { discoverAndAdd } from "../blocklist/discovery.ts";
import { severityRankOf } from "../blocklist/lists/blocklist.ts";
import { TARGET_STATUSES, type TargetRow } from "../blocklist/store.ts";
import type { Targets } from "../blocklist/targets.ts";
import { BlocklistSlice } from "../blocklist/open.ts";
import { Outbound } from "../notifications/open.ts";
import { freshResolverOf, mailerOf, systemPlatform } from "../service/platform.ts";
import { SEVERITIES } from "../foundation/base/severity.ts";
import { createUrlPolicy } from "../foundation/net/fetch-url.ts";
import { webhookUrlSchema } from "../notifications/webhooks/url-store.ts";
import {
  argument,
  choice,
  command,
  group,
  limit,
  option,
  type Surroundings,
  type Terminal,
  toggle,
  type Values,
} from "./command.ts";
import { CommandFailed, describeFileError, type Io, UsageError } from "./io.ts";
import { inAccount } from "./data-directory.ts";
import { FAIL_ON, failOnSeverity } from "./fail-on.ts";
import type { Config } from "../service/config.ts";

type TargetView = ReturnType<Targets["view"]>;

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

/** Prints targets with their worst listings. */
const showTargets = ({ print, table }: Terminal, views: readonly TargetView[]): void =>
  print({ targets: views }, () => (views.length === 0 ? "No targets." : table(HEADINGS, views.map(rowOf))));

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

interface TargetContext {
  readonly blocklist: BlocklistSlice;
  readonly owner: Owner;
  readonly config: Config;
  readonly perform: PerformOnTargets;
}

const account = inAccount("targets");

/** Commands on the targets of an account. */
const inTargets: Surroundings<TargetContext, typeof account.options> = {
  options: account.options,
  open: (terminal, input, work) =>
    account.open(terminal, input, async ({ db, config, owner, audit }) => {
      const platform = systemPlatform(config);
      const resolver = freshResolverOf(config);
      const log = createLog("warn", systemClock, terminal.io.err);
      try {
        const { clock, random } = platform;
        // The service that uses the same database sends the events.
        const outbound = new Outbound({ db, clock }, config, { mailer: mailerOf(config) });
        const fresh = { ...platform, resolver };
        const ownAddresses = createOwnAddressFinder(db, clock);
        const deps = { platform: fresh, outbound, ownAddresses };
        const blocklist = new BlocklistSlice({ db, clock, log, random }, config, deps);
        const perform: PerformOnTargets = (action, given, change) =>
          audit.perform({
            action: {
              action,
              accountId: owner.accountId,
              subject: given[0] ?? null,
              after: { targets: given.length },
            },
            work: change,
            isRecordedUnchanged: () => false,
          });
        await work({ blocklist, owner, config, perform });
      } finally {
        resolver.close();
        platform.close();
      }
    }),
};

/** The options of commands that add targets. */
const ADDED = {
  label: option("<text>", "label of targets that have none"),
  alertSeverityMin: choice("<severity>", SEVERITIES, "send no alerts below this"),
};

const addAll = async (
  { blocklist: { targets }, owner, config, perform, print }: TargetContext & Terminal,
  text: string,
  { label, alertSeverityMin }: Values<typeof ADDED>,
): Promise<void> => {
  const common = {
    ...(label === undefined ? {} : { label }),
    ...(alertSeverityMin === undefined ? {} : { alert_severity_min: alertSeverityMin }),
  };
  const rows = await readCsvBatch(text, common, webhookUrlSchema(createUrlPolicy(config.webhookAllowNetworks)));
  const wanted = newTargetsOf(rows);
  const values = wanted.map(({ target }) => target);
  const view = batchView(rows, await perform("targets.add", values, () => targets.addMany(owner, wanted)));
  print(view, () => addedText(view));
  if (view.invalid > 0)
    throw new CommandFailed(`${view.invalid} of ${rows.length} rows were not added.`, "invalid_rows");
};

const DISCOVER = command({
  description: "Monitor a domain with its mail hosts and the addresses in its SPF record.",
  example: "blocklist targets discover example.com --account acme --dry-run",
  on: inTargets,
  args: { domain: argument("[domain]", "domain to look up; none with --egress or --dmarc-domain alone") },
  options: {
    ...ADDED,
    dmarcDomain: option("<domain>", "also the own servers that the DMARC reports about this domain name"),
    egress: toggle("also the addresses that this service connects from"),
    dryRun: toggle("show what was found; add nothing"),
  },
  check({ domain, dmarcDomain, egress }) {
    if ((domain ?? dmarcDomain) === undefined && !egress)
      throw new UsageError("Give a domain, --dmarc-domain, or --egress.", "domain");
  },
  async run({ blocklist, owner, perform, print, table }, { domain, dmarcDomain, egress, dryRun, ...settings }) {
    const { label, alertSeverityMin } = settings;
    const places = { domain, dmarc_domain: dmarcDomain, egress };
    const request = { ...places, dry_run: dryRun, label, alert_severity_min: alertSeverityMin };
    const discovered = await perform("targets.add", [domain ?? dmarcDomain ?? "egress"], () =>
      discoverAndAdd(blocklist, owner, request),
    );
    const rows = discovered.found.map(({ target, source, status, problem }) => [target, status, source, problem ?? ""]);
    const found = () =>
      rows.length === 0 ? "Nothing was found." : table(["TARGET", "STATUS", "SOURCE", "PROBLEM"], rows);
    print(discovered, () => [found(), ...discovered.unknown].join("\n"));
  },
});

const LIST = command({
  description: "List targets, most severe first.",
  example: "blocklist targets list --account acme --status listed",
  on: inTargets,
  options: {
    status: choice("<status>", TARGET_STATUSES, "only this status"),
    severity: choice("<severity>", SEVERITIES, "only this severity or higher"),
    label: option("<text>", "only this label"),
    limit: limit(100, SHOWN_MAX),
  },
  run(context, { status, severity, label, limit: shown }) {
    const { blocklist, owner } = context;
    const { targets } = blocklist;
    const severityRankMin = severity === undefined ? undefined : severityRankOf(severity);
    const rows = readUpTo(targets.listWorst(owner, { status, label, severityRankMin }), shown);
    showTargets(
      context,
      rows.map((row) => targets.view(row)),
    );
  },
});

const GIVEN = { given: argument("<target...>", "targets or their ids") };

/** The targets that an account monitors, in the database. */
export const TARGET_COMMANDS = group(
  {
    description: "List, add, check and remove the targets that an account monitors.",
    example: "blocklist targets list --account acme",
  },
  {
    list: LIST,
    add: command({
      description: "Monitor domains, IP addresses and ranges of IPv4 addresses.",
      example: "blocklist targets add example.com 192.0.2.1 --account acme",
      on: inTargets,
      options: ADDED,
      args: { given: argument("<target...>", "such as example.com, 192.0.2.1 or 192.0.2.0/24") },
      run: (context, { given, ...options }) => addAll(context, given.join("\n"), options),
    }),
    import: command({
      description: "Monitor the targets in a CSV file (target,label,webhook_url,alert_severity_min).",
      example: "blocklist targets import targets.csv --account acme",
      on: inTargets,
      options: ADDED,
      args: { path: argument("<file>", "path of the file; - is standard input") },
      run: async (context, { path, ...options }) => addAll(context, await readFileOrStdin(context.io, path), options),
    }),
    discover: DISCOVER,
    check: command({
      description: "Check targets now and store the result.",
      example: "blocklist targets check example.com --account acme --fail-on high",
      on: inTargets,
      args: GIVEN,
      options: { failOn: FAIL_ON },
      async run(context, { given, failOn }) {
        const { blocklist, owner, perform } = context;
        const { targets } = blocklist;
        const views: TargetView[] = [];
        const found = given.map((text) => findByName(targets, owner, text));
        await perform("targets.check", valuesOf(found), async () => {
          for (const target of found) {
            const finished = await blocklist.check(target);
            if (finished !== null) views.push(targets.view(finished));
          }
        });
        showTargets(context, views);
        failOnSeverity(
          failOn,
          views.map(({ value, severity }) => ({ name: value, severity })),
        );
      },
    }),
    remove: command({
      description: "Stop monitoring targets and delete their history.",
      example: "blocklist targets remove example.com --account acme",
      on: inTargets,
      args: GIVEN,
      async run({ blocklist: { targets }, owner, perform, print }, { given }) {
        const found = given.map((text) => findByName(targets, owner, text));
        const removed = valuesOf(found);
        await perform("targets.remove", removed, async () => {
          for (const { id } of found) await targets.remove(owner, id);
        });
        print({ removed }, () => `${removed.length} removed.`);
      },
    }),
  },
);
