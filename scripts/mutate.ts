/**
 * `npm run mutate`: changes the source in one place at a time, and checks that a test fails: guards, comparisons, conditions,
 * calls, constants, parts of a WHERE, members of sets and lists, arguments, header values and file modes. A mutant is tried against the test files that execute its line. Works on a copy; the working tree is not touched.
 *
 *   npm run mutate -- [--sample 25] [--seed 1] [--minimum 90] [folder …]
 */
import { cp, mkdtemp, rm, symlink } from "node:fs/promises";
import { cpus, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { Glob } from "bun";
import { type Coverage, createCoverageCache } from "./mutate/coverage.ts";
import { type Mutant, mutantsOf } from "./mutate/mutants.ts";
import { readOptions } from "./harness/options.ts";

const FOLDERS = ["verify", "accounts/billing", "bulk", "foundation/db", "blocklist/lists", "foundation/http"];
/** Tests of these folders run the whole application. */
const TESTS = [
  "accounts",
  "cli",
  "dashboard",
  "notifications/webhooks",
  "blocklist",
  "testing",
  "verify/smtp",
  "foundation/mail",
  "service",
];
const PROJECT = new URL("..", import.meta.url).pathname;
/** A mutant can make a test loop: then it is caught, too. */
const TIMEOUT_MS = 90_000;
/** The quickest of the tests that execute the line; the others only where these notice nothing. */
const TESTS_AT_FIRST = 20;
const TESTS_PER_MUTANT_MAX = 80;
const SHOWN_CHARACTERS = 100;
const WORKERS = Math.max(1, Math.min(4, cpus().length));

interface Task extends Mutant {
  readonly path: string;
}
type Outcome = "caught" | "survived" | "not executed";

const { values, positionals } = readOptions(import.meta.path, {
  options: {
    sample: { type: "string", default: "25" },
    seed: { type: "string", default: "1" },
    minimum: { type: "string", default: "90" },
  },
  allowPositionals: true,
});
const folders = positionals.length > 0 ? positionals : FOLDERS;

/** The same seed draws the same changes, also after the source has changed in other places. */
const sampleOf = (tasks: readonly Task[]): Task[] => {
  const repeats = new Map<string, number>();
  return tasks
    .map((task) => {
      const key = [task.path, task.description, task.original].join("\0");
      const repeat = (repeats.get(key) ?? 0) + 1;
      repeats.set(key, repeat);
      return { task, order: Number(Bun.hash(`${key}\0${repeat}\0${values.seed}`)) };
    })
    .toSorted((a, b) => a.order - b.order)
    .slice(0, Number(values.sample))
    .map(({ task }) => task);
};

const filesOf = (folder: string, pattern: string): string[] =>
  [...new Glob(pattern).scanSync(join(PROJECT, "src", folder))].map((file) => join("src", folder, file)).toSorted();

const tasksOf = async (folder: string): Promise<Task[]> => {
  const tasks: Task[] = [];
  for (const path of filesOf(folder, "**/*.{ts,tsx}")) {
    if (/(\.test|\.d|operations|schemas|examples|\/schema|\/schema-[a-z-]+)\.tsx?$/.test(path)) continue;
    const text = await Bun.file(join(PROJECT, path)).text();
    tasks.push(...mutantsOf(path, text).map((mutant) => ({ ...mutant, path })));
  }
  return sampleOf(tasks);
};

const copyProject = async (): Promise<string> => {
  const root = await mkdtemp(join(tmpdir(), "postwarden-mutate-"));
  for (const part of ["src", "drizzle", "fixtures", "README.md", "package.json", "tsconfig.json", "bunfig.toml"])
    await cp(join(PROJECT, part), join(root, part), { recursive: true });
  await symlink(join(PROJECT, "node_modules"), join(root, "node_modules"));
  return root;
};

/** Runs the tasks on all workers, each with its own copy of the project. */
const onWorkers = async <T, R>(tasks: readonly T[], work: (root: string, task: T) => Promise<R>): Promise<R[]> => {
  const results: R[] = [];
  let next = 0;
  const worker = async () => {
    const root = await copyProject();
    try {
      for (let at = next++; at < tasks.length; at = next++) {
        const task = tasks[at];
        if (task !== undefined) results[at] = await work(root, task);
      }
    } finally {
      await rm(root, { recursive: true });
    }
  };
  await Promise.all(Array.from({ length: WORKERS }, worker));
  return results;
};

/** Whether the tests pass within the time limit. */
const passes = async (root: string, tests: readonly Coverage[]): Promise<boolean> => {
  const files = tests.map(({ test }) => `./${test}`);
  const run = Bun.spawn([process.execPath, "--no-env-file", "test", "--bail", "--timeout", "30000", ...files], {
    cwd: root,
    stdio: ["ignore", "ignore", "ignore"],
  });
  const usualMs = tests.reduce((sum, { ms }) => sum + ms, 0);
  const timer = setTimeout(() => run.kill("SIGKILL"), Math.max(TIMEOUT_MS, 3 * usualMs));
  const status = await run.exited;
  clearTimeout(timer);
  return status === 0;
};

const tryMutant = async (root: string, task: Task, coverage: readonly Coverage[]): Promise<Outcome> => {
  const isBeside = ({ test }: Coverage) => dirname(test) === dirname(task.path);
  const covering = coverage
    .filter(({ lines }) => lines.get(task.path)?.has(task.line))
    .toSorted((a, b) => Number(isBeside(b)) - Number(isBeside(a)) || a.ms - b.ms)
    .slice(0, TESTS_PER_MUTANT_MAX);
  if (covering.length === 0) return "not executed";
  const file = join(root, task.path);
  const text = await Bun.file(file).text();
  await Bun.write(file, text.slice(0, task.start) + task.replacement + text.slice(task.end));
  const [beside, others] = [covering.filter(isBeside), covering.filter((each) => !isBeside(each))];
  try {
    for (const batch of [
      beside.slice(0, 1),
      beside.slice(1),
      others.slice(0, TESTS_AT_FIRST),
      others.slice(TESTS_AT_FIRST),
    ])
      if (batch.length > 0 && !(await passes(root, batch))) return "caught";
    return "survived";
  } finally {
    await Bun.write(file, text);
  }
};

/** Tests that read the source as text see each mutant's text: they say nothing about behaviour. Fuzzing takes minutes. */
const isAboutBehaviour = (test: string) => !/\/(tidy|fuzz|regular-expressions)[a-z-]*\.test/.test(test);
const tests = [...new Set([...folders, ...TESTS].flatMap((folder) => filesOf(folder, "**/*.test.{ts,tsx}")))].filter(
  isAboutBehaviour,
);
console.log(`Measuring which lines ${tests.length} test files execute …`);
const coverage = await onWorkers(tests, await createCoverageCache(PROJECT));

let [caughtInAll, triedInAll] = [0, 0];
for (const folder of folders) {
  const tasks = await tasksOf(folder);
  const outcomes = await onWorkers(tasks, async (root, task) => {
    const outcome = await tryMutant(root, task, coverage);
    const original = task.original.replaceAll(/\s+/g, " ").slice(0, SHOWN_CHARACTERS);
    if (outcome !== "caught") console.log(`  ${outcome}: ${task.path}:${task.line} ${task.description} in ${original}`);
    return outcome;
  });
  const caught = outcomes.filter((outcome) => outcome === "caught").length;
  caughtInAll += caught;
  triedInAll += tasks.length;
  console.log(`${folder}: ${caught} of ${tasks.length} mutants caught`);
}
const percent = (100 * caughtInAll) / Math.max(1, triedInAll);
console.log(`${caughtInAll} of ${triedInAll} caught: ${percent.toFixed(1)} % (minimum ${values.minimum} %)`);
process.exit(percent >= Number(values.minimum) ? 0 : 1);
