import { catalogueOf, openDnsbl, type Dnsbl } from "../blocklist/lists/open.ts";
import { freshResolverOf, systemPlatform } from "../service/platform.ts";
import { severityRankOf, type Blocklist, type Catalogue, isEnabled } from "../blocklist/lists/blocklist.ts";
import { parseTarget } from "../blocklist/parse-target.ts";
import type { Severity } from "../foundation/base/severity.ts";
import type { ListOutcome } from "../blocklist/lists/lookup.ts";
import type { Target } from "../blocklist/lists/query-name.ts";
import { catalogueView } from "../blocklist/list-status.ts";
import { argument, command, group, type Surroundings, toggle } from "./command.ts";
import { TARGET_COMMANDS } from "./blocklist-targets.ts";
import { FAIL_ON, failOnSeverity } from "./fail-on.ts";
import { CommandFailed, UsageError } from "./io.ts";
import { table } from "./terminal-text.ts";
import { loadConfig } from "./prepare-directory.ts";

interface Lookups {
  readonly catalogue: Catalogue;
  readonly dnsbl: Dnsbl;
}

/** The result of one list for a target, as JSON shows it. */
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

/** Checks a target without a previous state, so that every listing is confirmed before it is reported. */
const checkTarget = async (dnsbl: Dnsbl, lists: readonly Blocklist[], target: Target) => {
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

const HEADINGS = ["SEVERITY", "LIST", "RESULT", "MEANING"];

/** The most severe first; delisting URLs come last, on lines of their own so that they are not wrapped. */
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
  const head = `${target}: ${status} (${clean} of ${results.length} lists: not listed)`;
  const delisting = listed.flatMap(({ id, delist_url }) => (delist_url === null ? [] : [`  ${id}: ${delist_url}`]));
  return [
    head,
    ...(rows.length === 0 ? [] : [table(HEADINGS, rows, columns)]),
    ...(delisting.length === 0 ? [] : ["Delisting:", ...delisting]),
  ].join("\n");
};

const parseTargetArgument = (text: string): Target => {
  const parsed = parseTarget(text, "live");
  if (parsed.ok) return parsed.value;
  throw new UsageError(`"${text}": ${parsed.error}`, "target");
};

const TARGETS = {
  ...argument("<target...>", "domains and IP addresses"),
  read: (given: unknown) => (given as readonly string[]).map(parseTargetArgument),
};

/** Commands that query lists, without a database. */
const inLookups: Surroundings<Lookups> = {
  options: {},
  async open({ io }, _, work) {
    const config = loadConfig(io);
    const platform = systemPlatform(config);
    // Uncached, so that a confirming query reaches the list, as in the service.
    const resolver = freshResolverOf(config);
    try {
      await work({ catalogue: catalogueOf(config), dnsbl: openDnsbl({ ...platform, resolver }) });
    } finally {
      resolver.close();
      platform.close();
    }
  },
};

const CHECK = command({
  description: "Query every enabled list for domains and IP addresses.",
  example: "blocklist check 192.0.2.1 example.com --fail-on high",
  json: "print one JSON object per target",
  on: inLookups,
  args: { given: TARGETS },
  options: { failOn: FAIL_ON },
  async run({ catalogue, dnsbl, io, print }, { given, failOn }) {
    const lists = catalogue.lists.filter(isEnabled);
    const found: Array<{ name: string; severity: Severity }> = [];
    for (const target of given) {
      const checked = await checkTarget(dnsbl, lists, target);
      print(checked, () => asText(checked, io.columns));
      for (const { listings } of checked.results)
        found.push(...listings.map(({ severity }) => ({ name: checked.target, severity })));
    }
    failOnSeverity(failOn, found);
  },
});

const CATALOGUE_LISTS = command({
  description: "Show the lists of the catalogue and who may use them.",
  example: "blocklist lists --test",
  on: inLookups,
  options: { test: toggle("query the test points of every enabled list through your resolver") },
  async run({ catalogue, dnsbl, print, table }, { test }) {
    if (test) await dnsbl.health.ensureAllFresh(catalogue.lists.filter(isEnabled));
    const view = catalogueView(catalogue, dnsbl.health);
    const rows = view.lists.map(({ id, kinds, enabled, severity, health, usage }) => [
      ...[id, kinds.join(" "), enabled ? "yes" : "no", severity],
      ...(test ? [health.map(({ kind, state }) => `${kind} ${state}`).join(", ")] : []),
      test ? (health.find(({ reason }) => reason !== null)?.reason ?? "") : (usage?.terms ?? ""),
    ]);
    const headings = ["LIST", "KINDS", "ENABLED", "SEVERITY", ...(test ? ["HEALTH", "REASON"] : ["TERMS OF USE"])];
    print(view, () => table(headings, rows));
    const isUsable = view.lists.some(({ health }) => health.some(({ state }) => state === "healthy"));
    if (test && !isUsable)
      throw new CommandFailed(
        "No list is usable through this resolver. Set POSTWARDEN_DNS_SERVERS to a recursive resolver of your own.",
        "unhealthy",
      );
  },
});

const BLOCKLIST = group(
  {
    description: "Query DNS blocklists and manage the targets that an account monitors.",
    example: "blocklist check 192.0.2.1 example.com",
  },
  { targets: TARGET_COMMANDS, check: CHECK, lists: CATALOGUE_LISTS },
);

export const BLOCKLIST_COMMANDS = { blocklist: BLOCKLIST };
