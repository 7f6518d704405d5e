/**
 * The laboratory: real name and mail servers on loopback addresses, and the binary asked about addresses whose true
 * state is known, then about targets on blocklists of every behaviour, then DMARC with reporters that really exist.
 * `--only PATTERN` keeps the rows whose theme, address or true state matches (the themes of the others are
 * "blocklists", "trust", "dmarc", "fleet", "imap", "outage", "outgoing", "package", "proxies", "standby" and "webhooks"); `--keep` starts the servers, prints the environment by which to try the binary by hand, and
 * waits for Ctrl-C. `--binary PATH` tries another one; POSTWARDEN_WORKERS in the environment, with or without threads.
 */
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { askList, listText } from "./lab/ask.ts";
import { runTrust } from "./lab/blocklists-trust.ts";
import { blocklistsText, runBlocklists } from "./lab/blocklists.ts";
import { claimsText } from "./lab/claims.ts";
import { runDmarc } from "./lab/dmarc.ts";
import { startDns, startWrongDns } from "./lab/dns.ts";
import { startFaultServer } from "./lab/fault-server.ts";
import { runFleet } from "./lab/fleet.ts";
import {
  DNS,
  LAB_NETWORKS,
  PROBE_HELO,
  PROBE_SENDER,
  SMTP_PORT,
  addAddresses,
  hasIpv6,
  removeAddresses,
} from "./lab/hosts.ts";
import { runImap } from "./lab/imap.ts";
import { startExim, startOpensmtpd, startPostgrey, startSinks } from "./lab/mail-servers.ts";
import { runOutage } from "./lab/outage.ts";
import { runOutgoing } from "./lab/outgoing.ts";
import { runPackage } from "./lab/package.ts";
import { THREADS } from "./harness/binary.ts";
import { ensurePackages } from "./lab/packages.ts";
import { startPostfix } from "./lab/postfix.ts";
import { type Supervisor, createSupervisor, processesOf } from "./lab/processes.ts";
import { runProxies } from "./lab/proxies.ts";
import { startRbldnsd, startSlowList } from "./lab/rbldnsd.ts";
import { reportText } from "./lab/report.ts";
import { runTable, startService } from "./lab/run.ts";
import { SOCKS_URL, startFaultySocks, startSocks } from "./lab/socks.ts";
import { runStandby } from "./lab/standby.ts";
import { ROWS } from "./lab/table.ts";
import { runWebhooks } from "./lab/webhooks.ts";
import { readOptions } from "./harness/options.ts";

const ROOT = resolve(import.meta.dir, "..");
const CACHE = join(ROOT, "node_modules/.cache/postwarden-lab");
const EXIT_INTERRUPTED = 130;

/**
 * Short waits, because the servers are near: the slowest row ends within a few retries. A reply has the 4 s for which postscreen waits,
 * and what a busy machine needs besides.
 */
const ENVIRONMENT = {
  ...THREADS,
  POSTWARDEN_DNS_SERVERS: `${DNS.ip}:${DNS.port}`,
  POSTWARDEN_SMTP_PORT: String(SMTP_PORT),
  POSTWARDEN_PROBE_ALLOW_NETWORKS: LAB_NETWORKS,
  POSTWARDEN_SMTP_CONNECT_TIMEOUT_MS: "2000",
  POSTWARDEN_SMTP_REPLY_TIMEOUT_MS: "8000",
  POSTWARDEN_GREYLIST_RETRIES_S: "2,3,4",
  POSTWARDEN_HELO_NAME: PROBE_HELO,
  POSTWARDEN_MAIL_FROM: PROBE_SENDER,
};

const { values: options } = readOptions(import.meta.path, {
  options: { keep: { type: "boolean", default: false }, only: { type: "string" }, binary: { type: "string" } },
});

const BINARY = resolve(options.binary ?? join(ROOT, "dist/postwarden"));

const startServers = async (supervisor: Supervisor, directory: string, unpacked: string): Promise<void> => {
  await startRbldnsd(supervisor, directory, join(unpacked, "rbldnsd"));
  await startSlowList();
  await startWrongDns();
  await startDns(supervisor, directory);
  await startPostgrey(supervisor, directory);
  await startPostfix(supervisor, directory);
  await startExim(supervisor, directory, join(unpacked, "exim4-daemon-light"));
  await startOpensmtpd(supervisor, directory, join(unpacked, "opensmtpd"));
  await startSinks(supervisor);
  await startSocks(supervisor, join(unpacked, "microsocks"));
  await startFaultySocks();
};

