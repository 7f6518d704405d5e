import { afterEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { rename, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { createLog } from "../base/log.ts";
import { createTestClock } from "../../testing/clock.ts";
import { type MadeMmdb, type MmdbValue, writeMmdb } from "../../testing/mmdb-writer.ts";
import { openGeoipDatabase, GEOIP_BYTES_MAX, GeoipFiles } from "./geoip-files.ts";

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});
const newFolder = (): string => {
  const folder = mkdtempSync(join(tmpdir(), "geoip-"));
  folders.push(folder);
  return folder;
};

const as = (asn: number, name: string) => ({ autonomous_system_number: asn, autonomous_system_organization: name });
const ASN = writeMmdb(
  { "192.0.2.0/24": as(64_500, "Example"), "2001:db8::/32": as(64_501, "Six") },
  { type: "GeoLite2-ASN" },
);
const COUNTRY = writeMmdb({
  "192.0.0.0/16": { country: { iso_code: "US" } },
  "198.51.100.0/24": { country: { iso_code: "DE" } },
});
const NOTHING = { asn: null, asName: null, country: null, prefix: null };

const write = (folder: string, name: string, bytes: Buffer): string => {
  const path = join(folder, name);
  writeFileSync(path, bytes);
  return path;
};

const openWith = (paths: readonly string[]) => {
  const logged: Record<string, unknown>[] = [];
  const log = createLog("info", createTestClock(), (line) => logged.push(JSON.parse(line)));
  return { logged, opened: GeoipFiles.open(paths, log) };
};
const open = (paths: readonly string[]) => {
  const { logged, opened } = openWith(paths);
  if (!opened.ok) throw new Error(opened.error.join(" "));
  return { files: opened.value, logged };
};

describe("a database", () => {
  const formats: readonly MadeMmdb[] = ([24, 28, 32] as const).flatMap((recordBits) =>
    ([4, 6] as const).map((ipVersion) => ({ recordBits, ipVersion })),
  );

  test.each(formats)("says the AS and its network: %o", (made) => {
    const read = openGeoipDatabase(
      writeMmdb({ "192.0.2.0/25": as(64_500, "Example"), "198.51.100.0/24": as(64_501, "Other") }, made),
    );
    if (!read.ok) throw new Error(read.error);
    const { find } = read.value;
    expect(find("192.0.2.10")).toEqual({ asn: 64_500, asName: "Example", country: null, network: "192.0.2.0/25" });
    expect(find("198.51.100.255")).toMatchObject({ asn: 64_501, network: "198.51.100.0/24" });
    expect([find("192.0.2.128"), find("203.0.113.1"), find("2001:db8::1")]).toEqual([null, null, null]);
  });

  test("of IPv4 addresses knows no IPv6 address, whose first bits may look like theirs", () => {
    const read = openGeoipDatabase(writeMmdb({ "32.0.0.0/4": as(64_500, "Example") }, { ipVersion: 4 }));
    expect(read.ok && read.value.find("2001:db8::1")).toBeNull();
    expect(read.ok && read.value.find("32.1.1.1")).toMatchObject({ asn: 64_500 });
  });

  test("of both families knows IPv6 networks", () => {
    const read = openGeoipDatabase(ASN);
    expect(read.ok && read.value.find("2001:db8:ffff::1")).toMatchObject({ asn: 64_501, network: "2001:db8::/32" });
    expect(read.ok && { type: read.value.type, builtAtMs: read.value.builtAtMs }).toEqual({
      type: "GeoLite2-ASN",
      builtAtMs: 1_767_225_600_000,
    });
  });

  const broken: ReadonlyArray<[string, Buffer]> = [
    ["empty", Buffer.alloc(0)],
    ["text", Buffer.from("<html>404</html>")],
    ["gzip of one", Buffer.from(Bun.gzipSync(new Uint8Array(ASN)))],
    ["without its end", ASN.subarray(0, -200)],
    ["without its beginning", ASN.subarray(50)],
    ["with a cut metadata section", ASN.subarray(0, -20)],
    ["of another version", writeMmdb({}, { metadata: { binary_format_major_version: 3 } })],
    ["of an unknown IP version", writeMmdb({}, { metadata: { ip_version: 5 } })],
    ["with records of 20 bits", writeMmdb({}, { metadata: { record_size: 20 } })],
    ["with more nodes than it has", writeMmdb({}, { metadata: { node_count: 1_000_000 } })],
    ["without a date", writeMmdb({}, { metadata: { build_epoch: "yesterday" } })],
    ["a marker alone", Buffer.from("abcdef4d61784d696e642e636f6d", "hex")],
  ];
  test.each(broken)("that is %s is refused", (_, bytes) => {
    const read = openGeoipDatabase(bytes);
    expect(read.ok ? "opened" : read.error).toMatch(/^it (is|has|does|says) /);
  });

  test("that is cut or changed anywhere is refused, or answers or throws, and never hangs", () => {
    const damage = fc.record({ at: fc.nat(ASN.length - 1), byte: fc.nat(255), cut: fc.boolean() });
    fc.assert(
      fc.property(damage, ({ at, byte, cut }) => {
        const bytes = Buffer.from(cut ? ASN.subarray(0, at) : ASN);
        if (!cut) bytes[at] = byte;
        const read = openGeoipDatabase(bytes);
        if (cut) expect(read.ok).toBe(false);
        if (!read.ok) return;
        for (const ip of ["192.0.2.10", "2001:db8::1", "203.0.113.1"]) {
          try {
            read.value.find(ip);
          } catch (error) {
            expect(error).toBeInstanceOf(Error);
          }
        }
      }),
      { numRuns: 500 },
    );
  });
});

