import { afterEach, beforeEach, expect, test } from "bun:test";
import { closeSync, mkdirSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { publishPartial, syncFile, syncNames } from "./partial-file.ts";

let folder = "";
const at = (name: string) => join(folder, name);

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "postwarden-partial-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

test("syncing a file leaves no descriptor open", () => {
  writeFileSync(at("a"), "");
  const nextDescriptor = () => {
    const descriptor = openSync(at("a"), "r");
    closeSync(descriptor);
    return descriptor;
  };
  const before = nextDescriptor();
  for (let time = 0; time < 100; time++) syncFile(at("a"));
  expect(nextDescriptor()).toBeLessThan(before + 50);
});

test("syncing the names of a directory that is not there throws", () => {
  expect(() => syncNames(at("none/a"))).toThrow("ENOENT");
});

test("a complete file gets its name, and replaces no other", () => {
  for (const name of ["a.partial", "taken"]) writeFileSync(at(name), name);
  expect([publishPartial(at("a.partial"), at("a")), publishPartial(at("a.partial"), at("taken"))]).toEqual([
    true,
    false,
  ]);
  expect(["a", "taken"].map((name) => readFileSync(at(name), "utf8"))).toEqual(["a.partial", "taken"]);
});

test("what cannot have a second name, as no file on FAT can, is renamed", () => {
  // The kernel refuses hard links of directories with the same error.
  mkdirSync(at("a.partial"));
  expect(publishPartial(at("a.partial"), at("a"))).toBe(true);
  expect(readdirSync(folder)).toEqual(["a"]);
});

test("a file that is not there, or a directory that is not there, throws", () => {
  expect(() => publishPartial(at("none"), at("a"))).toThrow("ENOENT");
  writeFileSync(at("a.partial"), "");
  expect(() => publishPartial(at("a.partial"), at("none/a"))).toThrow("ENOENT");
});
