import { afterAll, beforeEach, expect, test } from "bun:test";
import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readConfig } from "../service/config.ts";
import { checkDatabase } from "./database-check.ts";
import { checkFiles, type FileSettings } from "./files-check.ts";
import { databasePath } from "../cli/prepare-directory.ts";
import { databasePlaceOf } from "../cli/doctor.ts";
import { systemIo } from "../cli/io.ts";

const folder = mkdtempSync(join(tmpdir(), "doctor-files-"));
afterAll(() => rmSync(folder, { recursive: true }));

const dataDir = join(folder, "data");
const database = join(dataDir, "postwarden.db");
beforeEach(() => {
  rmSync(dataDir, { recursive: true, force: true });
  mkdirSync(dataDir, { mode: 0o700 });
  writeFileSync(database, "", { mode: 0o600 });
});

const look = (settings: Partial<FileSettings> = {}) =>
  checkFiles({
    ...{ dataDir, tlsKeyPath: null, reportTlsKeyPath: null, imapPasswordFile: null },
    ...{ bounceImapPasswordFile: null, envFile: null },
    ...settings,
  }).map(({ state, message }) => `${state} ${message}`);

test("a private directory of one user is ok, also with a link in it", () => {
  symlinkSync("/etc/hostname", join(dataDir, "link"));
  expect(look()).toEqual([`ok The files in ${dataDir} belong to one user and are private.`]);
});

test("a directory that does not exist is nothing to report", () => {
  expect(look({ dataDir: join(folder, "none") })).toEqual([]);
});

test.if(process.platform === "linux")("a file that goes away while the directory is read is nothing to report", () => {
  // The list of open files names the handle that reads the list, which is closed afterwards.
  expect(look({ dataDir: "/proc/self/fd" })).toEqual([
    "ok The files in /proc/self/fd belong to one user and are private.",
  ]);
});

test("files that others can open are named with their mode, and how to close them", () => {
  chmodSync(database, 0o640);
  chmodSync(dataDir, 0o755);
  expect(look()).toEqual([
    `warn Other users can open ${dataDir} (mode 755), ${database} (mode 640). Run: chmod -R go= ${dataDir}`,
  ]);
});

test("no more than three files are named", () => {
  for (const name of ["a", "b", "c", "d", "e"]) {
    writeFileSync(join(dataDir, name), "");
    chmodSync(join(dataDir, name), 0o644);
  }
  expect(look()[0]).toContain("and 2 more. Run: chmod");
});

test.if(process.geteuid?.() === 0)("a file of another user is a failure: the service cannot write it", () => {
  chownSync(dataDir, 4321, 4322);
  expect(look()).toEqual([
    `fail ${database} belong to another user than ${dataDir}, so the service may be unable to write them. Run: chown -R 4321:4322 ${dataDir}`,
  ]);
});

test("keys of the first start that are still there are a warning", () => {
  const keys = join(dataDir, "first-keys.json");
  writeFileSync(keys, "{}", { mode: 0o600 });
  expect(look()).toEqual([`warn ${keys} holds API keys. Store them elsewhere, then run: rm ${keys}`]);
});

test("files with secrets that everybody can read are a warning, those of a group are not", () => {
  const key = join(folder, "key.pem");
  writeFileSync(key, "");
  chmodSync(key, 0o644);
  expect(look({ tlsKeyPath: key })).toEqual([
    `warn Every user can open ${key} (POSTWARDEN_TLS_KEY, mode 644). Run: chmod o= ${key}`,
  ]);
  expect(look({ envFile: key })[0]).toContain("(--env-file, mode 644)");
  chmodSync(key, 0o640);
  expect(look({ reportTlsKeyPath: key, imapPasswordFile: key })[0]).toStartWith("ok ");
});

test("a file with a secret that does not exist is a failure", () => {
  expect(look({ imapPasswordFile: "/none/at/all" })).toEqual([
    "fail /none/at/all (POSTWARDEN_IMAP_PASSWORD_FILE): no such file.",
  ]);
});

/** Runs `work` as a user who is neither root nor the owner of anything. */
const asNobody = <T>(work: () => T): T => {
  process.seteuid?.(65_534);
  try {
    return work();
  } finally {
    process.seteuid?.(0);
  }
};

test.if(process.geteuid?.() === 0)("a directory of another user is a failure, and not a missing database", async () => {
  chmodSync(folder, 0o755);
  expect(asNobody(() => look())).toEqual([
    `fail ${dataDir} cannot be read by this user. Run doctor as the user of the service, or as root.`,
  ]);
  const config = readConfig({ POSTWARDEN_DATA_DIR: dataDir });
  if (!config.ok) throw new Error(config.error.join(" "));
  const { value } = config;
  const database = databasePath(value);
  const place = () => databasePlaceOf(systemIo, value);
  expect(asNobody(() => checkDatabase({ dataDir, database, place }))).toMatchObject({
    state: "fail",
    message: expect.stringContaining("This user may not enter"),
  });
});
