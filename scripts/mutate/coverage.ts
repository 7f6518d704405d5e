import { rm } from "node:fs/promises";
import { join } from "node:path";

/** Which lines of which source files a test file executes, and how long it takes. */
export interface Coverage {
  readonly test: string;
  readonly ms: number;
  readonly lines: ReadonlyMap<string, ReadonlySet<number>>;
}

/** Reads an lcov file: source file → executed lines (`DA:line,count`). */
export const readLcov = (lcov: string): Map<string, Set<number>> => {
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
export const measure = async (root: string, test: string): Promise<Coverage> => {
  const folder = join(root, ".coverage", test.replaceAll("/", "-"));
  const startedAt = performance.now();
  const options = ["--coverage", "--coverage-reporter=lcov", `--coverage-dir=${folder}`, "--timeout", "60000"];
  const { exited } = Bun.spawn([process.execPath, "--no-env-file", "test", ...options, test], {
    cwd: root,
    stdio: ["ignore", "ignore", "ignore"],
  });
  if ((await exited) !== 0) throw new Error(`${test} fails without any mutant`);
  const ms = performance.now() - startedAt;
  const lines = readLcov(await Bun.file(join(folder, "lcov.info")).text());
  await rm(folder, { recursive: true });
  return { test, ms, lines };
};
