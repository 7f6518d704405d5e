import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { Subject } from "./ask.ts";
import { KEY, LAB_LISTS, type LabList, type Outcome, TARGETS } from "./blocklists-lists.ts";
import { LISTS_HTTP } from "./hosts.ts";
import type { Supervisor } from "./processes.ts";
import { startService } from "./run.ts";
import { z } from "zod";

const point = (value: string, negative: string) => ({ positive: [{ value }], negative: [negative] });
const TEST_POINTS = {
  ipv4: point("127.0.0.2", "127.0.0.1"),
  ipv6: point("::ffff:7f00:2", "::ffff:7f00:1"),
  domain: point("test", "invalid"),
};

const entryOf = (list: LabList) => ({
  id: list.id,
  name: `The lab's ${list.id}`,
  operator: "The lab",
  kinds: list.kinds,
  zone: list.key === undefined ? list.zone : null,
  keyed_zone: list.key === undefined ? null : `{key}.${list.zone}`,
  domain_form: list.form ?? "both",
  codes: Object.entries(list.codes).map(([match, id]) => ({
    match: [match],
    id: `${list.id}-${id}`,
    name: `${list.id} ${id}`,
    meaning: `The lab calls it ${id}.`,
    category: "spam",
    severity: "high",
  })),
  refusals:
    list.refusalOutcomes === undefined
      ? []
      : [{ outcomes: list.refusalOutcomes, reason: "It does not serve us.", remedy: "Ask its operator." }],
  ignores: list.ignores === undefined ? [] : [{ match: list.ignores, meaning: "Known, and no listing." }],
  test_points: Object.fromEntries(list.kinds.map((kind) => [kind, TEST_POINTS[kind]])),
  default_enabled: list.disabled === undefined && list.key === undefined,
  budget: { queries_per_day: null, spacing_ms: 0 },
  delist_url: `https://${list.id}.example/`,
  confidence: "A",
});

/** The lab's lists in the form of `POSTWARDEN_BLOCKLIST_CATALOGUE`. */
const catalogueText = (lists: readonly LabList[]): string =>
  JSON.stringify({ version: "lab", lists: lists.map(entryOf), excluded: [] });

const SERVICE = "serve-lists";
const BASE = `http://${LISTS_HTTP.ip}:${LISTS_HTTP.port}/v1/blacklist/targets`;
const CHECK_TIMEOUT_S = 30;
const DEADLINE_MS = 40_000;

/** What one way of asking said of one list: an outcome, and the listing ids in order. */
type Said = Readonly<Record<string, string>>;

const result = z.object({ list: z.string(), outcome: z.string() });
const Printed = z.object({
  results: z.array(result.extend({ listings: z.array(z.object({ id: z.string() })) })),
});
const Target = z.object({ id: z.uuid() });
const Checked = z.object({
  check: z.object({
    results: z.array(result.extend({ listings: z.array(z.string()) })),
    counts: z.object({ not_listed: z.number() }),
  }),
});
const Lists = z.object({
  lists: z.array(
    z.object({
      id: z.string(),
      enabled: z.boolean(),
      health: z.array(z.object({ kind: z.string(), state: z.string() })),
    }),
  ),
});

/** One cell of the table: a target and a list (or the list's health), what is true, and what was said of it. */
export interface ListCell {
  readonly list: string;
  readonly target: string;
  readonly expected: string;
  readonly got: Readonly<Record<string, string>>;
  readonly right: boolean;
}

type TargetName = keyof typeof TARGETS;
const TARGET_NAMES = Object.keys(TARGETS) as TargetName[];

const kindOf = (name: TargetName) => {
  const value = TARGETS[name];
  if (/^(::ffff:)?[\d.]+$/.test(value)) return "ipv4";
  return value.includes(":") ? "ipv6" : "domain";
};

const told = (outcome: string, listings: readonly string[]): string => [outcome, ...listings.toSorted()].join(" ");

const expectedOf = (list: LabList, name: TargetName): string => {
  if (!list.kinds.includes(kindOf(name)) || list.disabled === true) return "skipped" satisfies Outcome;
  const truth = list.truth[name] ?? list.otherwise;
  if (typeof truth === "string") return truth;
  return told(
    "listed",
    truth.map((id) => `${list.id}-${id}`),
  );
};

const saidOf = (results: readonly { list: string; outcome: string; listings: readonly string[] }[]): Said =>
  Object.fromEntries(results.map(({ list, outcome, listings }) => [list, told(outcome, listings)]));

/** One process for all targets, as a person would ask. */
const askByCommandLine = async (supervisor: Supervisor, subject: Subject): Promise<readonly Said[]> => {
  const values = TARGET_NAMES.map((name) => TARGETS[name]);
  const argv = [subject.binary, "blocklist", "check", "--json", ...values];
  const printed = await supervisor.run(argv, { env: subject.environment, timeoutMs: DEADLINE_MS });
  if (printed.includes(KEY)) throw new Error("the command line shows the key of a list");
  return printed
    .trim()
    .split("\n")
    .map((line) => Printed.parse(JSON.parse(line)).results)
    .map((results) => saidOf(results.map((each) => ({ ...each, listings: each.listings.map(({ id }) => id) }))));
};

