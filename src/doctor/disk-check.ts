import { existsSync, readFileSync, realpathSync, statfsSync } from "node:fs";
import { dirname } from "node:path";
import { type DoctorCheck, doctorFindings } from "./doctor-check.ts";

const diskCheck = doctorFindings("disk", "Disk space", "capacity#size-of-the-database");

/** Free space and file system of a directory. */
export interface DiskState {
  readonly path: string;
  readonly freeBytes: number;
  readonly totalBytes: number;
  readonly freeFiles: number;
  readonly totalFiles: number;
  /** As the kernel calls it, such as `ext4`; null when it is not known. */
  readonly filesystem: string | null;
}

const GIB = 1024 ** 3;
/** With less, report mail is no longer accepted, and soon nothing else. */
const FREE_BYTES_FAIL = GIB / 4;
const FREE_BYTES_WARN = 2 * GIB;
const FREE_SHARE_WARN = 0.05;
const FREE_FILES_WARN = 1_000;

/** SQLite's locks and its shared memory do not work reliably over a network. */
const NETWORK_FILESYSTEMS =
  /^(nfs4?|cifs|smb3?|smbfs|9p|ceph|afs|lustre|ncpfs|fuse\.(sshfs|glusterfs|s3fs|rclone|davfs.*|gcsfuse|ceph))$/;
const MEMORY_FILESYSTEMS = /^(tmpfs|ramfs)$/;
const CONTAINER_FILESYSTEMS = /^(overlay|aufs|fuse\.fuse-overlayfs)$/;

/** A path in mountinfo has spaces, tabs, line feeds and backslashes as octal escapes (proc(5)). */
const unescaped = (path: string): string =>
  path.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));

/** The type of the file system that holds a path, from the text of /proc/self/mountinfo; null when it is not there. */
export const filesystemOf = (mountinfo: string, path: string): string | null => {
  const mounts = mountinfo.split("\n").flatMap((line) => {
    const [left = "", right = ""] = line.split(" - ");
    const at = unescaped(left.split(" ")[4] ?? "");
    const holds = at !== "" && (path === at || path.startsWith(at === "/" ? at : `${at}/`));
    return holds ? [{ at, type: right.split(" ")[0] ?? "" }] : [];
  });
  // Of two mounts at one place the later one hides the earlier.
  return mounts.toSorted((a, b) => a.at.length - b.at.length).at(-1)?.type ?? null;
};

const readMountinfo = (): string => (existsSync(MOUNTINFO) ? readFileSync(MOUNTINFO, "utf8") : "");
const MOUNTINFO = "/proc/self/mountinfo";

/** The state of the disk of a directory, or of the nearest one above that exists. */
export const readDisk = (dataDir: string): DiskState => {
  let path = dataDir;
  while (!existsSync(path) && dirname(path) !== path) path = dirname(path);
  const { bavail, bsize, blocks, ffree, files } = statfsSync(path);
  return {
    path,
    freeBytes: bavail * bsize,
    totalBytes: blocks * bsize,
    freeFiles: ffree,
    totalFiles: files,
    filesystem: filesystemOf(readMountinfo(), realpathSync(path)),
  };
};

const gigabytes = (bytes: number): string =>
  bytes < GIB ? `${Math.floor(bytes / 1024 ** 2)} MiB` : `${(bytes / GIB).toFixed(1)} GiB`;

/** Whether the data directory has room, on a file system that keeps a database safe. */
export const checkDisk = (disk: DiskState): readonly DoctorCheck[] => [spaceOf(disk), ...filesystemFindings(disk)];

const spaceOf = ({ path, freeBytes, totalBytes, freeFiles, totalFiles, filesystem }: DiskState): DoctorCheck => {
  const free = `${gigabytes(freeBytes)} of ${gigabytes(totalBytes)} are free on the disk of ${path}`;
  const advice = "Free some space, or move POSTWARDEN_DATA_DIR to a larger disk.";
  if (freeBytes < FREE_BYTES_FAIL) return diskCheck.fail(`Only ${free}. ${advice}`);
  // File systems such as btrfs report no number of files.
  if (totalFiles > 0 && freeFiles < FREE_FILES_WARN)
    return diskCheck.warn(`Only ${freeFiles} more files can be created on the disk of ${path} (df -i). ${advice}`);
  const isLow = freeBytes < FREE_BYTES_WARN || freeBytes < totalBytes * FREE_SHARE_WARN;
  return isLow
    ? diskCheck.warn(`Only ${free}. ${advice}`)
    : diskCheck.ok(`${free} (${filesystem ?? "unknown file system"}).`);
};

const filesystemFindings = ({ path, filesystem }: DiskState): readonly DoctorCheck[] => {
  if (filesystem === null) return [];
  if (NETWORK_FILESYSTEMS.test(filesystem))
    return [
      diskCheck.warn(
        `${path} is on a network file system (${filesystem}), where SQLite can lose data. Set POSTWARDEN_DATA_DIR to a local disk.`,
      ),
    ];
  if (MEMORY_FILESYSTEMS.test(filesystem))
    return [
      diskCheck.warn(
        `${path} is in memory (${filesystem}): everything is lost at the next boot. Set POSTWARDEN_DATA_DIR to a disk.`,
      ),
    ];
  if (CONTAINER_FILESYSTEMS.test(filesystem))
    return [
      diskCheck.warn(
        `${path} is in the container's own layer (${filesystem}) and is lost with the container. Mount a volume there.`,
      ),
    ];
  return [];
};
