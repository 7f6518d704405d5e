import type { Database as Sqlite } from "bun:sqlite";
import { statfsSync } from "node:fs";
import { dirname } from "node:path";

/** Space for the database, in bytes. */
export interface DiskSpace {
  /** Of the disk, and pages of the file that are free again. */
  readonly freeBytes: number;
  /** The size of the disk. */
  readonly totalBytes: number;
}

/** The space for the database at `path`; null for one in memory. */
export const diskSpaceOf = (path: string, sqlite: Sqlite): DiskSpace | null => {
  if (path === ":memory:") return null;
  const { bavail, blocks, bsize } = statfsSync(dirname(path));
  const pragma = (name: string): number => {
    const row = sqlite.query<Record<string, number>, []>(`PRAGMA ${name}`).get();
    return row?.[name] ?? 0;
  };
  return {
    freeBytes: bavail * bsize + pragma("freelist_count") * pragma("page_size"),
    totalBytes: blocks * bsize,
  };
};
