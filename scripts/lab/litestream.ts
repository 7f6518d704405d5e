import { access, cp, mkdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Supervisor } from "./processes.ts";

const PACKAGE = new URL("litestream/", import.meta.url).pathname;

/** How long Litestream waits between two looks at the log, and between two writes to the replica. */
export const LITESTREAM_INTERVAL_S = 1;

/** Installs Litestream (npm package `@flydotio/litestream`) into the lab's cache, once, and returns the path of its program. */
export const ensureLitestream = async (supervisor: Supervisor, cache: string): Promise<string> => {
  const directory = join(cache, "litestream");
  const platform = `litestream-${process.platform}-${process.arch}`;
  const program = join(directory, "node_modules/@flydotio", platform, "litestream");
  if (await isThere(program)) return program;
  await mkdir(directory, { recursive: true });
  for (const name of ["package.json", "package-lock.json"]) await cp(join(PACKAGE, name), join(directory, name));
  const path = `${dirname(process.execPath)}:${process.env.PATH ?? ""}`;
  await supervisor.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], {
    cwd: directory,
    env: { PATH: path, HOME: process.env.HOME ?? "/root" },
  });
  return program;
};

const isThere = async (path: string): Promise<boolean> => {
  try {
    await access(path);
    return true;
  } catch {
    return false;
  }
};

/** The configuration of the guide in the README, with a folder as the replica. */
export const litestreamConfig = (database: string, replica: string): string =>
  [
    "dbs:",
    `  - path: ${database}`,
    `    monitor-interval: ${LITESTREAM_INTERVAL_S}s`,
    "    replicas:",
    "      - type: file",
    `        path: ${replica}`,
    `        sync-interval: ${LITESTREAM_INTERVAL_S}s`,
    "        snapshot-interval: 24h",
    "        retention: 72h",
    "",
  ].join("\n");
