import { closeSync, openSync } from "node:fs";
import { join } from "node:path";

const READY_MS_MAX = 15_000;
const LEAVE_MS_MAX = 8_000;
const PAUSE_MS = 50;

interface ProgramOptions {
  readonly directory: string;
  readonly name: string;
  readonly argv: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Where it takes connections once it is ready. */
  readonly ports: readonly { readonly ip: string; readonly port: number }[];
}

/** A server that is started and ended several times in one run; ended by its pid. */
export interface Program {
  start(): Promise<void>;
  /** Answers how long it took to leave, in milliseconds; after some seconds it is killed. */
  stop(signal?: "SIGTERM" | "SIGKILL"): Promise<number>;
}

const connects = async (hostname: string, port: number): Promise<boolean> => {
  try {
    const socket = await Bun.connect({ hostname, port, socket: { data: () => undefined } });
    socket.end();
    return true;
  } catch {
    return false;
  }
};

export const createProgram = ({ directory, name, argv, env = {}, ports }: ProgramOptions): Program => {
  let child: Bun.Subprocess | null = null;

  const untilReady = async (): Promise<void> => {
    const endsMs = performance.now() + READY_MS_MAX;
    while (performance.now() < endsMs) {
      const open = await Promise.all(ports.map(({ ip, port }) => connects(ip, port)));
      if (open.every(Boolean)) return;
      await Bun.sleep(PAUSE_MS);
    }
    const log = await Bun.file(join(directory, `${name}.log`)).text();
    throw new Error(`${name} does not answer\n${log.split("\n").slice(-15).join("\n")}`);
  };

  return {
    async start() {
      const log = openSync(join(directory, `${name}.log`), "a");
      child = Bun.spawn([...argv], {
        cwd: directory,
        env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL: "C.UTF-8", ...env },
        stdin: "ignore",
        stdout: log,
        stderr: log,
      });
      closeSync(log);
      await untilReady();
    },
    async stop(signal = "SIGTERM") {
      if (child === null) return 0;
      const startedMs = performance.now();
      child.kill(signal);
      const late = setTimeout(() => child?.kill("SIGKILL"), LEAVE_MS_MAX);
      await child.exited;
      clearTimeout(late);
      child = null;
      return performance.now() - startedMs;
    },
  };
};
