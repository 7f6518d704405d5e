import { describe, expect, test } from "bun:test";
import { Database as Sqlite } from "bun:sqlite";
import { chmodSync, existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { MIGRATIONS } from "../foundation/db/migrations.ts";
import { openDb } from "../foundation/db/open.ts";
import { createCommandLine } from "../testing/command-line.ts";
import { describeUnwritable } from "./prepare-directory.ts";

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

describe("invalid settings", () => {
  test.each([...OPENERS, ["config"], ["verify", "a@example.com"]].map((args) => [args]))("stop %j", async (args) => {
    const { status, out, err } = await run(args, { settings: { PORT: "x", PROT: "80" } });
    expect({ status, out }).toEqual({ status: 1, out: "" });
    expect(err.split("\n")).toEqual([
      "postwarden: Invalid settings:",
      "  POSTWARDEN_PROT: Unknown setting. Did you mean POSTWARDEN_PORT?",
      `  POSTWARDEN_PORT: "x" is not a whole number from 0 to 65535.`,
    ]);
  });

  test("are one JSON object with --json", async () => {
    const { status, err } = await run(["config", "--json"], { settings: { PORT: "x" } });
    expect(status).toBe(1);
    expect(JSON.parse(err)).toMatchObject({ error: "settings", message: expect.stringContaining("POSTWARDEN_PORT") });
  });
});

/** Commands that may create a database, and commands that use one. */
const CREATORS = [["serve"], ["migrate"], ["accounts", "create", "anna"]];
const USERS = [
  ["accounts", "list"],
  ["accounts", "show", "a"],
  ["accounts", "set-plan", "a", "free"],
  ["accounts", "rename", "a", "b"],
  ["accounts", "disable", "a"],
  ["accounts", "enable", "a"],
  ["audit"],
  ["credits", "history", "a"],
  ["credits", "show", "a"],
  ["credits", "grant", "a", "1"],
  ["keys", "list"],
  ["keys", "create", "--account", "a", "--mode", "test"],
  ["keys", "rotate", "id"],
  ["keys", "revoke", "id"],
  ["webhooks", "secret", "--account", "a"],
  ["webhooks", "rotate", "--account", "a"],
  ["webhooks", "deliveries", "--account", "a"],
  ["webhooks", "redeliver", "--account", "a"],
  ["webhooks", "cancel", "--account", "a"],
  ["suppress", "list"],
  ["suppress", "add", "a@example.com"],
  ["suppress", "remove", "a@example.com"],
  ["lists", "list"],
  ["lists", "cancel", "id"],
  ["dmarc", "domains", "list"],
  ["dmarc", "sources", "example.com"],
  ["notifications", "show"],
  ["webhooks", "test"],
  ["blocklist", "targets", "discover", "example.com"],
  ["dmarc", "import", "x.xml"],
  ["dmarc", "retry", "--all"],
];

const modeOf = (path: string): number => statSync(path).mode & 0o777;
const modesIn = (folder: string): Record<string, number> =>
  Object.fromEntries(readdirSync(folder).map((name) => [name, modeOf(join(folder, name))]));

describe("a data directory", () => {
  test.each(CREATORS.map((args) => [args]))("is made by %j when it is not there, for its owner only", async (args) => {
    const path = join(dataDir, "..", `made-${args[0]}`, "deeply");
    const before = process.umask(0);
    try {
      expect((await run(args, { settings: { DATA_DIR: path } })).status).toBe(0);
    } finally {
      process.umask(before);
    }
    expect(modesIn(path)).toEqual(Object.fromEntries(readdirSync(path).map((name) => [name, 0o600])));
    expect(readdirSync(path)).toContain("postwarden.db");
    expect(modeOf(path)).toBe(0o700);
  });

  test.each(CREATORS.map((args) => [args]))(
    "that is open to others is closed by %j, with what is in it",
    async (args) => {
      const path = otherDir(`open-${args[0]}`);
      chmodSync(path, 0o755);
      for (const name of ["postwarden.db", "server.lock"]) writeFileSync(join(path, name), "", { mode: 0o666 });
      for (const name of ["postwarden.db", "server.lock"]) chmodSync(join(path, name), 0o666);
      const { status, err } = await run(args, { settings: { DATA_DIR: path } });
      expect({ status, warnings: err.includes("warning") }).toEqual({ status: 0, warnings: false });
      expect(modeOf(path)).toBe(0o700);
      const locked = args[0] === "serve" ? { "server.lock": 0o600 } : {};
      expect(modesIn(path)).toMatchObject({ "postwarden.db": 0o600, ...locked });
    },
  );

  test("with other files in it keeps its mode, with a warning; the database in it is private all the same", async () => {
    const path = otherDir("shared");
    chmodSync(path, 0o755);
    writeFileSync(join(path, "theirs.txt"), "");
    const { status, err } = await run(["accounts", "create", "a"], { settings: { DATA_DIR: path } });
    expect(status).toBe(0);
    expect(err).toStartWith(`postwarden: warning: Other users can enter the data directory ${path} (mode 755)`);
    expect({ dir: modeOf(path), db: modeOf(join(path, "postwarden.db")) }).toEqual({ dir: 0o755, db: 0o600 });
  });

  test("the log and the shared memory of an open database are private too", async () => {
    const path = join(otherDir("wal"), "postwarden.db");
    const before = process.umask(0);
    const opened = openDb(path);
    process.umask(before);
    if (!opened.ok) throw new Error(opened.error.kind);
    opened.value.sqlite.run("PRAGMA user_version = 1");
    expect(modesIn(dirname(path))).toEqual({
      "postwarden.db": 0o600,
      "postwarden.db-shm": 0o600,
      "postwarden.db-wal": 0o600,
    });
    opened.value.close();
  });

  test.each(CREATORS.map((args) => [args]))("that cannot be made stops %j with a sentence", async (args) => {
    const file = join(otherDir("blocked"), "file");
    writeFileSync(file, "");
    const isFile = await run(args, { settings: { DATA_DIR: file } });
    expect(isFile).toMatchObject({
      status: 1,
      out: "",
      err: `postwarden: POSTWARDEN_DATA_DIR: ${file} is a file, not a directory.`,
    });
    const below = await run(args, { settings: { DATA_DIR: join(file, "below") } });
    expect(below).toMatchObject({ status: 1, out: "" });
    expect(below.err).toStartWith(`postwarden: Cannot create the data directory ${join(file, "below")}: `);
    expect(below.err.split("\n")).toHaveLength(1);
  });

  test("of another user is named with its owner, and what to do", () => {
    const directory = { userId: 998, user: "postwarden", isDirectory: true };
    expect(describeUnwritable("/srv/data", { ...directory, ownerId: 0 })).toBe(
      "/srv/data is not writable by postwarden: it belongs to root. Run: chown postwarden /srv/data",
    );
    expect(describeUnwritable("/srv/data", { ...directory, ownerId: 1001 })).toContain("it belongs to user ID 1001.");
  });

  test.each([
    [true, "/srv/data is not writable by anna, its owner. Run: chmod u+rwx /srv/data"],
    [false, "/srv/data is not writable by anna, its owner. Run: chmod u+rw /srv/data"],
  ])("of its own user with the wrong mode (directory: %p) is named with the mode to set", (isDirectory, message) => {
    expect(describeUnwritable("/srv/data", { ownerId: 7, userId: 7, user: "anna", isDirectory })).toBe(message);
  });

  test.each(USERS.map((args) => [args]))("without a database stops %j, and nothing is created", async (args) => {
    const path = join(dataDir, "..", "nothing-here");
    const { status, out, err } = await run(args, { settings: { DATA_DIR: path } });
    expect({ status, out, err }).toEqual({
      status: 1,
      out: "",
      err: `postwarden: No database in ${path}. Set POSTWARDEN_DATA_DIR or pass --data-dir.`,
    });
    expect(existsSync(path)).toBe(false);
    const empty = otherDir("empty");
    expect((await run(args, { settings: { DATA_DIR: empty } })).status).toBe(1);
    expect(readdirSync(empty)).toEqual([]);
  });

  test("without a database is a warning of doctor, which creates none", async () => {
    const path = join(dataDir, "..", "doctors");
    const settings = { DATA_DIR: path, DNS_SERVERS: "127.0.0.1:9" };
    const { json } = await run(["doctor", "--domain", "example.com", "--json"], { settings });
    expect(json.checks).toContainEqual(expect.objectContaining({ check: "database", state: "warn" }));
    expect(existsSync(path)).toBe(false);
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
      "SQLite database of another program",
    ],
    ["no database", (path) => writeFileSync(path, "This is a text file. ".repeat(100)), "database", "not a database"],
    ["a directory", (path) => mkdirSync(path, { recursive: true }), "database", "unable to open database file"],
  ];

  for (const [name, write, error, said] of cases) {
    test.each(OPENERS.slice(0, 3).map((args) => [args]))(
      `${name}: %j says so in one sentence, and leaves it alone`,
      async (args) => {
        const path = otherDir(`${name}-${args[0]}`, write);
        const options = { settings: { DATA_DIR: path } };
        const { status, out, err, problem } = await run(args, options);
        expect({ status, out }).toEqual({ status: 1, out: "" });
        expect(problem).toStartWith(`postwarden: ${join(path, "postwarden.db")}`);
        expect(err).toContain(said);
        expect(err).not.toContain("    at ");
        expect(JSON.parse((await run([...args, "--json"], options)).problem)).toMatchObject({ error });
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
    err: `postwarden: Database error in ${path}: no such table: accounts`,
  });
});

test("migrate brings an empty directory to the newest schema, and does nothing the second time", async () => {
  const settings = { DATA_DIR: otherDir("migrated") };
  const database = join(settings.DATA_DIR, "postwarden.db");
  const applied = MIGRATIONS.map(({ name }) => name);
  const first = await run(["migrate", "--json"], { settings });
  expect(first.json).toEqual({ database, before: 0, after: MIGRATIONS.length, applied, copy: null });
  const second = await run(["migrate", "--json"], { settings });
  expect(second.json).toEqual({
    database,
    before: MIGRATIONS.length,
    after: MIGRATIONS.length,
    applied: [],
    copy: null,
  });
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

describe("the settings of another place", () => {
  test("--data-dir names the directory, before or behind the command, over everything else", async () => {
    const [meant, other] = [otherDir("meant"), otherDir("other")];
    const settings = { DATA_DIR: other };
    expect((await run(["--data-dir", meant, "accounts", "create", "anna"], { settings })).status).toBe(0);
    const { json } = await run(["accounts", "list", "--json", `--data-dir=${meant}`], { settings });
    expect(json.accounts).toMatchObject([{ name: "anna" }]);
    expect(readdirSync(other)).toEqual([]);
  });

  test("--env-file gives the settings of the service's unit; a variable that is set wins", async () => {
    const path = join(otherDir("unit"), "env");
    const lines = [
      "# for the unit",
      "; too",
      "",
      "export POSTWARDEN_PORT=9000",
      `POSTWARDEN_DATA_DIR="${otherDir("of unit")}"`,
    ];
    writeFileSync(path, [...lines, "POSTWARDEN_HELO_NAME='mx.example.com'", "OTHER=a#b = c"].join("\r\n"));
    const { json } = await run(["config", "--env-file", path, "--json"], {
      environment: { POSTWARDEN_HELO_NAME: "set.example.com" },
    });
    expect(json).toMatchObject({
      POSTWARDEN_PORT: 9000,
      POSTWARDEN_DATA_DIR: otherDir("of unit"),
      POSTWARDEN_HELO_NAME: "set.example.com",
    });
  });

  test("an environment file that cannot be read is wrong usage, and the line is named", async () => {
    const path = join(otherDir("broken-unit"), "env");
    expect(await run(["config", "--env-file", path])).toMatchObject({ status: 2, out: "" });
    writeFileSync(path, "A=1\nthis is no setting\n");
    expect((await run(["config", "--env-file", path])).err).toBe(
      `postwarden: Settings file ${path}: line 2 is not NAME=value`,
    );
  });

  test("every command's help names both", async () => {
    for (const args of [["accounts", "list"], ["serve"], ["dmarc", "import"], []]) {
      const { out } = await run([...args, "--help"]);
      expect(out).toContain("--data-dir <dir>");
      expect(out).toContain("--env-file <file>");
    }
  });
});
