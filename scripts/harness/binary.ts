/** The binary: its commands, a server that can be killed at any moment, and what the kernel says of it (Linux). */
import { readdirSync, readFileSync } from "node:fs";
import { resolve } from "node:path";

export const BINARY = resolve(new URL("../..", import.meta.url).pathname, "dist/postwarden");

export type Environment = Readonly<Record<string, string>>;

/** Polls until `isSo`, at most `msMax` milliseconds; whether it became so. */
export const eventually = async (isSo: () => boolean | Promise<boolean>, msMax: number): Promise<boolean> => {
  const endsAtMs = performance.now() + msMax;
  while (!(await isSo())) {
    if (performance.now() >= endsAtMs) return false;
    await Bun.sleep(100);
  }
  return true;
};

/** Runs one command to its end, with `line` on its standard input, and answers what it printed as JSON; throws when it fails. */
export const command = <T>(
  args: readonly string[],
  env: Environment,
  { cwd = process.cwd(), line }: { readonly cwd?: string; readonly line?: string } = {},
): T => {
  const { exitCode, stdout, stderr } = Bun.spawnSync([BINARY, ...args, "--json"], {
    env: { ...env },
    cwd,
    stdin:
      line === undefined
        ? "ignore"
        : new TextEncoder().encode(`${line}
`),
  });
  if (exitCode !== 0) throw new Error(`postwarden ${args.join(" ")}: ${stderr.toString()}`);
  const printed = stdout.toString().trim();
  return JSON.parse(printed === "" ? "null" : printed) as T;
};

const LISTEN_MS_MAX = 20_000;
const LOG_CHARACTERS_MAX = 4_000_000;

const collect = (stream: ReadableStream<Uint8Array>): (() => string) => {
  let text = "";
  const read = async (): Promise<void> => {
    const decoder = new TextDecoder();
    for await (const bytes of stream) text = (text + decoder.decode(bytes)).slice(-LOG_CHARACTERS_MAX);
  };
  void read();
  return () => text;
};

/** Starts `serve` without waiting for anything. */
export const spawnServer = (env: Environment, cwd = process.cwd()) => {
  const process = Bun.spawn([BINARY, "serve"], {
    ...{ env: { ...env }, cwd, stdin: "ignore", stdout: "pipe", stderr: "pipe" },
  });
  return { process, printed: collect(process.stdout), log: collect(process.stderr) };
};

/** Starts `serve` and resolves when it listens. */
export const startServer = async (env: Environment, cwd?: string) => {
  const { process, printed, log } = spawnServer(env, cwd);
  const urlNow = () => /"message":"listening","url":"([^"]+)"/.exec(log())?.[1];
  await eventually(() => urlNow() !== undefined || process.exitCode !== null, LISTEN_MS_MAX);
  const url = urlNow();
  if (url !== undefined) return { process, url, printed, log };
  process.kill("SIGKILL");
  throw new Error(`the server did not listen: ${log()}`);
};

export type Server = Awaited<ReturnType<typeof startServer>>;

/** Kills the server and waits until it is gone. */
export const kill = async ({ process }: Pick<Server, "process">, signal: "SIGKILL" | "SIGTERM"): Promise<void> => {
  process.kill(signal);
  await process.exited;
};

const CLOCK_TICKS_PER_S = 100;

/** Resident memory in megabytes (10^6 bytes). */
export const residentMbOf = (pid: number): number => {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return (Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024) / 1e6;
};

/** Open descriptors. */
export const descriptorsOf = (pid: number): number => readdirSync(`/proc/${pid}/fd`).length;

/** Processor time so far, in seconds. */
export const cpuSecondsOf = (pid: number): number => {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return (Number(fields[11]) + Number(fields[12])) / CLOCK_TICKS_PER_S;
};
