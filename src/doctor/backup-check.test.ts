import { afterEach, beforeEach, expect, test } from "bun:test";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sha256OfFile, writeChecksum } from "../foundation/db/partial-file.ts";
import { checkBackups, checkCopies } from "./backup-check.ts";

const NOW_MS = Date.UTC(2026, 0, 2, 12);
let folder = "";
const at = (name: string) => join(folder, name);

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "postwarden-doctor-backup-"));
  mkdirSync(at("data"));
  mkdirSync(at("backups"));
});
afterEach(() => rmSync(folder, { recursive: true }));

const check = ({ backupDir = at("backups") as string | null, dataDir = at("data"), checkedBytesMax = 1_000 } = {}) =>
  checkBackups({
    ...{ config: { backupDir, dataDir }, database: join(dataDir, "postwarden.db") },
    ...{ nowMs: NOW_MS, checkedBytesMax },
  });
const backup = (name: string) => writeFileSync(at(`backups/${name}`), "");

test("without a directory there are no scheduled backups", () => {
  expect(check({ backupDir: null })).toMatchObject({ check: "backup", state: "warn" });
});

test.each<[string, () => void, string]>([
  ["is missing", () => rmSync(at("backups"), { recursive: true }), "install -d -m 700"],
  [
    "is a file",
    () => {
      rmSync(at("backups"), { recursive: true });
      writeFileSync(at("backups"), "");
      chmodSync(at("backups"), 0o700);
    },
    "is not a directory",
  ],
])("a directory that %s is a failure", (_, prepare, text) => {
  prepare();
  const { state, message } = check();
  expect(state).toBe("fail");
  expect(message).toContain(text);
});

test("a directory without backups is a warning", () => {
  writeFileSync(at("backups/other.db"), "");
  expect(check()).toMatchObject({ state: "warn", message: expect.stringContaining("no backup yet") });
});

test.each([
  ["an old last backup", "postwarden-2025-12-31T02-30-00Z.db", "57 hours ago. One is due every day"],
  ["backups on the disk of the database", "postwarden-2026-01-02T02-30-00Z.db", "on the file system of the database"],
])("%s is a warning", (_, name, text) => {
  backup(name);
  expect(check()).toMatchObject({ state: "warn", message: expect.stringContaining(text) });
});

test("a newest backup that is not what was written is a failure, unless it is too large to be read here", () => {
  const name = "postwarden-2026-01-02T02-30-00Z.db";
  writeFileSync(at(`backups/${name}`), "what was written");
  writeChecksum(at(`backups/${name}`), sha256OfFile(at(`backups/${name}`)));
  expect(check().state).toBe("warn");
  writeFileSync(at(`backups/${name}`), "what was writteN");
  expect(check()).toMatchObject({ state: "fail", message: expect.stringContaining("does not match") });
  expect(check({ checkedBytesMax: 15 }).state).toBe("warn");
});

test("copies of former databases are named with their size", () => {
  const database = at("data/postwarden.db");
  expect(checkCopies(database)).toEqual([]);
  expect(checkCopies(at("nowhere/postwarden.db"))).toEqual([]);
  for (const name of ["", ".before-0006_x", ".before-restore-2026-01-01T00-00-00-000Z", ".before-0006_x-wal"])
    writeFileSync(database + name, "x".repeat(500_000));
  const [found] = checkCopies(database);
  expect(found).toMatchObject({ check: "copies", state: "ok" });
  expect(found?.message).toContain("2 of former databases beside this one take 1.5 MB");
  expect(found?.message).toContain("postwarden.db.before-0006_x (1.0 MB)");
});

test("too little room for the next one is a warning", () => {
  backup("postwarden-2026-01-02T02-30-00Z.db");
  writeFileSync(at("data/postwarden.db"), "");
  truncateSync(at("data/postwarden.db"), 8 * 2 ** 40);
  expect(check()).toMatchObject({ state: "warn", message: expect.stringContaining("no room for the next backup") });
});

test("a backup of today on another file system is right", () => {
  backup("postwarden-2026-01-01T02-30-00Z.db");
  backup("postwarden-2026-01-02T02-30-00Z.db");
  // procfs stands for the other disk.
  expect(check({ dataDir: "/proc" })).toEqual({
    check: "backup",
    state: "ok",
    message: `2 in ${at("backups")}, the last from 2026-01-02 02:30 UTC, 9 hours ago.`,
  });
});
