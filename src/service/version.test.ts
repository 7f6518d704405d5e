import { afterAll, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { Glob } from "bun";
import { checkedOutCommit, VERSION } from "./version.ts";

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

test("the version is that of package-lock.json, of the newest release notes and of the package in the README and the guides", async () => {
  const text = (path: string) => Bun.file(new URL(`../../${path}`, import.meta.url).pathname).text();
  const { version, packages } = JSON.parse(await text("package-lock.json"));
  expect([version, packages[""].version]).toEqual([VERSION, VERSION]);
  expect(/^## (.+)$/m.exec(await text("src/service/docs/manual/release-notes.md"))?.[1]).toBe(VERSION);
  const guides = [...new Glob("src/service/docs/manual/*.md").scanSync(new URL("../..", import.meta.url).pathname)];
  const texts = await Promise.all(["README.md", ...guides].map(text));
  const packaged = texts.flatMap((one) => [...one.matchAll(/postwarden_([\d.]+)-1_/g)].map(([, named = ""]) => named));
  expect(new Set(packaged)).toEqual(new Set([VERSION]));
});
