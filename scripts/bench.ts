/** Measures speed and memory, each figure beside its limit: see `USAGE`. */
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { cpus, loadavg, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { measureBlocklists } from "./bench/blocklists.ts";
import { measureBulkList } from "./bench/bulk-list.ts";
import { measureBulk } from "./bench/bulk.ts";
import { measureChecks, measureTurns } from "./bench/checks.ts";
import { Comparison } from "./bench/compare.ts";
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
import { type Mark, failedGroup, isMet, marksJson, marksText } from "./bench/marks.ts";
import { measurePlan } from "./bench/plan.ts";
import { measureProviders } from "./bench/providers.ts";
import { withReport } from "./bench/report.ts";
import { measureSilent } from "./bench/silent.ts";
import type { Stage } from "./bench/stage.ts";
import { measureStart } from "./bench/start.ts";
import { measureTests } from "./bench/tests.ts";
import { measureWebhooks } from "./bench/webhooks.ts";
import { measureYear } from "./bench/year.ts";
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
  webhooks: measureWebhooks,
  dmarc: measureDmarc,
  "dmarc-sources": measureDmarcSources,
  history: measureHistory,
  gaps: measureGaps,
  growth: measureGrowth,
  year: measureYear,
  dashboard: measureDashboard,
  tests: measureTests,
};

/** Groups of half an hour and 20 GB, which are measured only when they are named. */
const SELDOM: ReadonlySet<string> = new Set(["year"]);

const USAGE = `npm run bench -- [OPTION …]: measures speed and memory, each figure beside its limit.
Exits with 1 when a limit is missed.

  --only GROUP       measures this group; several are possible
  --quick            leaves out the largest sizes
  --binary PATH      measures this executable instead of dist/postwarden
  --compare VERSION  builds this source and another version of it (a commit, a tag or a branch), measures them in
                     turns, and shows the figures of that version as "before"
  --turns N          measures each version N times (default: 2) and shows the medians; with --compare
  --json             prints for a program
  --report           writes the figures into scripts/bench/README.md, and exits with 0 when a limit is missed
  --help             prints this text

Groups: ${Object.keys(GROUPS).join(", ")}
Only when named: ${[...SELDOM].join(", ")} (half an hour, 20 GB; with --quick four minutes, 2 GB)`;
const EXIT_USAGE = 2;
const TURNS_MAX = 20;

const readOptions = () => {
  const { values } = parseArgs({
    options: {
      only: { type: "string", multiple: true },
      json: { type: "boolean", default: false },
      report: { type: "boolean", default: false },
      binary: { type: "string" },
      compare: { type: "string" },
      turns: { type: "string", default: "2" },
      quick: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  const wanted = values.only ?? Object.keys(GROUPS).filter((group) => !SELDOM.has(group));
  const unknown = wanted.filter((group) => !Object.hasOwn(GROUPS, group));
  if (unknown.length > 0) throw new Error(`There is no group ${unknown.join(", ")}: ${Object.keys(GROUPS).join(", ")}`);
  const turns = Number(values.turns);
  if (!Number.isInteger(turns) || turns < 1 || turns > TURNS_MAX)
    throw new Error(`--turns takes a number from 1 to ${TURNS_MAX}`);
  if (values.compare !== undefined && values.binary !== undefined)
    throw new Error("--compare builds both executables: leave out --binary");
  return { ...values, wanted, turns };
};

type Options = ReturnType<typeof readOptions>;

/** A group that fails is a line of the table, and a missed limit; the others still run. */
const measure = async (stage: Stage, group: string): Promise<Mark[]> => {
  process.stderr.write(`${group} …\n`);
  try {
    return (await GROUPS[group]?.(stage)) ?? [];
  } catch (error) {
    return [failedGroup(group, error)];
  }
};

/** Writes the marks into the table of `bench/README.md`. */
const writeReport = async (marks: readonly Mark[], load: number, { quick, compare }: Options): Promise<void> => {
  const page = Bun.file(join(ROOT, "scripts/bench/README.md"));
  const words = [
    `${cpus().length} × ${cpus()[0]?.model.trim() ?? process.arch}`,
    `load ${load.toFixed(0)}`,
    ...(quick ? ["--quick"] : []),
    ...(compare === undefined ? [] : [`before: ${compare}`]),
  ];
  const machine = words.join(", ");
  const day = new Date().toISOString().slice(0, 10);
  await page.write(withReport(await page.text(), { marks, day, machine, groups: Object.keys(GROUPS) }));
};

type MeasureGroup = (group: string) => Promise<Mark[]>;

/** Measures groups with this executable. */
const openMeasuring = async (stage: Omit<Stage, "binary">, options: Options): Promise<MeasureGroup> => {
  const binary = resolve(options.binary ?? join(ROOT, "dist/postwarden"));
  if (!(await Bun.file(binary).exists())) throw new Error(`${binary} is missing: npm run build`);
  return (group) => measure({ ...stage, binary }, group);
};

/** Measures one group after the other. Each is reported when it ends: a run of an hour that is interrupted keeps what it has. */
const measureAll = async (measureGroup: MeasureGroup, load: number, options: Options): Promise<number> => {
  const marks: Mark[] = [];
  for (const group of options.wanted) {
    const measured = await measureGroup(group);
    if (options.report) await writeReport(measured, load, options);
    marks.push(...measured);
  }
  console.log(options.json ? marksJson(marks) : marksText(marks));
  return options.report || marks.every((mark) => isMet(mark) !== false) ? 0 : 1;
};

const main = async (options: Options): Promise<number> => {
  const interrupted = Promise.withResolvers<number>();
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(signal, () => interrupted.resolve(EXIT_INTERRUPTED));
  }
  const directory = await mkdtemp(join(tmpdir(), "postwarden-bench-"));
  await chmod(directory, 0o755);
  const supervisor = createSupervisor(directory);
  const children = new Set<Bun.Subprocess>();
  const { compare: version, turns, quick: isQuick } = options;
  const comparison = version === undefined ? null : new Comparison({ version, directory, isQuick, turns });
  // That of others: the measurement itself has not begun.
  const [load = 0] = loadavg();
  const measuring = comparison?.open() ?? openMeasuring({ directory, supervisor, children, isQuick }, options);
  const work = measuring.then((measureGroup) => measureAll(measureGroup, load, options));
  try {
    return await Promise.race([work, interrupted.promise]);
  } catch (error) {
    console.error(error instanceof Error ? error.message : String(error));
    return 1;
  } finally {
    await comparison?.close();
    for (const child of children) child.kill("SIGKILL");
    await Promise.all([...children].map((child) => child.exited));
    for (const sentence of await supervisor.stopAll()) console.error(sentence);
    await rm(directory, { recursive: true, force: true });
  }
};

const start = (): Promise<number> | number => {
  try {
    const options = readOptions();
    if (!options.help) return main(options);
    console.log(USAGE);
    return 0;
  } catch (error) {
    const [reason] = (error instanceof Error ? error.message : String(error)).split("\n");
    console.error(`${reason} (npm run bench -- --help)`);
    return EXIT_USAGE;
  }
};

process.exit(await start());
