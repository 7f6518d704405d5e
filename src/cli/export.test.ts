import { beforeAll, expect, test } from "bun:test";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { createCommandLine } from "../testing/command-line.ts";
import { unzipped } from "../testing/zip.ts";

const { dataDir, run } = createCommandLine();
const fileOf = (name: string): string => join(dataDir, "..", name);

beforeAll(async () => {
  await run(["accounts", "create", "acme"]);
  await run(["accounts", "create", "other"]);
  await run(["users", "add", "ada@example.com", "--account", "acme"]);
});

test("an account is an archive that only its owner can read, and the audit log has it without the address", async () => {
  const file = fileOf("acme.zip");
  const { status, json } = await run(["export", "--account", "acme", "--out", file, "--json"]);
  expect([status, json]).toEqual([0, { file, bytes: statSync(file).size }]);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  const files = await unzipped(readFileSync(file));
  expect(JSON.parse(files.get("accounts.json") ?? "[]")).toMatchObject([{ name: "acme" }]);
  expect(JSON.parse(files.get("users.json") ?? "[]")).toMatchObject([{ email: "ada@example.com" }]);
  expect(files.get("users.json")).not.toContain("password_hash");
  expect((await run(["audit"])).out).toMatch(/ACTION +export\nSUBJECT +\S+\nCHANGE +of account\n/);
});

test("an address is exported from all accounts, or from one", async () => {
  for (const [name, account] of [
    ["all.zip", []],
    ["one.zip", ["--account", "acme"]],
  ] as const) {
    await run(["export", "--address", "ADA@example.com", "--out", fileOf(name), ...account]);
    expect([...(await unzipped(readFileSync(fileOf(name)))).keys()]).toEqual(["about.txt", "users.json"]);
  }
  await run(["export", "--address", "ada@example.com", "--account", "other", "--out", fileOf("none.zip")]);
  expect([...(await unzipped(readFileSync(fileOf("none.zip")))).keys()]).toEqual(["about.txt"]);
  expect(JSON.stringify((await run(["audit", "--json"])).json)).not.toContain("example.com");
});

test("an address as the argument is the same; once it is erased, nothing is found of it", async () => {
  const namesIn = async (name: string) => {
    await run(["export", "Carl@example.com", "--out", fileOf(name)]);
    return [...(await unzipped(readFileSync(fileOf(name)))).keys()];
  };
  await run(["suppress", "add", "carl@example.com"]);
  await run(["users", "add", "carl@example.com", "--account", "other"]);
  expect(await namesIn("carl.zip")).toEqual(["about.txt", "users.json", "suppressions.json"]);
  await run(["users", "remove", "carl@example.com"]);
  await run(["erase", "carl@example.com", "--yes", "--drop-suppression"]);
  expect(await namesIn("gone.zip")).toEqual(["about.txt"]);
});

test.each([
  [["a@example.com", "--address", "b@example.com", "--out", "x.zip"], 2, "Name the address once"],
  [["nobody", "--out", "x.zip"], 2, "is not an address"],
  [["--address", "nobody", "--out", "x.zip"], 2, "is not an address"],
  [["--out", "x.zip"], 2, "There are several accounts"],
  [["--account", "none", "--out", "x.zip"], 1, "none"],
  [["--account", "acme"], 2, "--out"],
  [["--account", "acme", "--out", "-"], 2, "is not for a terminal"],
  [["--account", "acme", "--out", "/nowhere/x.zip"], 1, "no such file"],
  [["--account", "acme", "--out", join(dataDir, "postwarden.db")], 1, "exists already"],
])("export %j is refused", async (args, status, said) => {
  const ended = await run(["export", ...args]);
  expect([ended.status, ended.err]).toEqual([status, expect.stringContaining(said)]);
});
