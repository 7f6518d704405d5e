import { closeSync, openSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";

/** How long a server may take until its port answers. */
const READY_TRIES_MAX = 100;
const READY_PAUSE_MS = 100;
/** How long a server may take to leave after SIGTERM, before it is killed. */
const LEAVE_TRIES_MAX = 100;
const LEAVE_PAUSE_MS = 50;
const COMMAND_TIMEOUT_MS = 300_000;
const SYSTEM_ENVIRONMENT = { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL: "C.UTF-8" };

type Environment = Readonly<Record<string, string>>;

/** A server to start. Its output goes to `<directory>/<name>.log`. */
interface ServerCommand {
  readonly name: string;
  readonly argv: readonly string[];
  readonly env?: Environment;
  /** True when the server puts itself into a session of its own, as Postfix's master insists on doing. */
  readonly makesOwnSession?: boolean;
}

/** How a short command is run; without `timeoutMs` it may take five minutes. */
interface CommandOptions {
  readonly env?: Environment;
  readonly cwd?: string;
  readonly timeoutMs?: number;
}

/** What a short command left. `code` is null when it was ended by a signal. */
interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Starts every process of the lab, and ends each by its pid. */
export interface Supervisor {
  start(command: ServerCommand): void;
  /** Resolves when `ip:port` takes a connection; throws with the server's last words when it does not. */
  waitForPort(name: string, ip: string, port: number): Promise<void>;
  /** Runs a command to its end, whatever that end is. */
  finish(argv: readonly string[], options?: CommandOptions): Promise<Ended>;
  /** Runs a command and returns its standard output; throws when it fails. */
  run(argv: readonly string[], options?: CommandOptions): Promise<string>;
  /** Ends a server and its workers at once, as a power failure does. */
  kill(name: string): Promise<void>;
  /**
   * Ends what runs, the last server first, and refuses to start anything from then on. Returns a sentence for each
   * server that had to be killed.
   */
  stopAll(): Promise<readonly string[]>;
}

interface Server {
  readonly name: string;
  readonly process: Bun.Subprocess;
}

const hasEnded = (child: Bun.Subprocess): boolean => child.exitCode !== null || child.signalCode !== null;

/** Signals every member of the process group that `pid` leads; false when there is none any more. */
const signalGroup = (pid: number, signal: NodeJS.Signals | 0): boolean => {
  try {
    process.kill(-pid, signal);
    return true;
  } catch {
    return false;
  }
};

/** Whether something listens there. */
export const connects = async (hostname: string, port: number): Promise<boolean> => {
  try {
    const socket = await Bun.connect({ hostname, port, socket: { data: () => undefined } });
    socket.end();
    return true;
  } catch {
    return false;
  }
};

const stopServer = async ({ name, process: child }: Server): Promise<string | undefined> => {
  if (!signalGroup(child.pid, "SIGTERM")) child.kill("SIGTERM");
  for (let tries = 0; tries < LEAVE_TRIES_MAX; tries += 1) {
    if (hasEnded(child) && !signalGroup(child.pid, 0)) return undefined;
    await Bun.sleep(LEAVE_PAUSE_MS);
  }
  signalGroup(child.pid, "SIGKILL");
  child.kill("SIGKILL");
  await child.exited;
  return `${name} (pid ${child.pid}) did not leave in time and was killed`;
};

const UNREADABLE: ReadonlySet<unknown> = new Set(["ENOENT", "ESRCH", "EACCES"]);
const errorCode = (error: unknown): unknown => (error instanceof Error && "code" in error ? error.code : undefined);

/** The command lines of processes that still work in `directory` or were started with a file of it. */
export const processesOf = (directory: string): readonly string[] => {
  const found: string[] = [];
  for (const pid of readdirSync("/proc")) {
    if (!/^\d+$/.test(pid) || Number(pid) === process.pid) continue;
    try {
      const words = readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
      if (words.includes(directory) || readlinkSync(`/proc/${pid}/cwd`).startsWith(directory))
        found.push(`${pid} ${words}`);
    } catch (error) {
      // A process may end between the listing and the reading, and some belong to the machine alone.
      if (!UNREADABLE.has(errorCode(error))) throw error;
    }
  }
  return found;
};

/**
 * Creates the supervisor of one run of the lab. Each server leads a process group of its own, so that its workers
 * end with it, and so that Ctrl-C in a terminal reaches the lab alone and not the servers.
 */
export const createSupervisor = (directory: string): Supervisor => {
  const servers: Server[] = [];
  const commands = new Set<Bun.Subprocess>();
  let stopped: Promise<readonly string[]> | undefined;

  const refuseWhenStopping = (): void => {
    if (stopped !== undefined) throw new Error("the lab is stopping");
  };

  const lastWords = async (name: string): Promise<string> => {
    const file = Bun.file(join(directory, `${name}.log`));
    return (await file.exists()) ? (await file.text()).split("\n").slice(-15).join("\n") : "";
  };

  const finish = async (argv: readonly string[], options: CommandOptions = {}): Promise<Ended> => {
    refuseWhenStopping();
    const child = Bun.spawn([...argv], {
      cwd: options.cwd ?? "/",
      env: { ...SYSTEM_ENVIRONMENT, ...options.env },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
      timeout: options.timeoutMs ?? COMMAND_TIMEOUT_MS,
      killSignal: "SIGKILL",
      detached: true,
    });
    commands.add(child);
    const [stdout, stderr] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
      child.exited,
    ]);
    commands.delete(child);
    return { code: child.exitCode, stdout, stderr };
  };

  const stopEverything = async (): Promise<readonly string[]> => {
    for (const command of commands) signalGroup(command.pid, "SIGTERM");
    const sentences: string[] = [];
    for (const server of servers.splice(0).reverse()) {
      const sentence = await stopServer(server);
      if (sentence !== undefined) sentences.push(sentence);
    }
    await Promise.all([...commands].map((command) => command.exited));
    return sentences;
  };

  return {
    finish,

    run: async (argv, options) => {
      const { code, stdout, stderr } = await finish(argv, options);
      if (code === 0) return stdout;
      throw new Error(
        `${argv.join(" ")} ended with ${code ?? "a signal"}\n${stdout.slice(-1500)}${stderr.slice(-1500)}`,
      );
    },

    start: ({ name, argv, env, makesOwnSession }) => {
      refuseWhenStopping();
      const log = openSync(join(directory, `${name}.log`), "a");
      const child = Bun.spawn([...argv], {
        cwd: directory,
        env: { ...SYSTEM_ENVIRONMENT, ...env },
        stdin: "ignore",
        stdout: log,
        stderr: log,
        detached: makesOwnSession !== true,
      });
      closeSync(log);
      servers.push({ name, process: child });
    },

    waitForPort: async (name, ip, port) => {
      const server = servers.find((candidate) => candidate.name === name);
      for (let tries = 0; tries < READY_TRIES_MAX; tries += 1) {
        refuseWhenStopping();
        if (server !== undefined && hasEnded(server.process)) break;
        if (await connects(ip, port)) return;
        await Bun.sleep(READY_PAUSE_MS);
      }
      throw new Error(`${name} does not answer at ${ip}:${port}\n${await lastWords(name)}`);
    },

    kill: async (name) => {
      const at = servers.findIndex((server) => server.name === name);
      const [server] = at === -1 ? [] : servers.splice(at, 1);
      if (server === undefined) throw new Error(`${name} does not run`);
      signalGroup(server.process.pid, "SIGKILL");
      await server.process.exited;
    },

    stopAll: () => {
      stopped ??= stopEverything();
      return stopped;
    },
  };
};