/** Adds the target and has it checked. Lists that said "not listed", and those that do not apply, are counts only. */
const askByHttp = async (key: string, name: TargetName): Promise<Said> => {
  const headers = { authorization: `Bearer ${key}` };
  const added = await fetch(BASE, { method: "POST", headers, body: JSON.stringify({ target: TARGETS[name] }) });
  const { id } = Target.parse(await added.json());
  const signal = AbortSignal.timeout(DEADLINE_MS);
  const answer = await fetch(`${BASE}/${id}/check?timeout=${CHECK_TIMEOUT_S}`, { method: "POST", headers, signal });
  const text = await answer.text();
  if (text.includes(KEY)) throw new Error("the service shows the key of a list");
  const { results, counts } = Checked.parse(JSON.parse(text)).check;
  const said = saidOf(results);
  const rest = LAB_LISTS.filter((list) => said[list.id] === undefined && expectedOf(list, name) === "not_listed");
  // Lists that are missing count, too: with one too many or too few all of them are wrong.
  const isCounted = counts.not_listed === rest.length;
  return {
    ...said,
    ...Object.fromEntries(rest.map(({ id: list }) => [list, isCounted ? "not_listed" : "miscounted"])),
  };
};

const askHealth = async (supervisor: Supervisor, subject: Subject): Promise<readonly ListCell[]> => {
  const argv = [subject.binary, "blocklist", "lists", "--test", "--json"];
  const { lists } = Lists.parse(
    JSON.parse(await supervisor.run(argv, { env: subject.environment, timeoutMs: DEADLINE_MS })),
  );
  return LAB_LISTS.filter(({ disabled }) => disabled !== true).map(({ id, health }) => {
    const states = lists.find((list) => list.id === id)?.health.map(({ state }) => state) ?? [];
    const tested = [...new Set(states)].join(" ");
    return { list: id, target: "health", expected: health, got: { "lists --test": tested }, right: tested === health };
  });
};

/** Asks the binary about every target on every list, by command line and by HTTP, and for the health of the lists. */
export const runBlocklists = async (supervisor: Supervisor, lab: Subject): Promise<readonly ListCell[]> => {
  const directory = join(lab.directory, "blocklists");
  await mkdir(directory);
  const cataloguePath = join(directory, "catalogue.json");
  await Bun.write(cataloguePath, catalogueText(LAB_LISTS));
  const environment = {
    ...lab.environment,
    POSTWARDEN_DATA_DIR: directory,
    POSTWARDEN_BLOCKLIST_CATALOGUE: cataloguePath,
    POSTWARDEN_BLOCKLIST_KEYS: `keyed=${KEY}`,
  };
  const subject = { ...lab, environment };
  const key = await startService(supervisor, subject, { name: SERVICE, ...LISTS_HTTP });
  const [cli, http, health] = await Promise.all([
    askByCommandLine(supervisor, subject),
    Promise.all(TARGET_NAMES.map((name) => askByHttp(key, name))),
    askHealth(supervisor, subject),
  ]);
  const cells = TARGET_NAMES.flatMap((target, index) =>
    LAB_LISTS.map((list) => {
      const expected = expectedOf(list, target);
      const got = { cli: cli[index]?.[list.id] ?? "skipped", http: http[index]?.[list.id] ?? "skipped" };
      return { list: list.id, target, expected, got, right: got.cli === expected && got.http === expected };
    }),
  );
  return [...health, ...cells];
};

const LETTERS: Readonly<Record<string, string>> = { not_listed: "·", skipped: "-", refused: "R", failed: "F" };

/** The table as text, a list a line; then what went wrong, and the score. */
export const blocklistsText = (cells: readonly ListCell[]): string => {
  if (cells.length === 0) return "";
  const width = Math.max(...LAB_LISTS.map(({ id }) => id.length));
  const letter = ({ right, expected }: ListCell): string => (right ? (LETTERS[expected] ?? "L") : "!");
  const lines = LAB_LISTS.map(({ id, health }) => {
    const letters = cells.filter(({ list, target }) => list === id && target !== "health").map(letter);
    return `${id.padEnd(width)}  ${letters.join(" ")}  ${health}`;
  });
  const wrong = cells.filter(({ right }) => !right);
  return [
    "— blocklists: L listed, · not listed, R refused, F failed, - not asked, ! wrong; the targets are",
    `  ${Object.values(TARGETS).join(", ")}`,
    ...lines,
    ...wrong.map(
      ({ list, target, expected, got }) => `FAIL ${list}, ${target}: ${JSON.stringify(got)} instead of ${expected}`,
    ),
    `blocklists: ${cells.length - wrong.length}/${cells.length}`,
    "",
  ].join("\n");
};
