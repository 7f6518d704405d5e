/** The binary under chaos: its commands, and a server that can be killed at any moment. */
import { resolve } from "node:path";
import { eventually } from "./claims.ts";

export const BINARY = resolve(new URL("../..", import.meta.url).pathname, "dist/postwarden");

export type Environment = Readonly<Record<string, string>>;

/** Runs one command to its end and answers what it printed as JSON; throws when it fails. */
export const command = <T>(args: readonly string[], env: Environment): T => {
  const { exitCode, stdout, stderr } = Bun.spawnSync([BINARY, ...args, "--json"], {
    ...{ env: { ...env }, stdin: "ignore" },
  });
  if (exitCode !== 0) throw new Error(`postwarden ${args.join(" ")}: ${stderr.toString()}`);
  return JSON.parse(stdout.toString()) as T;
};

const LISTEN_MS_MAX = 20_000;
const LOG_CHARACTERS_MAX = 4_000_000;

/** Starts `serve` without waiting for anything. */
export const spawnServer = (env: Environment) => {
  const process = Bun.spawn([BINARY, "serve"], {
    ...{ env: { ...env }, stdin: "ignore", stdout: "ignore", stderr: "pipe" },
  });
  let log = "";
  const read = async (): Promise<void> => {
    const decoder = new TextDecoder();
    for await (const bytes of process.stderr) log = (log + decoder.decode(bytes)).slice(-LOG_CHARACTERS_MAX);
  };
  void read();
  return { process, log: () => log };
};

/** Starts `serve` and resolves when it listens. */
export const startServer = async (env: Environment) => {
  const { process, log } = spawnServer(env);
  const urlNow = () => /"message":"listening","url":"([^"]+)"/.exec(log())?.[1];
  await eventually(() => urlNow() !== undefined || process.exitCode !== null, LISTEN_MS_MAX);
  const url = urlNow();
  if (url !== undefined) return { process, url, log };
  process.kill("SIGKILL");
  throw new Error(`the server did not listen: ${log()}`);
};

export type Server = Awaited<ReturnType<typeof startServer>>;

/** Kills the server and waits until it is gone. */
export const kill = async ({ process }: Pick<Server, "process">, signal: "SIGKILL" | "SIGTERM"): Promise<void> => {
  process.kill(signal);
  await process.exited;
};
