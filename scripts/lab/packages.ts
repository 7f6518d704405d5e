import { access, chmod, mkdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { APT_GET } from "../harness/apt.ts";
import type { Supervisor } from "./processes.ts";

/** Packages of Debian that one part of the lab needs. */
interface PackageSet {
  readonly installed: readonly string[];
  /** Packages that conflict with others, or would make users or a database: unpacked, never installed; with their program. */
  readonly unpacked: Readonly<Record<string, string>>;
}

/** The servers, the tools of the lab, and the libraries of the unpacked ones. */
const SERVERS: PackageSet = {
  installed: [
    ...["unbound", "postfix", "postgrey"],
    ...["openssl", "iproute2", "util-linux", "curl"],
    ...["libgnutls-dane0", "libidn12", "libnsl2", "libevent-2.1-7", "libdb5.3"],
  ],
  unpacked: {
    "exim4-daemon-light": "usr/sbin/exim4",
    opensmtpd: "usr/sbin/smtpd",
    rbldnsd: "usr/sbin/rbldnsd",
    microsocks: "usr/bin/microsocks",
    nginx: "usr/sbin/nginx",
    caddy: "usr/bin/caddy",
  },
};

/** Programs that write DMARC reports. */
const REPORTERS: PackageSet = {
  installed: [
    ...["libmail-dmarc-perl", "libmail-dkim-perl", "libdbd-sqlite3-perl", "libjson-perl", "swaks"],
    ...["mariadb-server-core", "libdbd-mysql-perl", "libswitch-perl", "libhttp-message-perl"],
  ],
  unpacked: { opendmarc: "usr/sbin/opendmarc-reports" },
};

const DPKG_QUERY = "/usr/bin/dpkg-query";
const POLICY = "/usr/sbin/policy-rc.d";
const POLICY_ASIDE = "/usr/sbin/policy-rc.d.lab-saved";

const exists = async (path: string): Promise<boolean> => {
  try {
    await access(path);
    return true;
  } catch {
    return false;
  }
};

/** Asks dpkg, not the disk: a package that was unpacked but never configured has programs without their users. */
const notInstalled = async (supervisor: Supervisor, names: readonly string[]): Promise<readonly string[]> => {
  if (!(await exists(DPKG_QUERY)))
    throw new Error("The lab installs its servers from Debian packages, and there is no dpkg here.");
  const format = `-f=\${Package} \${db:Status-Status}\\n`;
  const { stdout } = await supervisor.finish([DPKG_QUERY, "-W", format, ...names]);
  const installed = new Set(stdout.split("\n"));
  return names.filter((name) => !installed.has(`${name} installed`));
};

/** Runs `work` while a policy forbids every package to start a service; the machine's own policy returns afterwards. */
const withoutServices = async (work: () => Promise<unknown>): Promise<void> => {
  const hadPolicy = await exists(POLICY);
  if (hadPolicy) await rename(POLICY, POLICY_ASIDE);
  try {
    await Bun.write(POLICY, "#!/bin/sh\nexit 101\n");
    await chmod(POLICY, 0o755);
    await work();
  } finally {
    await rm(POLICY, { force: true });
    if (hadPolicy) await rename(POLICY_ASIDE, POLICY);
  }
};

interface Wanted {
  readonly install: readonly string[];
  readonly unpack: readonly string[];
  readonly cache: string;
}

/** Installs packages with apt-get, which starts none of their services, and unpacks others into the cache. */
export const installAll = async (supervisor: Supervisor, { install, unpack, cache }: Wanted): Promise<void> => {
  const apt = (argv: readonly string[], cwd = "/"): Promise<string> =>
    supervisor.run(argv, { cwd, env: { DEBIAN_FRONTEND: "noninteractive" } });
  await apt([...APT_GET, "update", "-q"]);
  if (install.length > 0) {
    await withoutServices(() => apt([...APT_GET, "install", "-q", "-y", "--no-install-recommends", ...install]));
  }
  for (const name of unpack) {
    const directory = join(cache, `${name}.download`);
    await mkdir(directory, { recursive: true });
    try {
      await apt([...APT_GET, "download", name], directory);
      const [archive] = [...new Bun.Glob("*.deb").scanSync(directory)];
      if (archive === undefined) throw new Error(`apt-get download ${name} brought no package`);
      await apt(["dpkg-deb", "-x", join(directory, archive), join(cache, name)]);
    } finally {
      await rm(directory, { recursive: true, force: true });
    }
  }
};

/**
 * Sees to it that every server of the lab is on the machine, and returns the directory in which each unpacked package
 * lies under its own name. Without root, or when apt-get cannot bring a package, throws a sentence that names what is missing.
 */
export const ensurePackages = async (
  supervisor: Supervisor,
  cache: string,
  { isRoot, wanted = SERVERS }: { readonly isRoot: boolean; readonly wanted?: PackageSet },
): Promise<string> => {
  const install = await notInstalled(supervisor, wanted.installed);
  const unpack: string[] = [];
  for (const [name, program] of Object.entries(wanted.unpacked)) {
    if (!(await exists(join(cache, name, program)))) unpack.push(name);
  }
  const missing = [...install, ...unpack];
  if (missing.length === 0) return cache;
  const sentence = `These Debian packages are missing: ${missing.join(" ")}.`;
  if (!isRoot) throw new Error(`${sentence} Run the lab as root, so that it can install them.`);
  console.error(`${sentence} Installing them, without starting any service …`);
  try {
    await installAll(supervisor, { install, unpack, cache });
  } catch (error) {
    throw new Error(`${sentence} apt-get could not bring them.\n${String(error)}`, { cause: error });
  }
  return cache;
};

/** Sees to it that the reporters are on the machine (as root), and answers the directory of OpenDMARC. */
export const ensureReporters = async (supervisor: Supervisor, cache: string): Promise<string> =>
  join(await ensurePackages(supervisor, cache, { isRoot: true, wanted: REPORTERS }), "opendmarc");
