import { readdirSync, rmSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { CHECKSUM_SUFFIX } from "./backup-checksum.ts";
import { COMPANION_SUFFIXES } from "./backup.ts";
import { removeAbandonedPartials } from "./partial-file.ts";

/** Why a copy of a former database stands beside the present one: an upgrade or a restore followed. */
export type KeptCause = "migration" | "restore";

/** A copy of a former database, with its logs. */
export interface KeptCopy {
  readonly file: string;
  readonly cause: KeptCause;
  readonly bytes: number;
  readonly atMs: number;
}

/** Copies of each cause that stay, the newest. */
const COPIES_MAX = 3;
/** What follows the name of the database in that of a copy: the next migration, or the time of the restore. */
const COPY =
  /^\.before-(?:(?<migration>\d{4}_[\w-]+?)|(?<restore>restore-[\dTZ-]+))(?<companion>-wal|-shm|-journal|\.sha256)?$/;
const COMPANIONS = [...COMPANION_SUFFIXES, CHECKSUM_SUFFIX];

const sizeOf = (file: string): number => statSync(file, { throwIfNoEntry: false })?.size ?? 0;

const copyNames = (
  path: string,
): readonly { readonly name: string; readonly cause: KeptCause; readonly companion: string }[] => {
  const start = basename(path);
  return readdirSync(dirname(path)).flatMap((name) => {
    const found = name.startsWith(start) ? COPY.exec(name.slice(start.length))?.groups : undefined;
    if (found === undefined) return [];
    const { restore, companion = "" } = found;
    return [{ name, cause: restore === undefined ? "migration" : "restore", companion }];
  });
};

/** The copies of former databases beside the one at `path`, the newest first. */
export const keptCopies = (path: string, cause?: KeptCause): readonly KeptCopy[] =>
  copyNames(path)
    .filter((copy) => copy.companion === "" && (cause === undefined || copy.cause === cause))
    .flatMap((copy) => {
      const file = join(dirname(path), copy.name);
      const stat = statSync(file, { throwIfNoEntry: false });
      if (stat === undefined) return [];
      const logs = COMPANION_SUFFIXES.reduce((sum, suffix) => sum + sizeOf(file + suffix), 0);
      return [{ file, cause: copy.cause, bytes: stat.size + logs, atMs: stat.mtimeMs }];
    })
    .toSorted((a, b) => b.atMs - a.atMs);

/** Removes all copies of one cause but the newest three, with what belongs to them. */
export const removeOldCopies = (path: string, cause: KeptCause): void => {
  for (const { file } of keptCopies(path, cause).slice(COPIES_MAX))
    for (const suffix of ["", ...COMPANIONS]) rmSync(file + suffix, { force: true });
};

/**
 * Removes what interrupted restores, migrations and backups left beside a database: partial files, and logs of a copy that
 * was never made. The caller holds the server lock.
 */
export const removeAbandonedCopies = (path: string): void => {
  const folder = dirname(path);
  removeAbandonedPartials(folder, (name) => name.startsWith(basename(path)));
  const names = new Set(readdirSync(folder));
  for (const { name, companion } of copyNames(path))
    if (companion !== "" && !names.has(name.slice(0, -companion.length))) rmSync(join(folder, name), { force: true });
};
