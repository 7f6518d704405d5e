import { describe, expect, test } from "bun:test";
import { Database as Sqlite } from "bun:sqlite";
import { existsSync, mkdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { MIGRATIONS } from "../db/migrations.ts";
import { createCommandLine } from "../testing/command-line.ts";

const { dataDir, run } = createCommandLine();

/** A directory of its own beside the shared one, with or without a database made by `write`. */
const otherDir = (name: string, write?: (path: string) => void): string => {
  const path = join(dataDir, "..", name);
  mkdirSync(path, { recursive: true });
  write?.(join(path, "postwarden.db"));
  return path;
};

/** Commands that open the database, each in its own way. */
const OPENERS = [["accounts", "list"], ["migrate"], ["serve"], ["doctor", "--domain", "example.com"]];

describe("settings that do not fit", () => {
  test.each([...OPENERS, ["config"], ["verify", "a@example.com"]].map((args) => [args]))("stop %j", async (args) => {
    const { status, out, err } = await run(args, { settings: { PORT: "x", PROT: "80" } });
    expect({ status, out }).toEqual({ status: 1, out: "" });
    expect(err.split("\n")).toEqual([
      "postwarden: The settings do not fit:",
      "  POSTWARDEN_PROT is not a setting. Did you mean POSTWARDEN_PORT?",
      "  POSTWARDEN_PORT: a whole number from 0 to 65535 is needed.",
    ]);
  });

  test("are one JSON object with --json", async () => {
    const { status, err } = await run(["config", "--json"], { settings: { PORT: "x" } });
    expect(status).toBe(1);
    expect(JSON.parse(err)).toMatchObject({ error: "settings", message: expect.stringContaining("POSTWARDEN_PORT") });
  });
});

describe("a data directory", () => {
  test("is made when it is not there, for its owner only", async () => {
    const path = join(dataDir, "..", "made", "deeply");
    expect((await run(["accounts", "list"], { settings: { DATA_DIR: path } })).status).toBe(0);
    expect(statSync(path).mode & 0o777).toBe(0o700);
    expect(existsSync(join(path, "postwarden.db"))).toBe(true);
  });

  test.each(OPENERS.slice(0, 3).map((args) => [args]))("that cannot be made stops %j with a sentence", async (args) => {
    const file = join(otherDir("blocked"), "file");
    writeFileSync(file, "");
    for (const path of [file, join(file, "below")]) {
      const { status, out, err } = await run(args, { settings: { DATA_DIR: path } });
      expect({ status, out }).toEqual({ status: 1, out: "" });
      expect(err).toStartWith(`postwarden: The data directory ${path} cannot be made: `);
      expect(err.split("\n")).toHaveLength(1);
    }
  });

  test("is not needed by commands that store nothing", async () => {
    const path = join(dataDir, "..", "never-made");
    const settings = { DATA_DIR: path };
    for (const args of [["config"], ["version"], ["inspect", "address", "a@example.com"], ["accounts", "--help"]]) {
      expect((await run(args, { settings })).status).toBe(0);
    }
    expect(existsSync(path)).toBe(false);
  });
});

describe("a database that is not ours to open", () => {
  const cases: ReadonlyArray<readonly [string, (path: string) => void, string, string]> = [
    [
      "newer",
      (path) => {
        const sqlite = new Sqlite(path);
        sqlite.run(`PRAGMA application_id = ${0x5057444e}`);
        sqlite.run(`PRAGMA user_version = ${MIGRATIONS.length + 1}`);
        sqlite.run("CREATE TABLE later (x)");
        sqlite.close();
      },
      "newer_database",
      "The database is newer than this binary",
    ],
    [
      "foreign",
      (path) => {
        const sqlite = new Sqlite(path);
        sqlite.run("CREATE TABLE somebody_elses (x)");
        sqlite.close();
      },
      "foreign_database",
      "not one of Postwarden's",
    ],
    ["no database", (path) => writeFileSync(path, "This is a text file. ".repeat(100)), "database", "not a database"],
    ["a directory", (path) => mkdirSync(path, { recursive: true }), "database", "cannot be opened"],
  ];

  for (const [name, write, error, said] of cases) {
    test.each(OPENERS.slice(0, 3).map((args) => [args]))(
      `${name}: %j says so in one sentence, and leaves it alone`,
      async (args) => {
        const path = otherDir(`${name}-${args[0]}`, write);
        const options = { settings: { DATA_DIR: path } };
        const { status, out, err } = await run(args, options);
        expect({ status, out }).toEqual({ status: 1, out: "" });
        expect(err).toStartWith(`postwarden: ${join(path, "postwarden.db")}`);
        expect(err).toContain(said);
        expect(err).not.toContain("    at ");
        expect(JSON.parse((await run([...args, "--json"], options)).err)).toMatchObject({ error });
      },
    );
  }
});

test("a database that fails at work is a sentence, not a stack", async () => {
  const settings = { DATA_DIR: otherDir("damaged") };
  expect((await run(["migrate"], { settings })).status).toBe(0);
  const path = join(settings.DATA_DIR, "postwarden.db");
  const sqlite = new Sqlite(path);
  sqlite.run("ALTER TABLE accounts RENAME TO lost");
  sqlite.close();
  expect(await run(["accounts", "list"], { settings })).toMatchObject({
    status: 1,
    out: "",
    err: `postwarden: ${path} cannot be used: no such table: accounts`,
  });
});

test("migrate brings an empty directory to the newest schema, and does nothing the second time", async () => {
  const settings = { DATA_DIR: otherDir("migrated") };
  const database = join(settings.DATA_DIR, "postwarden.db");
  const applied = MIGRATIONS.map(({ name }) => name);
  const first = await run(["migrate", "--json"], { settings });
  expect(first.json).toEqual({ database, before: 0, after: MIGRATIONS.length, applied });
  const second = await run(["migrate", "--json"], { settings });
  expect(second.json).toEqual({ database, before: MIGRATIONS.length, after: MIGRATIONS.length, applied: [] });
  expect((await run(["migrate"], { settings })).out).toContain("is up to date");
});

describe("config", () => {
  test("prints the settings in force, by the names under which they are set", async () => {
    const settings = { PORT: "9000", DNS_SERVERS: "192.0.2.1", MAIL_FROM: "probe@example.com" };
    const { status, json } = await run(["config", "--json"], { settings });
    expect(status).toBe(0);
    expect(json).toMatchObject({
      POSTWARDEN_DATA_DIR: dataDir,
      POSTWARDEN_PORT: 9000,
      POSTWARDEN_DNS_SERVERS: ["192.0.2.1:53"],
      POSTWARDEN_MAIL_FROM: "probe@example.com",
      POSTWARDEN_GREYLIST_RETRIES_S: [60, 300, 900, 1800],
      POSTWARDEN_BASE_URL: null,
    });
    const { out } = await run(["config"], { settings });
    expect(out).toMatch(/^POSTWARDEN_PORT +9000$/m);
    expect(out).toMatch(/^POSTWARDEN_DNS_SERVERS +192\.0\.2\.1:53$/m);
    expect(out).toMatch(/^POSTWARDEN_BASE_URL +\(not set\)$/m);
  });
});
