import type { Supervisor } from "../lab/processes.ts";

/** Programs of Debian packages that the groups measure with or against. */
const PACKAGES = {
  wrk: "wrk",
  dnsperf: "dnsperf",
  unbound: "unbound",
  "smtp-sink": "postfix",
} as const;

export type Tool = keyof typeof PACKAGES;

const SYSTEM_PATH = "/usr/sbin:/usr/bin:/sbin:/bin";
/** Forbids every package to start a service while it is being installed. */
const POLICY = "/usr/sbin/policy-rc.d";

const isThere = (tool: Tool): boolean => Bun.which(tool, { PATH: SYSTEM_PATH }) !== null;

const install = async (supervisor: Supervisor, packages: readonly string[]): Promise<void> => {
  const policy = Bun.file(POLICY);
  const before = (await policy.exists()) ? await policy.text() : null;
  const apt = (...argv: string[]) =>
    supervisor.run(["apt-get", ...argv], { env: { DEBIAN_FRONTEND: "noninteractive" } });
  try {
    await Bun.write(POLICY, "#!/bin/sh\nexit 101\n", { mode: 0o755 });
    await apt("update", "-q");
    await apt("install", "-q", "-y", "--no-install-recommends", ...packages);
  } finally {
    if (before === null) await policy.delete();
    else await Bun.write(POLICY, before, { mode: 0o755 });
  }
};

/**
 * Sees to it that the programs are on the machine: root installs what is missing. Otherwise, and when apt-get fails,
 * throws a sentence that names the packages.
 */
export const needTools = async (supervisor: Supervisor, ...tools: readonly Tool[]): Promise<void> => {
  const missing = tools.filter((tool) => !isThere(tool));
  if (missing.length === 0) return;
  const packages = missing.map((tool) => PACKAGES[tool]);
  const sentence = `These Debian packages are missing: ${packages.join(" ")}.`;
  if (process.getuid?.() !== 0) throw new Error(`${sentence} Install them, or run as root.`);
  console.error(`${sentence} Installing them, without starting any service …`);
  try {
    await install(supervisor, packages);
  } catch (error) {
    throw new Error(`${sentence} apt-get could not bring them.`, { cause: error });
  }
};
