/** The binary: its commands, a server that can be killed at any moment, and what the kernel says of it (Linux). */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { resolve } from "node:path";

export const BINARY = resolve(new URL("../..", import.meta.url).pathname, "dist/postwarden");

export type Environment = Readonly<Record<string, string>>;

const WORKERS = "POSTWARDEN_WORKERS";

/** With POSTWARDEN_WORKERS in the environment, runs try the binary with or without threads for mail servers. */
export const THREADS: Environment = process.env[WORKERS] === undefined ? {} : { [WORKERS]: process.env[WORKERS] };

/** Polls until `isSo`, at most `msMax` milliseconds; whether it became so. */
export const eventually = async (isSo: () => boolean | Promise<boolean>, msMax: number): Promise<boolean> => {
  const endsAtMs = performance.now() + msMax;
  while (!(await isSo())) {
    if (performance.now() >= endsAtMs) return false;
    await Bun.sleep(100);
  }
  return true;
};

/** Where the binary runs, and another one than that of `npm run build`. */
interface Place {
  readonly cwd?: string;
  readonly binary?: string;
}

/** Runs one command to its end, with `line` on its standard input, and answers what it printed as JSON; throws when it fails. */
export const command = <T>(
  args: readonly string[],
  env: Environment,
  { cwd = process.cwd(), binary = BINARY, line }: Place & { readonly line?: string } = {},
): T => {
  const { exitCode, stdout, stderr } = Bun.spawnSync([binary, ...args, "--json"], {
    ...{ env: { ...env }, cwd },
    stdin: line === undefined ? "ignore" : new TextEncoder().encode(`${line}\n`),
  });
  if (exitCode !== 0) throw new Error(`postwarden ${args.join(" ")}: ${stderr.toString()}`);
  const printed = stdout.toString().trim();
  return JSON.parse(printed === "" ? "null" : printed) as T;
};

/** Creates an account on the largest plan, with these credits beside those of every new account, and answers a live key of it. */
export const createAccount = (
  name: string,
  { env, credits = 0, ...place }: Place & { readonly env: Environment; readonly credits?: number },
): string => {
  command(["accounts", "create", name, "--plan", "scale"], env, place);
  if (credits > 0) command(["credits", "grant", name, String(credits)], env, place);
  return createKey(name, env, place);
};

/** A new live key of an account. */
export const createKey = (account: string, env: Environment, place?: Place): string =>
  command<{ key: string }>(["keys", "create", "--account", account, "--mode", "live"], env, place).key;

const LISTEN_MS_MAX = 20_000;
const LOG_CHARACTERS_MAX = 4_000_000;

const collect = (stream: ReadableStream<Uint8Array>) => {
  let text = "";
  const read = async (): Promise<void> => {
    const decoder = new TextDecoder();
    for await (const bytes of stream) text = (text + decoder.decode(bytes)).slice(-LOG_CHARACTERS_MAX);
  };
  return { text: () => text, ended: read() };
};

/** Starts `serve` without waiting for anything. */
export const spawnServer = (env: Environment, { cwd = process.cwd(), binary = BINARY }: Place = {}) => {
  const child = Bun.spawn([binary, "serve"], {
    ...{ env: { ...THREADS, ...env }, cwd, stdin: "ignore", stdout: "pipe", stderr: "pipe" },
  });
  const [printed, log] = [collect(child.stdout), collect(child.stderr)];
  /** The exit status, once everything that was printed has been read. */
  const ended = Promise.all([child.exited, printed.ended, log.ended]).then(([status]) => status);
  return { process: child, printed: printed.text, log: log.text, ended };
};

/** Starts `serve` and resolves when it listens. */
export const startServer = async (env: Environment, place?: Place) => {
  const server = spawnServer(env, place);
  const { process, log } = server;
  const urlNow = () => /"message":"listening","url":"([^"]+)"/.exec(log())?.[1];
  await eventually(() => urlNow() !== undefined || process.exitCode !== null, LISTEN_MS_MAX);
  const url = urlNow();
  if (url !== undefined) return { ...server, url };
  process.kill("SIGKILL");
  throw new Error(`the server did not listen: ${log()}`);
};

export type Server = Awaited<ReturnType<typeof startServer>>;

/** Kills the server and waits until it is gone. */
export const kill = async ({ process }: Pick<Server, "process">, signal: "SIGKILL" | "SIGTERM"): Promise<void> => {
  process.kill(signal);
  await process.exited;
};

/** The library that sets the clock of a process; null when the Debian package `faketime` is not installed. */
export const findFaketime = (): string | null => {
  const paths = readdirSync("/usr/lib").map((name) => `/usr/lib/${name}/faketime/libfaketimeMT.so.1`);
  return paths.find((path) => existsSync(path)) ?? null;
};

/** Settings of a process whose clock is set by a file, which holds an offset in seconds: `+60`. */
export const clockOf = (offsetFile: string): Environment => {
  const library = findFaketime();
  if (library === null) throw new Error("libfaketime is missing: apt-get install faketime");
  const clock = { FAKETIME_TIMESTAMP_FILE: offsetFile, FAKETIME_NO_CACHE: "1", DONT_FAKE_MONOTONIC: "1" };
  return { ...clock, LD_PRELOAD: library };
};

const CLOCK_TICKS_PER_S = 100;

/** A figure of `/proc/PID/status` in megabytes (10^6 bytes). */
const memoryMbOf = (pid: number, field: "VmRSS" | "VmHWM" | "RssAnon"): number => {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return (Number(new RegExp(`^${field}:\\s+(\\d+) kB$`, "m").exec(status)?.[1]) * 1024) / 1e6;
};

/** Resident memory in megabytes (10^6 bytes). */
export const residentMbOf = (pid: number): number => memoryMbOf(pid, "VmRSS");

/** Resident memory that belongs to no file, in megabytes: without the pages of the executable, which others share. */
export const anonymousMbOf = (pid: number): number => memoryMbOf(pid, "RssAnon");

/** The most resident memory since the start of the process, in megabytes; 0 when the process has ended. */
export const peakMbOf = (pid: number): number => {
  try {
    return memoryMbOf(pid, "VmHWM") || 0;
  } catch {
    return 0;
  }
};

/** Open descriptors. */
export const descriptorsOf = (pid: number): number => readdirSync(`/proc/${pid}/fd`).length;

/** Processor time of all threads so far, in seconds (in steps of 10 ms). */
export const cpuSecondsOf = (pid: number): number => {
  // The fields after the name, which may contain spaces.
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1)?.split(" ") ?? [];
  return (Number(fields[11]) + Number(fields[12])) / CLOCK_TICKS_PER_S;
};

/** Processor time of threads so far, in microseconds. */
export interface ThreadTimes {
  /** Of the main thread, which runs the event loop. */
  readonly eventLoop: number;
  /** Of the threads that compile JavaScript, by their ids; they come and go. */
  readonly compilers: ReadonlyMap<string, number>;
}

export const threadTimesOf = (pid: number): ThreadTimes => {
  const microseconds = (thread: string): number =>
    Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "utf8").split(" ")[0]) / 1_000;
  const compilers = new Map<string, number>();
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    try {
      const isCompiler = readFileSync(`/proc/${pid}/task/${thread}/comm`, "utf8").startsWith("JIT");
      if (isCompiler) compilers.set(thread, microseconds(thread));
    } catch {
      // The thread ended between the listing and the reading.
    }
  }
  return { eventLoop: microseconds(String(pid)), compilers };
};
