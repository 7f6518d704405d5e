/** What Linux gives the process of a namespace alone: the name of unshare(1), and what has to be done first. */
const KINDS = { mount: ["true"], net: ["ip", "link", "set", "lo", "up"] } as const;
type Kind = keyof typeof KINDS;

const markOf = (kind: Kind): string => `POSTWARDEN_OWN_${kind.toUpperCase()}`;

/** Whether this process was started by `inOwnNamespace`. */
export const hasOwnNamespace = (kind: Kind): boolean => process.env[markOf(kind)] === "yes";

/**
 * Runs this program again in a namespace of its own; its exit status, or null when it is in one already or may not. Its mounts end
 * with a namespace of "mount". In one of "net" it sees no interface but its own loopback: a browser gives up the requests that it is
 * making when an interface comes or goes, as interfaces do beside the laboratory.
 */
export const inOwnNamespace = async (kind: Kind): Promise<number | null> => {
  if (process.getuid?.() !== 0 || hasOwnNamespace(kind)) return null;
  const enter = ["unshare", `--${kind}`, "sh", "-c", `${KINDS[kind].join(" ")} && exec "$0" "$@"`];
  if (Bun.spawnSync([...enter, "true"]).exitCode !== 0) return null;
  const child = Bun.spawn([...enter, process.execPath, ...process.execArgv, ...process.argv.slice(1)], {
    ...{ env: { ...process.env, [markOf(kind)]: "yes" }, stdio: ["ignore", "inherit", "inherit"] },
  });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => child.kill(signal));
  return child.exited;
};
