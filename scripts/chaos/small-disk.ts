/** A small disk. It needs root, and a mount namespace of its own, so that nothing stays mounted whatever happens. */
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { hasOwnNamespace } from "../harness/namespace.ts";

/** A tmpfs at `path`. */
export class SmallDisk {
  readonly #filler: string;

  constructor(
    readonly path: string,
    mebibytes: number,
  ) {
    if (!hasOwnNamespace("mount")) throw new Error("no disk can be mounted: run as root, where unshare(1) works");
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
