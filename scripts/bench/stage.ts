import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { AccountsSlice } from "../../src/accounts/open.ts";
import { type Config, readConfig } from "../../src/service/config.ts";
import { type Db, openDb } from "../../src/foundation/db/open.ts";
import { freePort } from "../harness/world.ts";
import type { Supervisor } from "../lab/processes.ts";

/** What a group works with: a directory of its own, and who starts and ends its processes. */
export interface Stage {
  readonly directory: string;
  readonly supervisor: Supervisor;
  readonly binary: string;
  /** A tenth of the largest sizes (`--quick`). */
  readonly isQuick: boolean;
  /** Processes that run outside the supervisor; whoever ends the bench ends them. */
  readonly children: Set<Bun.Subprocess>;
}

/** Everything is measured on loopback: the settings that allow it, no questions to lists of the real world, a quiet log. */
const BASE_SETTINGS = {
  POSTWARDEN_PROBE_ALLOW_NETWORKS: "127.0.0.0/8",
  POSTWARDEN_HELO_NAME: "probe.bench.example",
  POSTWARDEN_DNSBL_SIGNAL: "off",
  POSTWARDEN_LOG_LEVEL: "warn",
};

export type Settings = Readonly<Record<`POSTWARDEN_${string}`, string>>;

/** The settings of a process of ours, as an environment. */
export const environment = (settings: Settings): Record<string, string> => ({ ...BASE_SETTINGS, ...settings });

/** The same settings for a service inside this process. */
export const configOf = (settings: Settings): Config => {
  const config = readConfig(environment(settings));
  if (config.ok) return config.value;
  throw new Error(config.error.join(" "));
};

/** A new, empty data directory. */
export const newDataDir = async ({ directory }: Pick<Stage, "directory">, name: string): Promise<string> => {
  const path = join(directory, name);
  await mkdir(path, { recursive: true, mode: 0o700 });
  return path;
};

/** Opens the database of a data directory, migrated, so that it can be prepared before a service is started on it. */
export const openData = (dataDir: string): Db => {
  const opened = openDb(join(dataDir, "postwarden.db"));
  if (opened.ok) return opened.value;
  throw new Error(`the database cannot be opened: ${opened.error.kind}`);
};

/** Makes an owner of an account, who is an operator too, and opens a session of theirs. */
export const signInOwner = (db: Db, { users, sessions }: AccountsSlice, accountId: string): string => {
  const invited = users.invite({ accountId, email: "owner@bench.example", role: "owner", isOperator: true }, null);
  if (!invited.ok) throw new Error("no user");
  const { id } = invited.value.user;
  return db.transact((tx) => sessions.open(tx, id, { address: "127.0.0.1", userAgent: "bench" }));
};

/** A process of ours that serves HTTP. */
export interface Running {
  readonly url: string;
  readonly pid: number;
  stop(signal?: "SIGTERM" | "SIGKILL"): Promise<void>;
}

/** The binary as a service; `firstAnswerMs` is from the start of the process to its first 200 of `/healthz`. */
export interface Service extends Running {
  readonly firstAnswerMs: number;
}

/** Remembers a process until it has ended. The answer ends it, and waits for that. */
export const keep = ({ children }: Stage, child: Bun.Subprocess): Running["stop"] => {
  children.add(child);
  return async (signal = "SIGTERM") => {
    child.kill(signal);
    await child.exited;
    children.delete(child);
  };
};

const FIRST_ANSWER_MS_MAX = 15_000;

/** Waits for the first 200 of `/healthz`, and returns when it came, in milliseconds. */
export const untilHealthy = async (url: string, child: Bun.Subprocess): Promise<number> => {
  const startedMs = performance.now();
  for (;;) {
    const answered = await fetch(`${url}/healthz`).then(
      (response) => response.status === 200,
      () => false,
    );
    const elapsedMs = performance.now() - startedMs;
    if (answered) return elapsedMs;
    if (child.exitCode !== null || child.signalCode !== null || elapsedMs > FIRST_ANSWER_MS_MAX)
      throw new Error("the binary did not start");
    await Bun.sleep(1);
  }
};

/** Waits for the service behind the server, which answers `/healthz` and `/readyz` before. Loads the API. */
export const untilReady = async ({ url }: Pick<Running, "url">): Promise<void> => {
  await (await fetch(`${url}/v1/account`)).text();
};

/** Starts the binary on a data directory and waits until it is ready. The caller stops it. */
export const startBinary = async (stage: Stage, dataDir: string, settings: Settings = {}): Promise<Service> => {
  const service = await startUnready(stage, dataDir, settings);
  await untilReady(service);
  return service;
};

/** Starts the binary on a data directory and waits until it answers `/healthz`. The caller stops it. */
export const startUnready = (stage: Stage, dataDir: string, settings: Settings = {}): Promise<Service> =>
  startServing(stage, { dataDir, settings }, (env) =>
    Bun.spawn([stage.binary, "serve"], { cwd: dataDir, env, stdio: ["ignore", "ignore", "inherit"] }),
  );

/** Starts a service on a data directory and waits until it answers `/healthz`. */
export const startServing = async (
  stage: Stage,
  { dataDir, settings }: { readonly dataDir: string; readonly settings: Settings },
  spawn: (env: Record<string, string>) => Bun.Subprocess,
): Promise<Service> => {
  const port = freePort();
  const url = `http://127.0.0.1:${port}`;
  const child = spawn(environment({ ...settings, POSTWARDEN_DATA_DIR: dataDir, POSTWARDEN_PORT: String(port) }));
  const stop = keep(stage, child);
  try {
    return { url, pid: child.pid, firstAnswerMs: await untilHealthy(url, child), stop };
  } catch (error) {
    await stop("SIGKILL");
    throw error;
  }
};
