import { mkdtemp, rm } from "node:fs/promises";
import type { NewKey } from "../../src/accounts/keys.ts";
import { AccountsSlice } from "../../src/accounts/open.ts";
import { systemClock } from "../../src/foundation/base/clock.ts";
import { type Settings, environment, openData, untilHealthy, untilReady } from "../bench/stage.ts";
import { peakMbOf, THREADS } from "../harness/binary.ts";
import { freePort } from "../harness/world.ts";
import type { MemoryGroup } from "./cgroup.ts";
import { type ServerAddresses, prefer } from "./children.ts";

export const REPORT_HOST_IP = "127.21.0.25";
const REPORT_DOMAIN = "reports-siege.com";
const CREDITS = 1_000_000;
const KEYS_EACH = 40;
export const FORM_ORIGIN = "https://shop.example";
export const FORM_PER_DAY = 1_000;
const STOP_MS_MAX = 5_000;
const SAMPLE_EVERY_MS = 50;

/** The API keys of three accounts: the one that attacks, the one that must not notice, and one without credits. */
export interface Keys {
  readonly attacker: {
    readonly live: readonly string[];
    readonly test: readonly string[];
    /** For pages of `FORM_ORIGIN`: one that asks mail servers, and one that does not. */
    readonly publishable: readonly string[];
  };
  readonly other: { readonly live: readonly string[]; readonly test: readonly string[] };
  readonly withoutCredits: string;
}

/** Creates the accounts and keys in the database of a service that is not running. */
export const createKeys = (dataDir: string): Keys => {
  const db = openData(dataDir);
  const { accounts, keys } = new AccountsSlice({ db, clock: systemClock });
  const create = (requested: NewKey): string => {
    const key = keys.create(requested);
    if (!key.ok) throw new Error(`no key: ${key.error}`);
    return key.value.key;
  };
  const issue = (account: string, mode: "live" | "test", count: number): string[] =>
    Array.from({ length: count }, () => create({ account, mode }));
  for (const name of ["attacker", "other", "withoutcredits"]) accounts.create(name, "scale");
  for (const name of ["attacker", "other"]) accounts.grantCredits(name, CREDITS, "siege");
  const withoutCredits = issue("withoutcredits", "live", 1)[0] ?? "";
  const both = (account: string) => ({
    live: issue(account, "live", KEYS_EACH),
    test: issue(account, "test", KEYS_EACH),
  });
  const publishable = (["mailbox", "domain"] as const).map((check) =>
    create({ account: "attacker", mode: "live", forms: { origins: [FORM_ORIGIN], perDay: FORM_PER_DAY, check } }),
  );
  const issued = { attacker: { ...both("attacker"), publishable }, other: both("other"), withoutCredits };
  db.close();
  return issued;
};

/** Loopback only, default limits, and a report receiver. */
const settingsFor = ({ dns, smtpPort }: ServerAddresses, reportPort: number): Settings => ({
  POSTWARDEN_DNS_SERVERS: dns,
  POSTWARDEN_SMTP_PORT: String(smtpPort),
  POSTWARDEN_WEBHOOK_ALLOW_NETWORKS: "127.0.0.0/8",
  POSTWARDEN_REPORT_HOST: REPORT_DOMAIN,
  POSTWARDEN_REPORT_LISTEN: `${REPORT_HOST_IP}:${reportPort}`,
  POSTWARDEN_LOG_LEVEL: "error",
});

export interface ServiceDeps {
  readonly binary: string;
  readonly dataDir: string;
  readonly servers: ServerAddresses;
  readonly group: MemoryGroup;
  readonly children: Set<Bun.Subprocess>;
  /** Beside those of every attack. */
  readonly settings?: Settings;
}

/** The running binary. */
export interface Service {
  readonly url: string;
  readonly port: number;
  readonly reportPort: number;
  readonly pid: number;
  /** Aborted when the process has ended. */
  readonly dead: AbortSignal;
  /** The most resident memory that was seen, and the most anonymous memory of the group, in bytes. */
  peaks(): { readonly residentBytes: number; readonly anonymousBytes: number };
  /** `running`, or how the process ended. */
  state(): string;
  stop(): Promise<void>;
}

const watchMemory = (pid: number, group: MemoryGroup) => {
  const peaks = { residentBytes: 0, anonymousBytes: 0 };
  const look = (): void => {
    peaks.residentBytes = Math.max(peaks.residentBytes, peakMbOf(pid) * 1e6);
    const { anonymousBytes } = group.read();
    if (anonymousBytes > peaks.anonymousBytes) peaks.anonymousBytes = anonymousBytes;
  };
  const timer = setInterval(look, SAMPLE_EVERY_MS);
  return { peaks, look, stop: () => clearInterval(timer) };
};

/** Starts the binary on a data directory, inside the group, and waits until it answers. */
export const startService = async ({ binary, dataDir, ...deps }: ServiceDeps): Promise<Service> => {
  const port = freePort();
  const reportPort = freePort();
  const url = `http://127.0.0.1:${port}`;
  const settings = { ...THREADS, ...settingsFor(deps.servers, reportPort), ...deps.settings };
  const env = environment({ ...settings, POSTWARDEN_DATA_DIR: dataDir, POSTWARDEN_PORT: String(port) });
  const child = Bun.spawn(deps.group.enter([binary, "serve"]), {
    ...{ cwd: dataDir, env, detached: true },
    stdio: ["ignore", "ignore", "inherit"],
  });
  deps.children.add(child);
  prefer(child.pid);
  const memory = watchMemory(child.pid, deps.group);
  const dead = new AbortController();
  void child.exited.then(() => dead.abort());
  const stop = async (): Promise<void> => {
    memory.stop();
    child.kill("SIGTERM");
    const timer = setTimeout(() => child.kill("SIGKILL"), STOP_MS_MAX);
    await child.exited;
    clearTimeout(timer);
    deps.children.delete(child);
  };
  try {
    await untilHealthy(url, child);
    await untilReady({ url });
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    ...{ url, port, reportPort, stop, pid: child.pid, dead: dead.signal },
    peaks: () => {
      memory.look();
      return memory.peaks;
    },
    state: () => {
      if (child.signalCode !== null) return `ended by ${child.signalCode}`;
      return child.exitCode === null ? "running" : `exited with ${child.exitCode}`;
    },
  };
};

/** A directory on a disk: what lies in a tmpfs would count as memory of the group. */
export const newDirectory = (): Promise<string> => mkdtemp("/var/tmp/postwarden-siege-");

export const removeDirectory = (path: string): Promise<void> => rm(path, { recursive: true, force: true });
