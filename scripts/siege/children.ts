import { setPriority } from "node:os";
import { z } from "zod";
import type { Seen, WatcherOrder } from "./samples.ts";

const SERVERS = new URL("./servers.ts", import.meta.url).pathname;
const CONTROL = new URL("./control.ts", import.meta.url).pathname;
const WATCHER = new URL("./watcher.ts", import.meta.url).pathname;
/** Above the attacker, so that what is measured is the service and not who got a processor. */
const NICE = -10;

/** Gives a process precedence over others, where we may. */
export const prefer = (pid: number): void => {
  try {
    setPriority(pid, NICE);
  } catch {
    // Only root may; the figures are then those of a process like any other.
  }
};

interface Child {
  readonly process: Bun.Subprocess;
  /** The next message of the child. */
  next(): Promise<unknown>;
}

/** Starts a script that talks to this process; it ends when this process does. */
const startScript = (path: string, children: Set<Bun.Subprocess>, ...args: readonly string[]): Child => {
  let waiting: ((message: unknown) => void) | null = null;
  const early: unknown[] = [];
  const child = Bun.spawn([process.execPath, "--no-env-file", path, ...args], {
    env: { ...process.env, BUN_CONFIG_MAX_HTTP_REQUESTS: "4000" },
    stdio: ["ignore", "inherit", "inherit"],
    ipc: (message: unknown) => {
      if (waiting === null) early.push(message);
      else waiting(message);
      waiting = null;
    },
  });
  children.add(child);
  prefer(child.pid);
  return {
    process: child,
    next: () => {
      if (early.length > 0) return Promise.resolve(early.shift());
      const { promise, resolve } = Promise.withResolvers<unknown>();
      waiting = resolve;
      const ended = child.exited.then(() => Promise.reject(new Error(`${path} has ended`)));
      return Promise.race([promise, ended]);
    },
  };
};

const placesSchema = z.object({ dns: z.string(), smtpPort: z.number() });
const controlSchema = z.object({ controlUrl: z.string() });

/** Starts the name server, the mail servers, and an idle server that writes into `directory`; answers where they are. */
export const startServers = async (children: Set<Bun.Subprocess>, directory: string) => {
  const started = [startScript(SERVERS, children).next(), startScript(CONTROL, children, directory).next()] as const;
  const [servers, control] = await Promise.all(started);
  return { ...placesSchema.parse(servers), ...controlSchema.parse(control) };
};

export type ServerAddresses = Awaited<ReturnType<typeof startServers>>;

/** Measures the service from a process of its own. */
export interface Watcher {
  begin(target: Omit<WatcherOrder & { kind: "begin" }, "kind">): void;
  end(): Promise<Seen>;
}

const sampleSchema = z.object({ ms: z.number(), problem: z.string().nullable() });
const seenSchema = z.object({
  healthz: z.array(sampleSchema),
  checks: z.array(sampleSchema),
  control: z.array(sampleSchema),
});

/** Starts the process that measures. */
export const startWatcher = async (children: Set<Bun.Subprocess>): Promise<Watcher> => {
  const { process: child, next } = startScript(WATCHER, children);
  await next();
  const order = (message: WatcherOrder): void => child.send(message);
  return {
    begin: (target) => order({ kind: "begin", ...target }),
    end: async () => {
      order({ kind: "end" });
      return seenSchema.parse(await next());
    },
  };
};
