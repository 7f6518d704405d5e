import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Supervisor } from "./processes.ts";

/** Packages of Debian that are installed; none of them starts a service or makes a user. */
const INSTALLED = [
  ...["libmail-dmarc-perl", "libmail-dkim-perl", "libdbd-sqlite3-perl", "libjson-perl", "swaks"],
  ...["mariadb-server-core", "libdbd-mysql-perl", "libswitch-perl", "libhttp-message-perl"],
];
/** The package would create a user and a database: unpacked, never installed. */
const UNPACKED = "opendmarc";
const PROGRAM = "usr/sbin/opendmarc-reports";

const notInstalled = async (supervisor: Supervisor): Promise<readonly string[]> => {
  const format = `-f=\${Package} \${db:Status-Status}\\n`;
  const { stdout } = await supervisor.finish(["/usr/bin/dpkg-query", "-W", format, ...INSTALLED]);
  const installed = new Set(stdout.split("\n"));
  return INSTALLED.filter((name) => !installed.has(`${name} installed`));
};

const unpack = async (supervisor: Supervisor, cache: string): Promise<void> => {
  const directory = join(cache, `${UNPACKED}.download`);
  await mkdir(directory, { recursive: true });
  try {
    await supervisor.run(["apt-get", "download", UNPACKED], { cwd: directory });
    const [archive] = [...new Bun.Glob("*.deb").scanSync(directory)];
    if (archive === undefined) throw new Error(`apt-get download ${UNPACKED} brought no package`);
    await supervisor.run(["dpkg-deb", "-x", join(directory, archive), join(cache, UNPACKED)]);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
};

/** Sees to it that the reporters are on the machine (as root, with apt-get), and answers the directory of OpenDMARC. */
export const ensureReporters = async (supervisor: Supervisor, cache: string): Promise<string> => {
  const missing = await notInstalled(supervisor);
  const directory = join(cache, UNPACKED);
  const isUnpacked = await Bun.file(join(directory, PROGRAM)).exists();
  if (missing.length === 0 && isUnpacked) return directory;
  console.error(`These Debian packages are missing: ${[...missing, ...(isUnpacked ? [] : [UNPACKED])].join(" ")}.`);
  const env = { DEBIAN_FRONTEND: "noninteractive" };
  await supervisor.run(["apt-get", "update", "-q"], { env });
  if (missing.length > 0)
    await supervisor.run(["apt-get", "install", "-q", "-y", "--no-install-recommends", ...missing], { env });
  if (!isUnpacked) await unpack(supervisor, cache);
  return directory;
};
