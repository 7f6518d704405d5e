import { join } from "node:path";
import { freePort, unboundText } from "../harness/world.ts";
import { installAll } from "../lab/packages.ts";
import type { Supervisor } from "../lab/processes.ts";
import type { Stage } from "./stage.ts";

/** Programs of Debian packages that the groups measure with or against. */
const PACKAGES = {
  wrk: "wrk",
  dnsperf: "dnsperf",
  unbound: "unbound",
  "smtp-sink": "postfix",
} as const;

type Tool = keyof typeof PACKAGES;

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

/** Where an unbound of ours answers. */
export interface NameServer {
  readonly address: string;
  readonly port: number;
  /** In the form of POSTWARDEN_DNS_SERVERS. */
  readonly setting: string;
}

const ADDRESS = "127.0.0.1";

/** Starts unbound as the authority for `test`, with these lines as its zone (master file format, names whole). */
export const startNames = (stage: Stage, name: string, records: readonly string[]): Promise<NameServer> =>
  startUnbound(stage, name, { records, clauses: [] });

/**
 * Starts unbound as the authority for these zones, in which exist the names with these records and no others. Each has an SOA
 * record, as zones on the internet have: a client must not trust "no such name" without it (RFC 2308 §2).
 */
export const startZones = (
  stage: Stage,
  name: string,
  { zones, records }: { readonly zones: readonly string[]; readonly records: readonly string[] },
): Promise<NameServer> =>
  startUnbound(stage, name, {
    records: [],
    clauses: [
      ...zones.map((zone) => `local-zone: "${zone}." static`),
      ...zones.map((zone) => `local-data: "${zone}. 600 IN SOA ns.test. hostmaster.test. 1 3600 600 86400 600"`),
      ...records.map((record) => `local-data: '${record}'`),
    ],
  });

const startUnbound = async (
  stage: Stage,
  name: string,
  { records, clauses }: { readonly records: readonly string[]; readonly clauses: readonly string[] },
): Promise<NameServer> => {
  await needTools(stage.supervisor, "unbound");
  const port = freePort();
  const directory = join(stage.directory, name);
  const soa = "test. 600 IN SOA ns.test. hostmaster.test. 1 3600 600 86400 600\ntest. 600 IN NS ns.test.\n";
  await Bun.write(join(directory, "test.zone"), `${soa}ns.test. 600 IN A ${ADDRESS}\n${records.join("\n")}\n`);
  const configPath = join(directory, "unbound.conf");
  const zones = `auth-zone:
  name: "test"
  zonefile: "${join(directory, "test.zone")}"
  for-downstream: yes
  for-upstream: no
`;
  const server = { directory, port, interfaces: [ADDRESS], verbosity: 0 };
  await Bun.write(configPath, unboundText({ ...server, clauses: [`local-zone: "." refuse`, ...clauses], zones }));
  stage.supervisor.start({ name, argv: ["unbound", "-d", "-p", "-c", configPath] });
  await stage.supervisor.waitForPort(name, ADDRESS, port);
  return { address: ADDRESS, port, setting: `${ADDRESS}:${port}` };
};

/** A domain with one mail host of its own, which has one address. */
export const mailDomain = (domain: string, address: string): string[] => [
  `${domain}. 600 IN MX 10 mx.${domain}.`,
  `mx.${domain}. 600 IN A ${address}`,
];

const SESSIONS_MAX = 1_000;

/** Starts an smtp-sink, which accepts every recipient, on a port of 127.0.0.1, and answers the port. */
export const startSink = async (stage: Stage, name: string): Promise<number> => {
  const port = freePort();
  await startSinkAt(stage, name, { address: ADDRESS, port });
  return port;
};

/** The same on another loopback address. */
export const startSinkAt = async (
  { supervisor }: Stage,
  name: string,
  { address, port }: { readonly address: string; readonly port: number },
): Promise<void> => {
  await needTools(supervisor, "smtp-sink");
  const user = process.getuid?.() === 0 ? ["-u", "nobody"] : [];
  const where = [`${address}:${port}`, String(SESSIONS_MAX)];
  supervisor.start({ name, argv: ["smtp-sink", ...user, "-m", String(SESSIONS_MAX), ...where] });
  await supervisor.waitForPort(name, address, port);
};
