import { afterEach, describe, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { rewritePasted, splitPasted } from "../arrival/drafts.ts";

const folders: string[] = [];
afterEach(async () => {
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true, force: true });
});

const rewritten = async (text: string): Promise<string> => {
  const folder = await mkdtemp(join(tmpdir(), "postwarden-pasted-"));
  folders.push(folder);
  const path = join(folder, "list.csv");
  await Bun.write(path, text);
  await rewritePasted(path);
  return Bun.file(path).text();
};

describe("a pasted text", () => {
  test.each<[string, string, string[]]>([
    ["recipients of a mail", "Ada <ada@a.example>, bob@b.example;", ["Ada <ada@a.example>", "bob@b.example"]],
    ["a comma in a name", '"Lace, Ada" <ada@a.example>, b@b.example', ['"Lace, Ada" <ada@a.example>', "b@b.example"]],
    [
      "white space between addresses",
      "a@a.example b@b.example\nc@c.example",
      ["a@a.example", "b@b.example", "c@c.example"],
    ],
    [
      "one line with several among others",
      "a@a.example\r\nb@b.example; c@c.example, none",
      ["a@a.example", "b@b.example", "c@c.example", "none"],
    ],
    ["an unclosed quote", '"a@a.example, b@b.example', ['"a@a.example', "b@b.example"]],
    ["an unclosed bracket", "<a@a.example, b@b.example", ["<a@a.example", "b@b.example"]],
  ])("with %s is split", async (_, text, entries) => {
    expect(await splitPasted(text)).toEqual(entries);
  });

  test.each<[string, string]>([
    ["one address a line", "a@a.example\nb@b.example\n"],
    ["a name beside each address", "a@a.example,Ada\nb@b.example,Bob\n"],
    ["a header", "work,home\na@a.example,b@b.example\n"],
    ["cells of a spreadsheet", "a@a.example\tb@b.example\n"],
    ["no address at all", "hello, world"],
    ["nothing", " \n "],
  ])("with %s stays as it is", async (_, text) => {
    expect(await splitPasted(text)).toBeNull();
    expect(await rewritten(text)).toBe(text);
  });

  test("of several addresses a line becomes a CSV of one column", async () => {
    expect(await rewritten('"Lace, Ada" <ada@a.example>, b@b.example')).toBe(
      '"""Lace, Ada"" <ada@a.example>"\nb@b.example\n',
    );
  });

  test("beyond the limit is not split", async () => {
    const text = "a@a.example, b@b.example\n".repeat(200_000);
    expect(await rewritten(text)).toBe(text);
  });
});
