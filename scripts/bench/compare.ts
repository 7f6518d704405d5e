import { cp, rm, symlink } from "node:fs/promises";
import { join, resolve } from "node:path";
import { z } from "zod";
import { WHOLE_GROUP, type Mark, failedGroup, markSchema, median } from "./marks.ts";

const ROOT = resolve(import.meta.dir, "../..");

/** A source with its executable. */
interface Version {
  readonly root: string;
  readonly binary: string;
}

interface Ended {
  readonly code: number;
  readonly stdout: string;
}

/** Runs programs, and ends those that still run. */
class Programs {
  readonly #running = new Set<Bun.Subprocess>();

  async run(argv: readonly string[], cwd: string): Promise<Ended> {
    const child = Bun.spawn([...argv], { cwd, stdio: ["ignore", "pipe", "inherit"] });
    this.#running.add(child);
    const [stdout, code] = await Promise.all([new Response(child.stdout).text(), child.exited]);
    this.#running.delete(child);
    return { code, stdout: stdout.trim() };
  }

  async must(argv: readonly string[], cwd: string): Promise<string> {
    const { code, stdout } = await this.run(argv, cwd);
    if (code !== 0) throw new Error(`"${argv.join(" ")}" failed.\n${stdout}`);
    return stdout;
  }

  /** A measurement ends its own processes. */
  async stop(): Promise<void> {
    const running = [...this.#running];
    for (const child of running) child.kill("SIGTERM");
    await Promise.all(running.map((child) => child.exited));
  }
}

interface Options {
  /** A commit, a tag or a branch. */
  readonly version: string;
  /** A temporary folder. */
  readonly directory: string;
  readonly isQuick: boolean;
  /** How often each version is measured. */
  readonly turns: number;
}

/** Measures this source and another version of it in turns, both with the measurements of this source. */
export class Comparison {
  readonly #programs = new Programs();
  readonly #other: string;

  constructor(private readonly options: Options) {
    this.#other = join(options.directory, "other-version");
  }

  /** Builds both. Throws a sentence when there is no such version. */
  async open(): Promise<(group: string) => Promise<Mark[]>> {
    const commit = await this.#commit();
    const versions = [await this.#buildThis(), await this.#buildOther(commit)] as const;
    return (group) => this.#measure(versions, group);
  }

  async close(): Promise<void> {
    await this.#programs.stop();
    if (await Bun.file(join(this.#other, ".git")).exists())
      await this.#programs.run(["git", "worktree", "remove", "--force", this.#other], ROOT);
  }

  async #commit(): Promise<string> {
    const { version } = this.options;
    const name = ["git", "rev-parse", "--verify", "--quiet", "--end-of-options", `${version}^{commit}`];
    const { code, stdout } = await this.#programs.run(name, ROOT);
    if (code !== 0) throw new Error(`There is no version "${version}": name a commit, a tag or a branch.`);
    return stdout;
  }

  async #buildThis(): Promise<Version> {
    const binary = join(this.options.directory, "this-version", "postwarden");
    await this.#programs.must([process.execPath, "scripts/build.ts", `--outfile=${binary}`], ROOT);
    return { root: ROOT, binary };
  }

  async #buildOther(commit: string): Promise<Version> {
    const root = this.#other;
    await this.#programs.must(["git", "worktree", "add", "--quiet", "--detach", root, commit], ROOT);
    const lock = (of: string): Promise<string> => Bun.file(join(of, "package-lock.json")).text();
    const hasSamePackages = (await lock(root)) === (await lock(ROOT));
    if (hasSamePackages) await symlink(join(ROOT, "node_modules"), join(root, "node_modules"));
    // The script of npm installs the packages of a version that has others.
    const bun = hasSamePackages ? [process.execPath] : ["node", "scripts/run.mjs"];
    await this.#programs.must([...bun, "scripts/build.ts"], root);
    await rm(join(root, "scripts"), { recursive: true });
    await cp(join(ROOT, "scripts"), join(root, "scripts"), { recursive: true });
    return { root, binary: join(root, "dist/postwarden") };
  }

  /** First this one, then the other, then the other way round: what changes on the machine meets both. */
  async #measure([own, other]: readonly [Version, Version], group: string): Promise<Mark[]> {
    const runs = new Map<Version, Mark[][]>([own, other].map((version) => [version, []]));
    for (let turn = 0; turn < this.options.turns; turn++)
      for (const version of turn % 2 === 0 ? [own, other] : [other, own])
        runs.get(version)?.push(await this.#run(version, group));
    return besideEachOther(runs.get(own) ?? [], runs.get(other) ?? []);
  }

  async #run({ root, binary }: Version, group: string): Promise<Mark[]> {
    const quick = this.options.isQuick ? ["--quick"] : [];
    const program = [process.execPath, "--no-env-file", "scripts/bench.ts"];
    const argv = [...program, "--only", group, "--binary", binary, "--json", ...quick];
    const { stdout } = await this.#programs.run(argv, root);
    try {
      return z.array(markSchema).parse(JSON.parse(stdout));
    } catch (error) {
      return [failedGroup(group, error)];
    }
  }
}

/** The values by what was measured; the same words may stand twice in a run. */
const valuesOf = (runs: ReadonlyArray<readonly Mark[]>): ReadonlyMap<string, readonly number[]> => {
  const values = new Map<string, number[]>();
  for (const run of runs)
    for (const [key, { value }] of keyed(run)) {
      const known = values.get(key) ?? [];
      values.set(key, value === null ? known : [...known, value]);
    }
  return values;
};

const keyed = (run: readonly Mark[]): ReadonlyArray<readonly [key: string, mark: Mark]> =>
  run.map((mark, at) => [`${mark.what} ${run.slice(0, at).filter(({ what }) => what === mark.what).length}`, mark]);

const isFailure = ({ what }: Mark): boolean => what === WHOLE_GROUP;

/** The marks of one version, each with the value of another; of several runs their medians. */
export const besideEachOther = (
  runs: ReadonlyArray<readonly Mark[]>,
  others: ReadonlyArray<readonly Mark[]>,
): Mark[] => {
  const [values, before] = [valuesOf(runs), valuesOf(others)];
  const middle = (known: readonly number[] = []): number | null => (known.length === 0 ? null : median(known));
  const whole = runs.find((run) => !run.some(isFailure)) ?? runs[0] ?? [];
  const marks = keyed(whole).map(([key, mark]) => ({
    ...mark,
    value: middle(values.get(key)),
    before: middle(before.get(key)),
  }));
  const failed = others.flat().filter(isFailure);
  return [...marks, ...failed.map((mark) => ({ ...mark, what: `${mark.what}, before` }))];
};
