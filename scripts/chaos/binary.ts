/** The binary under chaos: its commands, and a server that can be killed at any moment. */
import { resolve } from "node:path";

export const BINARY = resolve(new URL("../..", import.meta.url).pathname, "dist/postwarden");

export type Environment = Readonly<Record<string, string>>;

/** Runs one command to its end and answers what it printed as JSON; throws when it fails. */
export const command = <T>(args: readonly string[], env: Environment): T => {
  const { exitCode, stdout, stderr } = Bun.spawnSync([BINARY, ...args, "--json"], { env: { ...env }, stdin: "ignore" });
  if (exitCode !== 0) throw new Error(`postwarden ${args.join(" ")}: ${stderr.toString()}`);
  return JSON.parse(stdout.toString()) as T;
};

const LISTEN_MS_MAX = 10_000;

/** Starts `serve` and resolves when it listens. */
export const startServer = async (env: Environment) => {
  const process = Bun.spawn([BINARY, "serve"], { env: { ...env }, stdin: "ignore", stdout: "ignore", stderr: "pipe" });
  const reader = process.stderr.getReader();
  const decoder = new TextDecoder();
  let log = "";
  const endsAtMs = Date.now() + LISTEN_MS_MAX;
  while (Date.now() < endsAtMs) {
    const { value, done } = await reader.read();
    log += decoder.decode(value);
    const url = /"message":"listening","url":"([^"]+)"/.exec(log)?.[1];
    if (url !== undefined) {
      const drain = async () => {
        for (;;) if ((await reader.read()).done) return;
      };
      void drain();
      return { process, url };
    }
    if (done) break;
  }
  process.kill("SIGKILL");
  throw new Error(`the server did not listen: ${log}`);
};

export type Server = Awaited<ReturnType<typeof startServer>>;

/** Kills the server and waits until it is gone. */
export const kill = async ({ process }: Server, signal: "SIGKILL" | "SIGTERM"): Promise<void> => {
  process.kill(signal);
  await process.exited;
};
