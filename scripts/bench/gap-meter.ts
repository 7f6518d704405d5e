import { join } from "node:path";
import { GAP_MS_MAX, type LoopGap } from "./loop-watch.ts";
import type { Mark } from "./marks.ts";
import { keep, type Stage } from "./stage.ts";

export const GROUP = "gaps";
const ROOT = join(import.meta.dir, "../..");
export const WATCH = join(import.meta.dir, "loop-watch.ts");

/** A process whose event loop is watched: `read` says what was seen since it was read last. */
export interface Watched {
  read(): Promise<LoopGap>;
}

/** Starts the binary, or a script of ours by its path, with the watch loaded into it. `said`: what it says by itself. `enter` limits it. */
export const spawnWatched = (
  stage: Stage,
  program: "binary" | readonly string[],
  env: Record<string, string>,
  enter: (argv: readonly string[]) => readonly string[] = (argv) => argv,
) => {
  const waiting: Array<(gap: LoopGap) => void> = [];
  const [ready, said] = [Promise.withResolvers<void>(), Promise.withResolvers<unknown>()];
  const take = (message: unknown): void => {
    if (typeof message === "object" && message !== null && "gapMs" in message) waiting.shift()?.(message as LoopGap);
    else if (message === "ready") ready.resolve();
    else said.resolve(message);
  };
  const argv = program === "binary" ? [stage.binary, "serve"] : [process.execPath, "--no-env-file", ...program];
  const child = Bun.spawn([...enter(argv)], {
    ...{ cwd: ROOT, env: { ...env, BUN_OPTIONS: `--preload ${WATCH}` }, stdio: ["ignore", "ignore", "inherit"] },
    ipc: take,
  });
  const read = (): Promise<LoopGap> => {
    const { promise, resolve } = Promise.withResolvers<LoopGap>();
    waiting.push(resolve);
    child.send("read");
    return promise;
  };
  return { child, read, ready: ready.promise, said: said.promise, stop: keep(stage, child) };
};

/** Measures pieces of work, each beside a bare process. */
export class GapMeter {
  readonly marks: Mark[] = [];

  constructor(
    private readonly bare: Watched,
    private readonly group: string = GROUP,
  ) {}

  /** The longest gap of a process while `work` goes on. */
  async during<T>(what: string, watched: Watched, work: () => Promise<T>): Promise<T> {
    await Promise.all([watched.read(), this.bare.read()]);
    const startedMs = performance.now();
    const value = await work();
    const seconds = (performance.now() - startedMs) / 1_000;
    const [gap, bare] = await Promise.all([watched.read(), this.bare.read()]);
    const note =
      `above it ${gap.over} times in ${seconds.toFixed(1)} s, at ${(gap.atMs / 1_000).toFixed(2)} s; ` +
      `with waits for processor and disk ${gap.gapMs.toFixed(0)} ms, a bare process beside it ${bare.gapMs.toFixed(0)} ms`;
    const limit = { most: GAP_MS_MAX };
    this.marks.push({ group: this.group, what: `longest gap, ${what}`, value: gap.heldMs, unit: "ms", limit, note });
    return value;
  }
}
