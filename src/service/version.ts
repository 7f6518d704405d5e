import { readFileSync } from "node:fs";
import { join } from "node:path";
import manifest from "../../package.json" with { type: "json" };

/** Set by `npm run build`; undefined when the source runs directly. */
declare const POSTWARDEN_COMMIT: string | undefined;

const HASH = /^[0-9a-f]{12}/;

/** The commit that is checked out in a clone, without running Git; null in anything else, also in a worktree. */
export const checkedOutCommit = (root: string): string | null => {
  const read = (...path: readonly string[]): string => {
    try {
      return readFileSync(join(root, ".git", ...path), "utf8");
    } catch {
      // Missing: not a clone, or the branch is packed.
      return "";
    }
  };
  const head = read("HEAD");
  const branch = /^ref: (refs\/\S+)/.exec(head)?.[1];
  if (branch === undefined) return HASH.exec(head)?.[0] ?? null;
  const packed = read("packed-refs")
    .split("\n")
    .find((line) => line.endsWith(` ${branch}`));
  return HASH.exec(read(branch))?.[0] ?? HASH.exec(packed ?? "")?.[0] ?? null;
};

/** The version of this binary, as in package.json. */
export const VERSION: string = manifest.version;

/**
 * The Git commit that this binary was built from, with `-modified` if the source had changes; when the source runs directly, the
 * commit that is checked out; null when that is unknown.
 */
export const COMMIT: string | null =
  typeof POSTWARDEN_COMMIT === "string" ? POSTWARDEN_COMMIT : checkedOutCommit(join(import.meta.dir, "../.."));
export const LIVENESS_PATH = "/healthz";
export const READINESS_PATH = "/readyz";

/** The response of `GET /healthz` while the process is running. */
export const LIVENESS = { status: "ok", version: VERSION, commit: COMMIT } as const;
