import type { Command } from "commander";
import { composeLookups } from "../compose-blocklist.ts";
import { freshResolverOf, systemPlatform } from "../compose-engine.ts";
import { severityRankOf } from "../blocklist/severity.ts";
import { parseTarget } from "../blocklist/parse-target.ts";
import { type Blocklist, isEnabled, type Severity } from "../dnsbl/blocklist.ts";
import type { Dnsbl } from "../dnsbl/dnsbl.ts";
import type { ListOutcome } from "../dnsbl/lookup.ts";
import type { Target } from "../dnsbl/query-name.ts";
import { catalogueView } from "../blocklist/list-view.ts";
import { addTargetCommands, failOnOption, failOnSeverity } from "./blocklist-targets.ts";
import { CommandFailed, type Io, print, UsageError } from "./io.ts";
import { table } from "./terminal-text.ts";
import { loadConfig } from "./data-directory.ts";

interface Asking {
  readonly lists: readonly Blocklist[];
  readonly dnsbl: Dnsbl;
}

/** What one list said of a target, as JSON shows it. */
const resultOf = (outcome: ListOutcome, lists: readonly Blocklist[]) => ({
  list: outcome.list,
  outcome: outcome.outcome,
  listings: outcome.listings.map(({ id, name, severity, meanings }) => ({
    id,
    name,
    severity,
    meaning: meanings.join(" "),
  })),
  codes: outcome.returnCodes,
  text: outcome.text,
  reason: outcome.reason,
  remedy: outcome.remedy,
  delist_url: lists.find(({ id }) => id === outcome.list)?.delistUrl ?? null,
});

const statusOf = (outcomes: readonly ListOutcome[]): "listed" | "clean" | "unknown" => {
  if (outcomes.some(({ outcome }) => outcome === "listed")) return "listed";
  return outcomes.some(({ outcome }) => outcome === "not_listed") ? "clean" : "unknown";
};

/** Asked as if nothing was known before, so that a listing is confirmed before users are notified. */
const checkTarget = async ({ lists, dnsbl }: Asking, target: Target) => {
  const outcomes = await dnsbl.lookup.checkAll(target, lists, { previous: [] });
  return {
    target: target.value,
    kind: target.kind,
    status: statusOf(outcomes),
    listed_on: outcomes.flatMap(({ listings }) => listings.map(({ id }) => id)).toSorted(),
    results: outcomes.filter(({ outcome }) => outcome !== "skipped").map((outcome) => resultOf(outcome, lists)),
  };
};
type Checked = Awaited<ReturnType<typeof checkTarget>>;

const HEADINGS = ["SEVERITY", "LIST", "ANSWER", "WHAT IT MEANS"];

/** The worst first; addresses of delisting pages stand below, where nothing breaks them. */
const asText = ({ target, status, results }: Checked, columns: number): string => {
  const listed = results
    .flatMap(({ listings, delist_url }) => listings.map((listing) => ({ ...listing, delist_url })))
    .toSorted((a, b) => severityRankOf(b.severity) - severityRankOf(a.severity));
  const others = results.filter(({ outcome }) => outcome !== "listed" && outcome !== "not_listed");
  const rows = [
    ...listed.map(({ id, severity, meaning }) => [severity, id, "listed", meaning]),
    ...others.map(({ list, outcome, reason }) => ["", list, outcome, reason ?? ""]),
  ];
  const clean = results.filter(({ outcome }) => outcome === "not_listed").length;
  const head = `${target}: ${status} (${clean} of ${results.length} lists say: not listed)`;
  const delisting = listed.flatMap(({ id, delist_url }) => (delist_url === null ? [] : [`  ${id}: ${delist_url}`]));
  return [
    head,
    ...(rows.length === 0 ? [] : [table(HEADINGS, rows, columns)]),
    ...(delisting.length === 0 ? [] : ["Delisting:", ...delisting]),
  ].join("\n");
};

const parseOrRefuse = (text: string): Target => {
  const parsed = parseTarget(text, "live");
  if (parsed.ok) return parsed.value;
  throw new UsageError(`"${text}": ${parsed.error}`, "target");
};

/** `blocklist check | lists`, which need no server and no database, and `blocklist targets`. */
export const addBlocklistCommands = (program: Command, io: Io): void => {
  const group = program
    .command("blocklist")
    .description("DNS blocklists: is something listed, which lists can be believed, what an account watches");
  addTargetCommands(group, io);

  const withLookups = async <T>(work: (lookups: ReturnType<typeof composeLookups>) => Promise<T>): Promise<T> => {
    const config = loadConfig(io);
    const platform = systemPlatform(config);
    // A second query is to reach the list, as in the service.
    const resolver = freshResolverOf(config);
    try {
      return await work(composeLookups(config, { ...platform, resolver }));
    } finally {
      resolver.close();
      platform.close();
    }
  };

  group
    .command("check")
    .description("ask every enabled list about domains and IP addresses")
    .argument("<target...>", "domains and IP addresses")
    .addOption(failOnOption())
    .option("--json", "print a JSON object a line")
    .action(async (given: string[], { json, failOn }: { json?: boolean; failOn?: Severity }) => {
      const targets = given.map(parseOrRefuse);
      const found: Array<{ name: string; severity: Severity }> = [];
      await withLookups(async ({ catalogue, dnsbl }) => {
        const lists = catalogue.lists.filter(isEnabled);
        for (const target of targets) {
          const checked = await checkTarget({ lists, dnsbl }, target);
          print(io, json, checked, () => asText(checked, io.columns));
          for (const { listings } of checked.results)
            found.push(...listings.map(({ severity }) => ({ name: checked.target, severity })));
        }
      });
      failOnSeverity(failOn, found);
    });

  group
    .command("lists")
    .description("the lists of the catalogue")
    .option("--test", "ask every enabled list for its test points, through your resolver")
    .option("--json", "print JSON")
    .action(({ test, json }: { test?: boolean; json?: boolean }) =>
      withLookups(async ({ catalogue, dnsbl }) => {
        if (test) await dnsbl.health.ensureAllFresh(catalogue.lists.filter(isEnabled));
        const view = catalogueView(catalogue, dnsbl.health);
        const rows = view.lists.map(({ id, kinds, enabled, severity, health, usage }) => [
          id,
          kinds.join(" "),
          enabled ? "yes" : "no",
          severity,
          ...(test ? [health.map(({ kind, state }) => `${kind} ${state}`).join(", ")] : []),
          test ? (health.find(({ reason }) => reason !== null)?.reason ?? "") : (usage?.terms ?? ""),
        ]);
        print(io, json, view, () =>
          table(["LIST", "KINDS", "ASKED", "SEVERITY", ...(test ? ["HEALTH", "WHY"] : ["WHO MAY USE IT"])], rows),
        );
        const believed = view.lists.some(({ health }) => health.some(({ state }) => state === "healthy"));
        if (test && !believed) throw new CommandFailed("No list can be believed through this resolver.", "unhealthy");
      }),
    );
};
