import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** What the kernel says of the memory of a limited group of processes. */
export interface MemoryReading {
  /** Anonymous memory in use, in bytes: what cannot be given back by dropping file pages. */
  readonly anonymousBytes: number;
  /** Processes that the kernel killed because nothing could be dropped any more. */
  readonly kills: number;
}

/** A ceiling on memory around the service. */
export interface MemoryGroup {
  /** `cgroup v1`, `cgroup v2`, or `none` with the reason. */
  readonly kind: string;
  readonly isLimited: boolean;
  /** The command line that starts `argv` inside the group, under the same pid. */
  enter(argv: readonly string[]): string[];
  read(): MemoryReading;
  /** Removes the group; its processes must have ended. */
  remove(): void;
}

const NAME = `postwarden-siege-${process.pid}`;
const REMOVE_TRIES_MAX = 50;

interface Mount {
  readonly path: string;
  readonly type: string;
  readonly options: readonly string[];
}

const mounts = (): readonly Mount[] =>
  readFileSync("/proc/self/mounts", "utf8")
    .split("\n")
    .map((line) => line.split(" "))
    .map(([, path = "", type = "", options = ""]) => ({ path, type, options: options.split(",") }));

const numberAfter = (path: string, word: string): number => {
  const text = readFileSync(path, "utf8");
  return Number(new RegExp(`^${word} (\\d+)$`, "m").exec(text)?.[1] ?? 0);
};

/** Writes a file of a group that older kernels or some containers lack. */
const writeOptional = (path: string, text: string): void => {
  if (existsSync(path)) writeFileSync(path, text);
};

const removeFolder = (folder: string): void => {
  for (let tries = 1; ; tries++) {
    try {
      rmdirSync(folder);
      return;
    } catch (error) {
      // The kernel needs a moment after the last process has ended.
      if (tries >= REMOVE_TRIES_MAX) throw error;
      Bun.sleepSync(20);
    }
  }
};

const groupIn = (folder: string, kind: string, read: () => MemoryReading): MemoryGroup => ({
  kind,
  isLimited: true,
  enter: (argv) => ["/bin/sh", "-c", 'echo $$ > "$0" && exec "$@"', join(folder, "cgroup.procs"), ...argv],
  read,
  remove: () => removeFolder(folder),
});

const openV1 = (limitBytes: number): MemoryGroup => {
  const mount = mounts().find(({ type, options }) => type === "cgroup" && options.includes("memory"));
  if (mount === undefined) throw new Error("no cgroup v1 with the memory controller");
  const folder = join(mount.path, NAME);
  mkdirSync(folder);
  try {
    writeFileSync(join(folder, "memory.limit_in_bytes"), String(limitBytes));
    writeOptional(join(folder, "memory.memsw.limit_in_bytes"), String(limitBytes));
  } catch (error) {
    removeFolder(folder);
    throw error;
  }
  return groupIn(folder, "cgroup v1", () => ({
    anonymousBytes: numberAfter(join(folder, "memory.stat"), "total_rss"),
    kills: numberAfter(join(folder, "memory.oom_control"), "oom_kill"),
  }));
};

const openV2 = (limitBytes: number): MemoryGroup => {
  const mount = mounts().find(({ type }) => type === "cgroup2");
  if (mount === undefined) throw new Error("no cgroup v2");
  const controllers = readFileSync(join(mount.path, "cgroup.controllers"), "utf8").trim().split(" ");
  if (!controllers.includes("memory")) throw new Error("cgroup v2 without the memory controller");
  writeFileSync(join(mount.path, "cgroup.subtree_control"), "+memory");
  const folder = join(mount.path, NAME);
  mkdirSync(folder);
  try {
    writeFileSync(join(folder, "memory.max"), String(limitBytes));
    writeOptional(join(folder, "memory.swap.max"), "0");
  } catch (error) {
    removeFolder(folder);
    throw error;
  }
  return groupIn(folder, "cgroup v2", () => ({
    anonymousBytes: numberAfter(join(folder, "memory.stat"), "anon"),
    kills: numberAfter(join(folder, "memory.events"), "oom_kill"),
  }));
};

/** No group at all; `reason` says why. */
export const withoutGroup = (reason: string): MemoryGroup => ({
  kind: `none (${reason})`,
  isLimited: false,
  enter: (argv) => [...argv],
  read: () => ({ anonymousBytes: Number.NaN, kills: 0 }),
  remove: () => undefined,
});

/** Creates a group with this ceiling, by whichever version of cgroups can be written; without one nothing is limited. */
export const openMemoryGroup = (limitBytes: number): MemoryGroup => {
  const problems: string[] = [];
  for (const open of [openV1, openV2]) {
    try {
      return open(limitBytes);
    } catch (error) {
      problems.push(error instanceof Error ? error.message : String(error));
    }
  }
  return withoutGroup(problems.join("; "));
};
