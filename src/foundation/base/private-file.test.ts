import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createExclusively, createPrivateFile, ownUserId, userNameOf } from "./private-file.ts";

let folder = "";
const at = (name: string) => join(folder, name);

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "postwarden-private-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

test.each([
  ["createExclusively", createExclusively],
  ["createPrivateFile", createPrivateFile],
])("%s makes a file for its owner only, and refuses a file, a link and a dangling link", (_, create) => {
  create(at("new"));
  expect(statSync(at("new")).mode & 0o777).toBe(0o600);
  writeFileSync(at("mine"), "mine");
  symlinkSync(at("mine"), at("link"));
  symlinkSync(at("nothing"), at("dangling"));
  for (const name of ["mine", "link", "dangling"]) expect(() => create(at(name))).toThrow("EEXIST");
  expect(readFileSync(at("mine"), "utf8")).toBe("mine");
});

const PASSWD =
  "root:x:0:0:root:/root:/bin/bash\npostwarden:x:997:997::/var/lib/postwarden:/usr/sbin/nologin\n:x:5:5::/:\n";

test.each([
  [0, "root"],
  [997, "postwarden"],
  [5, "user ID 5"],
  [99, "user ID 99"],
  [97, "user ID 97"],
])("the user with the id %p is %s", (id, name) => {
  expect(userNameOf(id, PASSWD)).toBe(name);
});

test("the user of this process has a name or a number", () => {
  expect(userNameOf(ownUserId())).toMatch(/^\S/);
});
