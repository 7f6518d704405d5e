import { expect, test } from "bun:test";
import { checkDisk, type DiskState, filesystemOf, readDisk } from "./disk-check.ts";

const GIB = 1024 ** 3;
const DISK: DiskState = {
  path: "/var/lib/postwarden",
  freeBytes: 20 * GIB,
  totalBytes: 100 * GIB,
  freeFiles: 1_000_000,
  totalFiles: 2_000_000,
  filesystem: "ext4",
};

test.each<[string, Partial<DiskState>, string, RegExp]>([
  ["enough space", {}, "ok", /^20\.0 GiB of 100\.0 GiB are free on the disk of \/var\/lib\/postwarden \(ext4\)\.$/],
  ["less than 2 GiB", { freeBytes: 2 * GIB - 1 }, "warn", /Only 2\.0 GiB.*larger disk/],
  ["less than 5 % of a large disk", { totalBytes: 1000 * GIB, freeBytes: 49 * GIB }, "warn", /Only 49\.0 GiB/],
  ["less than 256 MiB", { freeBytes: GIB / 4 - 1 }, "fail", /Only 255 MiB/],
  ["no more files", { freeFiles: 999 }, "warn", /Only 999 more files.*df -i/],
  ["a file system without a number of files", { freeFiles: 0, totalFiles: 0 }, "ok", /are free/],
])("disk: %s", (_, change, state, message) => {
  const found = checkDisk({ ...DISK, ...change });
  expect(found).toMatchObject([{ check: "disk", state: state as "ok" }]);
  expect(found[0]?.message).toMatch(message);
});

test.each([
  ["nfs4", /network file system \(nfs4\).*local disk/],
  ["cifs", /network file system/],
  ["fuse.sshfs", /network file system/],
  ["tmpfs", /in memory \(tmpfs\)/],
  ["overlay", /container's own layer.*volume/],
])("the file system %s is a warning", (filesystem, message) => {
  const found = checkDisk({ ...DISK, filesystem });
  expect(found.map(({ state }) => state)).toEqual(["ok", "warn"]);
  expect(found[1]?.message).toMatch(message);
});

const MOUNTINFO = `22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
40 27 0:40 / /srv rw - nfs4 server:/srv rw
41 27 0:41 / /srv/my\\040data rw - xfs /dev/vdb rw
42 27 0:42 / /home rw - ext4 /dev/vdc rw
43 42 0:43 / /home rw - btrfs /dev/vdd rw
`;

test.each([
  ["/var/lib/postwarden", "ext4"],
  ["/srv", "nfs4"],
  ["/srv/data", "nfs4"],
  ["/srv2", "ext4"],
  ["/srv/my data/postwarden", "xfs"],
  ["/home/anna", "btrfs"],
])("%s is on %s", (path, type) => {
  expect(filesystemOf(MOUNTINFO, path)).toBe(type);
});

test("without mountinfo the file system is not known, and nothing is said about it", () => {
  expect(filesystemOf("", "/var")).toBeNull();
  expect(checkDisk({ ...DISK, filesystem: null })).toHaveLength(1);
});

test("a data directory that does not exist yet is judged by the one above it", () => {
  const { path, totalBytes } = readDisk(`${import.meta.dir}/not/there`);
  expect([path, totalBytes > 0]).toEqual([import.meta.dir, true]);
});
