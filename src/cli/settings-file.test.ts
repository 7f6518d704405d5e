import { Database as Sqlite } from "bun:sqlite";
import { afterAll, describe, expect, spyOn, test } from "bun:test";
import { chownSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ownUserId } from "../foundation/base/private-file.ts";
import { createCommandLine } from "../testing/command-line.ts";
import { refuseForeignRoot } from "./prepare-directory.ts";

const { run } = createCommandLine();
const folder = mkdtempSync(join(tmpdir(), "postwarden-settings-"));
afterAll(() => rmSync(folder, { recursive: true }));
const NO_VARIABLES = { PATH: "/usr/bin" };

const settingsFile = join(folder, "postwarden.env");
const dataDir = join(folder, "data");
writeFileSync(settingsFile, `POSTWARDEN_DATA_DIR=${dataDir}\nPOSTWARDEN_PORT=8125\n`);

describe("the settings file of the package", () => {
  const portOf = async (args: readonly string[], environment: Record<string, string>) =>
    (await run(["config", "--json", ...args], { environment, settingsFile })).json.POSTWARDEN_PORT;
  const other = join(folder, "other.env");
  writeFileSync(other, "POSTWARDEN_PORT=8126\n");

  test.each([
    ["nothing says otherwise", [], NO_VARIABLES, 8125],
    ["an empty variable says nothing", [], { POSTWARDEN_PORT: "" }, 8125],
    ["--env-file", ["--env-file", other], NO_VARIABLES, 8126],
    ["--data-dir", ["--data-dir", folder], NO_VARIABLES, 8080],
    ["a variable", [], { POSTWARDEN_LOG_LEVEL: "info" }, 8080],
  ] as const)("%s: the port is the last value", async (_, args, environment, port) => {
    expect(await portOf(args, { ...environment })).toBe(port);
  });

  test("names the database of commands", async () => {
    const options = { environment: NO_VARIABLES, settingsFile };
    expect(await run(["accounts", "list"], options)).toMatchObject({
      status: 1,
      err: `postwarden: No database in ${dataDir}. Set POSTWARDEN_DATA_DIR or pass --data-dir.`,
    });
    expect((await run(["accounts", "create", "anna"], options)).status).toBe(0);
    expect(readdirSync(dataDir)).toContain("postwarden.db");
  });

  test("that this user may not read stops commands that need settings, and no others", async () => {
    const loop = join(folder, "loop");
    symlinkSync(loop, loop);
    const options = { environment: NO_VARIABLES, settingsFile: loop };
    const { status, out, err } = await run(["accounts", "list"], options);
    expect({ status, out }).toEqual({ status: 1, out: "" });
    expect(err).toContain("sudo -u postwarden postwarden");
    expect((await run(["version"], options)).status).toBe(0);
    expect((await run(["accounts", "list", "--data-dir", dataDir], options)).status).toBe(0);
  });

  test("that is missing is none", async () => {
    const options = { environment: NO_VARIABLES, settingsFile: join(folder, "none", "postwarden.env") };
    expect((await run(["config", "--json"], options)).json.POSTWARDEN_PORT).toBe(8080);
  });
});

test("--data-dir and --env-file stand before or after the command", async () => {
  for (const args of [
    ["--data-dir", dataDir, "accounts", "list", "--json"],
    ["accounts", "--data-dir", dataDir, "list", "--json"],
    ["accounts", "list", "--json", "--data-dir", dataDir],
    ["--env-file", settingsFile, "accounts", "list", "--json"],
    ["accounts", "list", "--env-file", settingsFile, "--json"],
  ])
    expect((await run(args, { environment: NO_VARIABLES })).json.accounts).toMatchObject([{ name: "anna" }]);
});

describe("serve", () => {
  const settings = { DATA_DIR: join(folder, "served"), PORT: "1", HOST: "192.0.2.1" };

  test("--host and --port override the settings", async () => {
    const { status, err } = await run(["serve", "--host", "127.0.0.1", "--port", "0"], { settings });
    expect(status).toBe(0);
    expect(err).toMatch(/"message":"listening","url":"http:\/\/127\.0\.0\.1:\d+"/);
  });

  test.each(["x", "-1", "65536", "1.5", ""])("--port=%s is refused", async (port) => {
    const { status, err } = await run(["serve", `--port=${port}`], { settings });
    expect({ status, err }).toEqual({ status: 2, err: `postwarden: --port: "${port}" is not a port from 0 to 65535.` });
  });

  test("is not started by root in the data directory of another user", () => {
    const config = { dataDir: join(folder, "data") } as Parameters<typeof refuseForeignRoot>[0];
    chownIfRoot(config.dataDir);
    const { uid } = statSync(config.dataDir);
    if (uid === 0) expect(() => refuseForeignRoot(config, 0)).not.toThrow();
    else expect(() => refuseForeignRoot(config, 0)).toThrow(/Run: sudo -u .+ postwarden serve/);
    expect(() => refuseForeignRoot(config, 12_345)).not.toThrow();
  });
});

const chownIfRoot = (path: string): void => {
  if (ownUserId() === 0) chownSync(path, 12_345, 12_345);
};

test.skipIf(ownUserId() !== 0)("what root creates in the data directory of a user belongs to that user", async () => {
  const path = join(folder, "foreign");
  mkdirSync(path, { mode: 0o700 });
  chownIfRoot(path);
  const settings = { DATA_DIR: path };
  // What is beside an open database stays, as after a crash.
  const left: Sqlite[] = [];
  const close = spyOn(Sqlite.prototype, "close").mockImplementation(function leave(this: Sqlite) {
    left.push(this);
  });
  for (const args of [["migrate"], ["accounts", "create", "anna"], ["suppress", "add", "a@example.com"]])
    expect(await run(args, { settings })).toMatchObject({ status: 0, err: "" });
  expect((await run(["serve"], { settings })).err).toContain("sudo -u");
  close.mockRestore();
  const names = readdirSync(path);
  expect(names).toEqual(expect.arrayContaining(["postwarden.db", "postwarden.db-shm", "postwarden.db-wal"]));
  expect(names.map((name) => `${name} ${statSync(join(path, name)).uid}`)).toEqual(
    names.map((name) => `${name} 12345`),
  );
  for (const sqlite of left) sqlite.close();
});

test.each([
  [["acounts"], "(Did you mean accounts?)"],
  [["accounts", "lst"], "(Did you mean list?)"],
  [["keys", "list", "--acount", "x"], "(Did you mean --account?)"],
])("%j names the nearest", async (args, said) => {
  const { status, err } = await run(args);
  expect(status).toBe(2);
  expect(err).toContain(said);
  expect(JSON.parse((await run([...args, "--json"])).err).message).toContain(said);
});
