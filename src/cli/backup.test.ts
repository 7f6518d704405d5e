import { describe, expect, test } from "bun:test";
import { Database as Sqlite } from "bun:sqlite";
import { existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { actorOfProcess } from "../accounts/audit-store.ts";
import { takeServerLock } from "../foundation/db/database-files.ts";
import { MIGRATIONS } from "../foundation/db/migrations.ts";
import { createCommandLine } from "../testing/command-line.ts";

const { dataDir, run } = createCommandLine();
/** Runs a command in a process of its own, whose end surely closes the database: a restore refuses one that is open. */
const runApart = (...words: readonly string[]) => {
  const program = [process.execPath, "--no-env-file", join(import.meta.dir, "..", "main.ts")];
  const { exitCode, stdout, stderr } = Bun.spawnSync([...program, ...words], { env: { POSTWARDEN_DATA_DIR: dataDir } });
  return { status: exitCode, out: stdout.toString(), err: stderr.toString() };
};
const beside = (name: string) => join(dataDir, "..", name);
const names = async (): Promise<string[]> => {
  const { out } = await run(["accounts", "list", "--json"]);
  return (JSON.parse(out).accounts as ReadonlyArray<{ name: string }>).map(({ name }) => name);
};

describe("backup and restore", () => {
  test("bring back what there was, and keep what has come since", async () => {
    runApart("accounts", "create", "first");
    const backup = runApart("backup", beside("monday.db"), "--json");
    expect(backup).toMatchObject({ status: 0, err: "" });
    expect(JSON.parse(backup.out)).toEqual({
      file: beside("monday.db"),
      bytes: statSync(beside("monday.db")).size,
      schema: MIGRATIONS.length,
    });
    expect(runApart("accounts", "create", "second").status).toBe(0);

    const { status, out, err } = await run(["restore", beside("monday.db"), "--json"]);
    expect([status, err]).toEqual([0, ""]);
    expect(await names()).toEqual(["first"]);
    const [entry] = (await run(["audit", "--json"])).json.entries as readonly Record<string, unknown>[];
    expect(entry).toMatchObject({ action: "restore", user: actorOfProcess().user, account_id: null, pid: process.pid });
    expect(entry?.after).toMatchObject({ sessions_kept: false, sessions_ended: 0, compared: true, keys_gone: 0 });
    const { kept } = JSON.parse(out);
    expect(kept).toMatch(/postwarden\.db\.before-restore-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d{3}Z$/);
    const sqlite = new Sqlite(kept, { readonly: true });
    expect(sqlite.query("SELECT count(*) AS n FROM accounts").get()).toEqual({ n: 2 });
    sqlite.close();
  });

  test("say in words what they did", async () => {
    const backup = await run(["backup", beside("tuesday.db")]);
    expect(backup.out).toMatch(
      /tuesday\.db: \d+\.\d MB, verified; SHA-256 in .*tuesday\.db\.sha256\. To restore it: postwarden restore .*tuesday\.db/,
    );
    expect((await run(["restore", beside("tuesday.db")])).out).toMatch(
      /restored\. The former database is .*before-restore/,
    );
  });

  test.each([
    ["a file that exists", ["backup", "taken.db"], "taken.db exists already"],
    ["a directory that does not exist", ["backup", "nowhere/x.db"], "nowhere: no such directory"],
    ["a name of its own in the data directory", ["backup", "data/postwarden.db-wal"], "Postwarden uses this name"],
    ["no file", ["restore", "missing.db"], "missing.db: no such file"],
    ["text", ["restore", "taken.db"], "taken.db is not a SQLite database"],
    ["another database", ["restore", "foreign.db"], "not one of Postwarden's"],
  ])("refuse %s, and change nothing", async (_, [command = "", file = ""], message) => {
    writeFileSync(beside("taken.db"), "this is my own file, and no database".repeat(30));
    if (!existsSync(beside("foreign.db"))) new Sqlite(beside("foreign.db")).run("CREATE TABLE t (a)");
    const before = readdirSync(dataDir);
    const { status, out, err } = await run([command, beside(file)]);
    expect({ status, out }).toEqual({ status: 1, out: "" });
    expect(err).toContain(message);
    expect(statSync(beside("taken.db")).size).toBe(1080);
    expect(readdirSync(dataDir).filter((name) => !before.includes(name) && name !== "server.lock")).toEqual([]);
  });

  test("a restore under a running server is refused", async () => {
    await run(["backup", beside("wednesday.db")]);
    const lock = takeServerLock(join(dataDir, "server.lock"));
    try {
      const { status, err } = await run(["restore", beside("wednesday.db")]);
      expect(status).toBe(1);
      expect(err).toContain("Another server is using");
    } finally {
      lock?.release();
    }
    expect((await run(["restore", beside("wednesday.db")])).status).toBe(0);
  });

  test("the database in use is no backup of itself", async () => {
    const { status, err } = await run(["restore", join(dataDir, "postwarden.db")]);
    expect(status).toBe(1);
    expect(err).toContain("is the database in use");
  });

  test("a restore into an empty data directory needs no database there", async () => {
    await run(["backup", beside("thursday.db")]);
    mkdirSync(beside("empty"), { recursive: true });
    const settings = { DATA_DIR: beside("empty") };
    expect(await run(["restore", beside("thursday.db"), "--json"], { settings })).toMatchObject({ status: 0 });
    expect(JSON.parse((await run(["accounts", "list", "--json"], { settings })).out).accounts.length).toBeGreaterThan(
      0,
    );
  });
});
