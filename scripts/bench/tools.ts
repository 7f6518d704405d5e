import { installAll } from "../lab/packages.ts";
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

const isThere = (tool: Tool): boolean => Bun.which(tool, { PATH: SYSTEM_PATH }) !== null;

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
    await installAll(supervisor, { install: packages, unpack: [], cache: "" });
  } catch (error) {
    throw new Error(`${sentence} apt-get could not bring them.`, { cause: error });
  }
};
