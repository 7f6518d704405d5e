/** A small disk. It needs root, and a mount namespace of its own, so that nothing stays mounted whatever happens. */
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Set in the process that has its own mounts. */
const MARK = "CHAOS_OWN_MOUNTS";
const hasOwnMounts = (): boolean => process.env[MARK] === "yes";

/** Runs this program again in a mount namespace of its own; its exit status, or null when it is in one already or may not. */
export const inOwnNamespace = async (): Promise<number | null> => {
  if (process.getuid?.() !== 0 || hasOwnMounts()) return null;
  const child = Bun.spawn(["unshare", "--mount", process.execPath, ...process.execArgv, ...process.argv.slice(1)], {
    ...{ env: { ...process.env, [MARK]: "yes" }, stdio: ["ignore", "inherit", "inherit"] },
  });
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => child.kill(signal));
  return child.exited;
};

/** A tmpfs at `path`. */
export class SmallDisk {
  readonly #filler: string;

  constructor(
    readonly path: string,
    mebibytes: number,
  ) {
    if (!hasOwnMounts()) throw new Error("no disk can be mounted: run as root, where unshare(1) works");
    mkdirSync(path);
    const mount = ["mount", "-t", "tmpfs", "-o", `size=${mebibytes}m,mode=700`, "tmpfs", path];
    const { exitCode, stderr } = Bun.spawnSync(mount);
    if (exitCode !== 0) throw new Error(`${mount.join(" ")}: ${stderr.toString()}`);
    this.#filler = join(path, "filler");
  }

  /** Takes all the space that is left. */
  fill(): void {
    const block = new Uint8Array(64 * 1024);
    for (;;) {
      try {
        writeFileSync(this.#filler, block, { flag: "a" });
      } catch (error) {
        if (error instanceof Error && "code" in error && error.code === "ENOSPC") return;
        throw error;
      }
    }
  }

  free(): void {
    rmSync(this.#filler, { force: true });
  }

  unmount(): void {
    Bun.spawnSync(["umount", "--lazy", this.path]);
  }
}
