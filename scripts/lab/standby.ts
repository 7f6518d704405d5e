import { access, cp, mkdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Subject } from "./ask.ts";
import { STANDBY_HTTP } from "./hosts.ts";
import { type Claim, claim } from "./claims.ts";
import type { Supervisor } from "./processes.ts";
import { startService } from "./run.ts";
import { z } from "zod";

const PACKAGE = new URL("litestream/", import.meta.url).pathname;

/** How long Litestream waits between two looks at the log, and between two writes to the replica. */
const LITESTREAM_INTERVAL_S = 1;

/** Installs Litestream (npm package `@flydotio/litestream`) into the lab's cache, once, and returns the path of its program. */
const ensureLitestream = async (supervisor: Supervisor, cache: string): Promise<string> => {
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

/** The configuration of the guide "Running it", with a folder as the replica. */
const litestreamConfig = (database: string, replica: string): string =>
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

const THEME = "standby";
const PRIMARY = { name: "serve-primary", ip: STANDBY_HTTP.ip, port: STANDBY_HTTP.primary } as const;
const STANDBY = { name: "serve-standby", ip: STANDBY_HTTP.ip, port: STANDBY_HTTP.standby } as const;
/** Lists that are submitted before the machine is lost. */
const LISTS = 100;
const PAUSE_MS = 60;

const Accepted = z.object({ id: z.string() });

/** A list that the primary acknowledged. */
interface Acknowledged {
  readonly id: string;
  readonly atMs: number;
}

const cell = (what: string, expected: string, got: string): Claim => claim(THEME, what, expected, got);

const lists = ({ ip, port }: { readonly ip: string; readonly port: number }): string =>
  `http://${ip}:${port}/v1/bulk-verifications`;

/** Submits lists one after another; each `202` is a promise. */
const submitLists = async (key: string): Promise<readonly Acknowledged[]> => {
  const acknowledged: Acknowledged[] = [];
  while (acknowledged.length < LISTS) {
    const response = await fetch(lists(PRIMARY), {
      method: "POST",
      headers: { authorization: `Bearer ${key}` },
      body: JSON.stringify({ emails: [`known${acknowledged.length}@good.test`] }),
    });
    acknowledged.push({ id: Accepted.parse(await response.json()).id, atMs: performance.now() });
    await Bun.sleep(PAUSE_MS);
  }
  return acknowledged;
};

const missingOf = async (key: string, acknowledged: readonly Acknowledged[]): Promise<readonly Acknowledged[]> => {
  const missing: Acknowledged[] = [];
  for (const one of acknowledged) {
    const response = await fetch(`${lists(STANDBY)}/${one.id}`, { headers: { authorization: `Bearer ${key}` } });
    await response.text();
    if (response.status !== 200) missing.push(one);
  }
  return missing;
};

/**
 * The warm standby of the guide "Running it": Litestream replicates to a folder, the machine is lost (`kill -9` of server and
 * Litestream), the database is restored elsewhere and a server starts there.
 */
export const runStandby = async (supervisor: Supervisor, lab: Subject, cache: string): Promise<Claim[]> => {
  const litestream = await ensureLitestream(supervisor, cache);
  const [folder, replica] = [join(lab.directory, "standby-data"), join(lab.directory, "replica")];
  const key = await startService(supervisor, lab, PRIMARY);
  const database = join(lab.directory, `${PRIMARY.name}-data`, "postwarden.db");
  const config = join(lab.directory, "litestream.yml");
  await Bun.write(config, litestreamConfig(database, replica));
  supervisor.start({ name: "litestream", argv: [litestream, "replicate", "-config", config] });
  const acknowledged = await submitLists(key);
  await Promise.all([supervisor.kill(PRIMARY.name), supervisor.kill("litestream")]);
  const lostAtMs = performance.now();

  await mkdir(folder, { mode: 0o700 });
  const restored = join(folder, "postwarden.db");
  await supervisor.run([litestream, "restore", "-config", config, "-o", restored, database]);
  const env = { ...lab.environment, POSTWARDEN_DATA_DIR: folder };
  const http = { POSTWARDEN_HOST: STANDBY.ip, POSTWARDEN_PORT: String(STANDBY.port) };
  supervisor.start({ name: STANDBY.name, argv: [lab.binary, "serve"], env: { ...env, ...http } });
  await supervisor.waitForPort(STANDBY.name, STANDBY.ip, STANDBY.port);
  const missing = await missingOf(key, acknowledged);
  const lagMs = Math.max(0, ...missing.map(({ atMs }) => lostAtMs - atMs));
  const backup = await supervisor.finish([lab.binary, "backup", join(lab.directory, "standby-backup.db")], { env });
  console.error(
    `standby: ${acknowledged.length} lists acknowledged, ${missing.length} of them lost, the oldest ${Math.round(lagMs)} ms before the end`,
  );
  const kept = acknowledged.slice(0, LISTS - missing.length);
  return [
    cell("some lists were replicated", "yes", kept.length > 0 ? "yes" : "none"),
    cell("what is lost is the newest", "0", String(missing.filter((one) => kept.includes(one)).length)),
    cell("the restored database is intact", "0", String(backup.code)),
  ];
};
