import { mkdir, readdir, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Glob } from "bun";
import { z } from "zod";

/** Which lines of which source files a test file executes, and how long it takes. */
export interface Coverage {
  readonly test: string;
  readonly ms: number;
  readonly lines: ReadonlyMap<string, ReadonlySet<number>>;
}

/** Reads an lcov file: source file → executed lines (`DA:line,count`). */
const readLcov = (lcov: string): Map<string, Set<number>> => {
  const lines = new Map<string, Set<number>>();
  let executed = new Set<number>();
  for (const row of lcov.split("\n")) {
    if (row.startsWith("SF:")) {
      executed = new Set();
      lines.set(row.slice("SF:".length), executed);
    }
    const [, line, count] = /^DA:(\d+),(\d+)$/.exec(row) ?? [];
    if (line !== undefined && count !== "0") executed.add(Number(line));
  }
  return lines;
};

/** Runs one test file with coverage. Throws if it fails: mutants need a green suite. */
const measure = async (root: string, test: string): Promise<Coverage> => {
  const folder = join(root, ".coverage", test.replaceAll("/", "-"));
  const startedAt = performance.now();
  const options = ["--coverage", "--coverage-reporter=lcov", `--coverage-dir=${folder}`, "--timeout", "60000"];
  const { exited } = Bun.spawn([process.execPath, "--no-env-file", "test", ...options, test], {
    cwd: root,
    stdio: ["ignore", "ignore", "ignore"],
  });
  if ((await exited) !== 0) throw new Error(`${test} fails without any mutant`);
  const ms = performance.now() - startedAt;
  const lcov = Bun.file(join(folder, "lcov.info"));
  // A test that only starts other processes has none.
  const lines = readLcov((await lcov.exists()) ? await lcov.text() : "");
  await rm(folder, { recursive: true, force: true });
  return { test, ms, lines };
};

/** What all tests depend on: sources, fixtures, migrations and the lock file, without the tests themselves. */
const sourceHash = async (root: string): Promise<string> => {
  const hash = new Bun.CryptoHasher("sha256");
  const files = [...new Glob("{src,fixtures,drizzle}/**/*").scanSync(root)].filter(
    (file) => !/\.test\.tsx?$/.test(file),
  );
  for (const file of [...files.toSorted(), "package-lock.json", "bunfig.toml"])
    hash.update(`${file}\0`).update(await Bun.file(join(root, file)).bytes());
  return hash.digest("hex");
};

const cachedSchema = z.object({ ms: z.number(), lines: z.array(z.tuple([z.string(), z.array(z.int())])) });

/** How long measurements are kept. */
const KEPT_MS = 24 * 60 * 60 * 1000;

/** Measurements in the temporary directory, by the content of the test and of all sources: a changed test is measured again. */
export const createCoverageCache = async (project: string) => {
  const folder = join(tmpdir(), "postwarden-mutate-coverage");
  const sources = await sourceHash(project);
  await mkdir(folder, { recursive: true });
  for (const name of await readdir(folder))
    if ((await stat(join(folder, name))).mtimeMs < Date.now() - KEPT_MS) await rm(join(folder, name), { force: true });
  return async (root: string, test: string): Promise<Coverage> => {
    const hash = new Bun.CryptoHasher("sha256").update(sources).update(await Bun.file(join(project, test)).bytes());
    const file = Bun.file(join(folder, `${hash.digest("hex")}.json`));
    if (await file.exists()) {
      const { ms, lines } = cachedSchema.parse(await file.json());
      return { test, ms, lines: new Map(lines.map(([path, executed]) => [path, new Set(executed)])) };
    }
    const coverage = await measure(root, test);
    const lines = [...coverage.lines].map(([path, executed]) => [path, [...executed]]);
    await Bun.write(file, JSON.stringify({ ms: coverage.ms, lines }));
    return coverage;
  };
};