describe("files", () => {
  test("add up: the first that knows the AS or the country is believed", () => {
    const folder = newFolder();
    const other = writeMmdb({
      "192.0.2.0/24": { ...as(64_999, "Second"), country_code: "FR" },
      "203.0.113.0/24": as(64_502, "Third"),
    });
    const paths = [write(folder, "asn", ASN), write(folder, "country", COUNTRY), write(folder, "other", other)];
    const { files } = open(paths);
    expect(files.find("192.0.2.10")).toEqual({ asn: 64_500, asName: "Example", country: "US", prefix: "192.0.2.0/24" });
    expect(files.find("198.51.100.1")).toEqual({ ...NOTHING, country: "DE" });
    expect(files.find("203.0.113.1")).toEqual({ ...NOTHING, asn: 64_502, asName: "Third", prefix: "203.0.113.0/24" });
    expect(files.find("2001:db8::1")).toMatchObject({ asn: 64_501, country: null });
    expect(files.find("233.252.0.1")).toEqual(NOTHING);
    expect(files.contents().map(({ path, type }) => [path, type])).toEqual([
      [paths[0] ?? "", "GeoLite2-ASN"],
      [paths[1] ?? "", "Test"],
      [paths[2] ?? "", "Test"],
    ]);
  });

  test("that cannot be used are all named", () => {
    const folder = newFolder();
    const large = write(folder, "large", ASN);
    truncateSync(large, GEOIP_BYTES_MAX + 1);
    const text = write(folder, "text", Buffer.from("no database"));
    const { opened } = openWith([join(folder, "none"), folder, text, large, write(folder, "asn", ASN)]);
    expect(opened.ok ? [] : opened.error).toEqual([
      `${join(folder, "none")} cannot be used: no such file.`,
      `${folder} cannot be used: it is a directory.`,
      `${text} cannot be used: it is not a database in the MaxMind DB format, or its end is missing.`,
      `${large} cannot be used: it has 257 MiB; at most 256 MiB can be read.`,
    ]);
  });

  /** Puts a new file in the place of another, as update programs do; each has a time of its own. */
  let changes = 0;
  const replace = async (path: string, bytes: Buffer): Promise<void> => {
    await writeFile(`${path}.new`, bytes);
    await utimes(`${path}.new`, 1_000 + ++changes, 1_000 + changes);
    await rename(`${path}.new`, path);
  };

  test("that are replaced are read again, once", async () => {
    const path = write(newFolder(), "asn", ASN);
    const { files, logged } = open([path]);
    await files.refresh();
    expect(logged).toEqual([]);
    await replace(path, writeMmdb({ "192.0.2.0/24": as(64_510, "New") }));
    expect(files.find("192.0.2.10")).toMatchObject({ asn: 64_500 });
    await files.refresh();
    await files.refresh();
    expect(files.find("192.0.2.10")).toMatchObject({ asn: 64_510 });
    expect(logged.map(({ level, path: of }) => [level, of])).toEqual([["info", path]]);
    expect(files.findings()).toEqual([]);
  });

  test.each<[string, (path: string) => Promise<void>, string]>([
    ["damaged", (path) => replace(path, ASN.subarray(0, 100)), "its end is missing"],
    ["empty", (path) => replace(path, Buffer.alloc(0)), "its end is missing"],
    ["gone", (path) => rm(path), "no such file"],
  ])(
    "that are %s afterwards stay in use as they were, which is logged once and found until it is fixed",
    async (_, spoil, problem) => {
      const path = write(newFolder(), "asn", ASN);
      const { files, logged } = open([path]);
      await spoil(path);
      for (let run = 0; run < 3; run += 1) await files.refresh();
      expect(files.find("192.0.2.10")).toMatchObject({ asn: 64_500 });
      expect(logged.map(({ level }) => level)).toEqual(["warn"]);
      expect(JSON.stringify(logged)).toContain(problem);
      expect(files.findings()).toHaveLength(1);
      expect(files.findings()[0]).toContain(`${path} cannot be read again: `);
      await replace(path, writeMmdb({ "192.0.2.0/24": as(64_510, "New") }));
      await files.refresh();
      expect([files.findings(), files.find("192.0.2.10").asn]).toEqual([[], 64_510]);
    },
  );

  test("that are damaged in places know nothing there, say so once, and know the rest", async () => {
    const value: MmdbValue = as(64_500, "Example");
    const bytes = writeMmdb({ "192.0.2.0/24": value, "198.51.100.0/24": { other: "x".repeat(20) } });
    // The second record's control byte: a type that does not exist.
    bytes[bytes.lastIndexOf(Buffer.concat([Buffer.from([0xe1, 0x45]), Buffer.from("other")]))] = 0x00;
    const path = write(newFolder(), "asn", bytes);
    const { files, logged } = open([path]);
    for (let n = 0; n < 2; n += 1) expect(files.find("198.51.100.1")).toEqual(NOTHING);
    expect(files.find("192.0.2.1")).toMatchObject({ asn: 64_500 });
    expect(logged.map(({ level }) => level)).toEqual(["error"]);
    expect(files.findings()).toEqual([`POSTWARDEN_GEOIP_DB: ${path} is damaged; replace it.`]);
    await replace(path, ASN);
    await files.refresh();
    expect(files.findings()).toEqual([]);
  });
});