const askAll = async (supervisor: Supervisor, directory: string): Promise<boolean> => {
  const pattern = new RegExp(options.only ?? "", "i");
  if (!hasIpv6()) console.error("This machine has no IPv6: rows about IPv6 are skipped.");
  const rows = ROWS.filter(({ theme, address, truth }) => pattern.test(`${theme} ${address} ${truth}`));
  const isTheme = [
    "blocklists",
    "trust",
    "dmarc",
    "fleet",
    "imap",
    "outage",
    "outgoing",
    "package",
    "proxies",
    "standby",
    "webhooks",
  ].some((theme) => pattern.test(theme));
  if (rows.length === 0 && !isTheme) throw new Error("No row of the table matches --only");
  const subject = { binary: BINARY, environment: ENVIRONMENT, directory };
  const part = async <T>(theme: string, run: () => Promise<readonly T[]>): Promise<readonly T[]> => {
    if (!pattern.test(theme)) return [];
    const sinceMs = performance.now();
    const found = await run();
    console.error(`${theme}: ${Math.round((performance.now() - sinceMs) / 1000)} s`);
    return found;
  };
  // The fleet needs none of the servers, only what the others leave of the processors.
  const simulated = Promise.allSettled([part("fleet", () => runFleet(supervisor))]);
  const key = await startService(supervisor, subject);
  const tableSinceMs = performance.now();
  const judged = await runTable({ supervisor, subject, key }, rows, ({ right }) => {
    process.stderr.write(right ? "." : "W");
  });
  process.stderr.write(`\ntable: ${Math.round((performance.now() - tableSinceMs) / 1000)} s\n`);
  const outage = await part("outage", () => runOutage(supervisor, subject));
  const cells = await part("blocklists", () => runBlocklists(supervisor, subject));
  const trust = await part("trust", () => runTrust(supervisor, subject, join(CACHE, "rbldnsd")));
  const dmarc = await part("dmarc", () => runDmarc(supervisor, subject, CACHE));
  const imap = await part("imap", () => runImap(supervisor, subject, CACHE));
  const outgoing = await part("outgoing", () => runOutgoing(supervisor, subject, join(CACHE, "exim4-daemon-light")));
  const standby = await part("standby", () => runStandby(supervisor, subject, CACHE));
  const webhooks = await part("webhooks", () => runWebhooks());
  const proxies = await part("proxies", () => runProxies(supervisor, subject, CACHE));
  const packaged = await part("package", () => runPackage(supervisor, subject));
  const [fleetEnd] = await simulated;
  if (fleetEnd.status === "rejected") throw fleetEnd.reason;
  const fleet = fleetEnd.value;
  const claims = [
    ...[...trust, ...dmarc, ...imap, ...outage, ...outgoing],
    ...[...standby, ...webhooks, ...fleet, ...proxies, ...packaged],
  ];
  console.log(blocklistsText(cells) + claimsText(claims) + reportText(judged, [...cells, ...claims]));
  const listed = await askList(key, rows);
  console.log(listText(listed));
  return [...judged, ...cells, ...claims].every(({ right }) => right) && listed.wrong.length === 0;
};

/** Ends every process, says which of them resisted, and removes the directory; true when nothing did. */
const stopServers = async (supervisor: Supervisor, directory: string): Promise<boolean> => {
  const killed = await supervisor.stopAll();
  const left = processesOf(directory).map((line) => `still there: ${line}`);
  for (const sentence of [...killed, ...left]) console.error(sentence);
  await rm(directory, { recursive: true, force: true });
  return killed.length + left.length === 0;
};

const work = async (supervisor: Supervisor, directory: string, interrupted: Promise<number>): Promise<number> => {
  const isRoot = process.getuid?.() === 0;
  const unpacked = await ensurePackages(supervisor, CACHE, { isRoot });
  if (!isRoot) throw new Error("The lab needs root: it adds addresses to the loopback interface.");
  if (!options.keep && !(await Bun.file(BINARY).exists())) throw new Error(`${BINARY} is missing: npm run build`);
  // First of all, because it fails while another lab runs, before anything of that one is touched.
  startFaultServer();
  await addAddresses();
  try {
    await startServers(supervisor, directory, unpacked);
    if (!options.keep) return (await askAll(supervisor, directory)) ? 0 : 1;
    for (const [name, value] of Object.entries(ENVIRONMENT)) console.log(`export ${name}='${value}'`);
    console.log(`# A SOCKS5 proxy: ${SOCKS_URL}`);
    console.log("# The lab runs until Ctrl-C.");
    return await interrupted;
  } finally {
    await supervisor.stopAll();
    await removeAddresses();
  }
};

const main = async (): Promise<number> => {
  const interrupted = Promise.withResolvers<number>();
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(signal, () => interrupted.resolve(options.keep ? 0 : EXIT_INTERRUPTED));
  }
  const directory = await mkdtemp(join(tmpdir(), "postwarden-lab-"));
  await chmod(directory, 0o755);
  const supervisor = createSupervisor(directory);
  const working = work(supervisor, directory, interrupted.promise);
  let code = 1;
  try {
    code = await Promise.race([working, interrupted.promise]);
  } catch (error) {
    console.error(error instanceof Error ? error.message : String(error));
  }
  const clean = await stopServers(supervisor, directory);
  // After an interruption the work ends in an error of its own, of which nobody needs to hear.
  await Promise.allSettled([working]);
  return code === 0 && !clean ? 1 : code;
};

process.exit(await main());
