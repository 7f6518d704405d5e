import { afterAll, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { checkedOutCommit } from "./version.ts";

const HASH = "0123456789abcdef0123456789abcdef01234567";
const folder = mkdtempSync(join(tmpdir(), "postwarden-version-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test.each<[string, Readonly<Record<string, string>>, string | null]>([
  ["of a branch", { HEAD: "ref: refs/heads/main\n", "refs/heads/main": `${HASH}\n` }, "0123456789ab"],
  [
    "of a packed branch",
    {
      HEAD: "ref: refs/heads/a/b\n",
      "packed-refs": `# pack-refs\n${"f".repeat(40)} refs/heads/b\n${HASH} refs/heads/a/b\n`,
    },
    "0123456789ab",
  ],
  ["of no branch", { HEAD: `${HASH}\n` }, "0123456789ab"],
  ["of a branch without commits", { HEAD: "ref: refs/heads/main\n" }, null],
  ["of a folder that is no clone", {}, null],
])("the commit %s", (name, files, expected) => {
  const root = join(folder, name);
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, ".git", path)), { recursive: true });
    writeFileSync(join(root, ".git", path), text);
  }
  expect(checkedOutCommit(root)).toBe(expected);
});
