/**
 * Measures speed and memory, each figure beside its limit. `--only GROUP` (several times, too) runs those groups alone,
 * `--json` prints for a program, `--binary PATH` takes another binary, `--quick` leaves out the largest sizes. Exits with 1
 * when a limit is missed, unless `--report` is given, which writes the figures into `bench/README.md`.
 */
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { cpus, loadavg, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { measureBlocklists } from "./bench/blocklists.ts";
import { measureBulkList } from "./bench/bulk-list.ts";
import { measureBulk } from "./bench/bulk.ts";
import { measureChecks, measureTurns } from "./bench/checks.ts";
import { measureCommits } from "./bench/commits.ts";
import { measureDashboard } from "./bench/dashboard.ts";
import { measureDmarcSources } from "./bench/dmarc-sources.ts";
import { measureDmarc } from "./bench/dmarc.ts";
import { measureDns } from "./bench/dns.ts";
import { measureGaps } from "./bench/gaps.ts";
import { measureGrowth } from "./bench/growth.ts";
import { measureHistory } from "./bench/history.ts";
import { measureHttp } from "./bench/http.ts";
import { measureIntake } from "./bench/intake.ts";
import { type Mark, isMet, marksJson, marksText } from "./bench/marks.ts";
import { measurePlan } from "./bench/plan.ts";
import { measureProviders } from "./bench/providers.ts";
import { withReport } from "./bench/report.ts";
import { measureSilent } from "./bench/silent.ts";
import type { Stage } from "./bench/stage.ts";
import { measureStart } from "./bench/start.ts";
import { createSupervisor } from "./lab/processes.ts";

const ROOT = resolve(import.meta.dir, "..");
const EXIT_INTERRUPTED = 130;

const GROUPS: Readonly<Record<string, (stage: Stage) => Promise<Mark[]>>> = {
  http: measureHttp,
  start: measureStart,
  checks: measureChecks,
  turns: measureTurns,
  commits: measureCommits,
  plan: measurePlan,
  dns: measureDns,
  silent: measureSilent,
  bulk: measureBulk,
  providers: measureProviders,
  "bulk-list": measureBulkList,
  intake: measureIntake,
  blocklists: measureBlocklists,
  dmarc: measureDmarc,
  "dmarc-sources": measureDmarcSources,
  history: measureHistory,
  gaps: measureGaps,
  growth: measureGrowth,
  dashboard: measureDashboard,
};

const { values: options } = parseArgs({
  options: {
    only: { type: "string", multiple: true },
    json: { type: "boolean", default: false },
    report: { type: "boolean", default: false },
    binary: { type: "string" },
    quick: { type: "boolean", default: false },
  },
});

/** A group that fails is a line of the table, and a missed limit; the others still run. */
const measure = async (stage: Stage, group: string): Promise<Mark[]> => {
  process.stderr.write(`${group} …\n`);
  try {
    return (await GROUPS[group]?.(stage)) ?? [];
  } catch (error) {
    const note = error instanceof Error ? error.message : String(error);
    return [{ group, what: "the whole group", value: null, unit: "", limit: { most: 0 }, note }];
  }
};

/** Writes the marks into the table of `bench/README.md`. */
const writeReport = async (marks: readonly Mark[], load: number): Promise<void> => {
  const page = Bun.file(join(ROOT, "scripts/bench/README.md"));
  const machine = `${cpus().length} × ${cpus()[0]?.model.trim() ?? process.arch}, load ${load.toFixed(0)}${options.quick ? ", --quick" : ""}`;
  const day = new Date().toISOString().slice(0, 10);
  await page.write(withReport(await page.text(), { marks, day, machine, groups: Object.keys(GROUPS) }));
};

const work = async (surroundings: Omit<Stage, "binary">): Promise<number> => {
  const binary = resolve(options.binary ?? join(ROOT, "dist/postwarden"));
  if (!(await Bun.file(binary).exists())) throw new Error(`${binary} is missing: npm run build`);
  const wanted = options.only ?? Object.keys(GROUPS);
  const unknown = wanted.filter((group) => !Object.hasOwn(GROUPS, group));
  if (unknown.length > 0) throw new Error(`There is no group ${unknown.join(", ")}: ${Object.keys(GROUPS).join(", ")}`);
  // That of others: the measurement itself has not begun.
  const [load = 0] = loadavg();
  const marks: Mark[] = [];
  for (const group of wanted) marks.push(...(await measure({ ...surroundings, binary }, group)));
  console.log(options.json ? marksJson(marks) : marksText(marks));
  if (options.report) await writeReport(marks, load);
  return options.report || marks.every((mark) => isMet(mark) !== false) ? 0 : 1;
};

const main = async (): Promise<number> => {
  const interrupted = Promise.withResolvers<number>();
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(signal, () => interrupted.resolve(EXIT_INTERRUPTED));
  }
  const directory = await mkdtemp(join(tmpdir(), "postwarden-bench-"));
  await chmod(directory, 0o755);
  const supervisor = createSupervisor(directory);
  const children = new Set<Bun.Subprocess>();
  try {
    return await Promise.race([work({ directory, supervisor, children, isQuick: options.quick }), interrupted.promise]);
  } catch (error) {
    console.error(error instanceof Error ? error.message : String(error));
    return 1;
  } finally {
    for (const child of children) child.kill("SIGKILL");
    await Promise.all([...children].map((child) => child.exited));
    for (const sentence of await supervisor.stopAll()) console.error(sentence);
    await rm(directory, { recursive: true, force: true });
  }
};

process.exit(await main());
