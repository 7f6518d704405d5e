import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync } from "node:fs";
import { join } from "node:path";
import type { Supervisor } from "./processes.ts";

const SCRIPT = join(import.meta.dir, "systemd-root.sh");
const CGROUP = "postwarden-lab";
const BOOT_TRIES_MAX = 100;
const PAUSE_MS = 100;
const COMMAND_TIMEOUT_MS = 60_000;

/** The hierarchies of control groups that systemd uses: one, or two where version 1 is mounted beside it. */
const hierarchies = (): readonly string[] =>
  ["/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/systemd"].filter((path) =>
    existsSync(join(path, "cgroup.procs")),
  );

const removeGroup = (path: string): void => {
  if (!existsSync(path)) return;
  for (const entry of readdirSync(path, { withFileTypes: true }))
    if (entry.isDirectory()) removeGroup(join(path, entry.name));
  rmdirSync(path);
};

const childOf = (pid: number): number | undefined => {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim();
  return children === "" ? undefined : Number(children.split(" ")[0]);
};

/** A copy of this machine in memory, with a systemd of its own and without a network. */
export interface SystemdRoot {
  /** Runs a shell command in it. */
  sh(script: string): Promise<{ readonly code: number | null; readonly stdout: string; readonly stderr: string }>;
  /** Ends every process in it. */
  stop(): Promise<void>;
}

/** Boots the root. Its changes are gone after `stop`. */
export const bootSystemd = async (supervisor: Supervisor, directory: string): Promise<SystemdRoot> => {
  const groups = hierarchies().map((path) => join(path, CGROUP));
  for (const path of groups) mkdirSync(path, { recursive: true });
  const enter = groups.map((path) => `echo $$ > ${path}/cgroup.procs`).join("; ");
  const unshare = "unshare --mount --pid --fork --kill-child --net --uts --ipc --cgroup";
  const child = Bun.spawn(["sh", "-c", `${enter}; exec ${unshare} sh ${SCRIPT} ${directory}`], {
    stdio: ["ignore", "ignore", Bun.file(join(directory, "systemd.log"))],
  });
  const inside = (script: string) =>
    supervisor.finish(
      [...["nsenter", "--target", String(childOf(child.pid) ?? 0), "--all", "--root", "--wd", "sh", "-c"], script],
      { timeoutMs: COMMAND_TIMEOUT_MS, env: { DEBIAN_FRONTEND: "noninteractive" } },
    );
  const stop = async (): Promise<void> => {
    child.kill("SIGKILL");
    await child.exited;
    for (let tries = 0; tries < BOOT_TRIES_MAX; tries++) {
      try {
        for (const path of groups) removeGroup(path);
        return;
      } catch {
        // The kernel removes the processes of the namespace after its first one.
        await Bun.sleep(PAUSE_MS);
      }
    }
  };
  for (let tries = 0; tries < BOOT_TRIES_MAX; tries++) {
    const isUp = childOf(child.pid) !== undefined && (await inside("systemctl is-active basic.target")).code === 0;
    if (isUp) return { sh: inside, stop };
    if (child.exitCode !== null) break;
    await Bun.sleep(PAUSE_MS);
  }
  await stop();
  const log = readFileSync(join(directory, "systemd.log"), "utf8");
  throw new Error(`systemd does not start in a namespace here.\n${log}`);
};
