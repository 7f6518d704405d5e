import { describe, expect, test } from "bun:test";
import { readConfig } from "../config.ts";
import { GUIDES } from "./guides.ts";

const readme = await Bun.file(new URL("../../../README.md", import.meta.url).pathname).text();
const texts = [["README", readme] as const, ...GUIDES.map(({ slug, text }) => [slug, text] as const)];

/** The blocks of a language, each with the text that it is in. `npm run smoke` runs those of the shell. */
const blocksOf = (language: string) =>
  texts.flatMap(([name, text]) =>
    [...text.matchAll(new RegExp(`^( *)\`\`\`${language}\\n(.*?)^\\1\`\`\``, "gms"))].map(
      ([, , block = ""]) => [name, block] as const,
    ),
  );

test.each(blocksOf("json"))("the JSON of %s is valid", (_, block) => {
  expect(JSON.parse(block)).toBeObject();
});

test.each(blocksOf("env").flatMap(([name, block]) => block.split("\n\n").map((part) => [name, part] as const)))(
  "the settings of %s are valid",
  (_, block) => {
    const lines = block.split("\n").flatMap((line) => (/^\w+=/.test(line.trim()) ? [line.trim()] : []));
    expect(lines).not.toBeEmpty();
    const settings = lines.map(
      (line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)] as const,
    );
    const unquoted = settings.map(([name, value]) => [name, value.replace(/^'(.*)'$/, "$1").replace(/ +#.*$/, "")]);
    expect(readConfig(Object.fromEntries(unquoted))).toMatchObject({ ok: true });
  },
);

describe("a guide", () => {
  test.each(texts)("%s has at most 250 lines", (_, text) => {
    expect(text.split("\n").length).toBeLessThanOrEqual(251);
  });

  test("the README is one page", () => {
    expect(readme.split("\n").length).toBeLessThanOrEqual(150);
  });
});

/** The groups of `npm run bench`, and the part of `npm run chaos` that measures. */
const benchGroups = async (): Promise<readonly string[]> => {
  const source = await Bun.file(new URL("../../../scripts/bench.ts", import.meta.url).pathname).text();
  const table = /^const GROUPS\b.*?= \{\n(.*?)\n\};/ms.exec(source)?.[1] ?? "";
  return [...table.matchAll(/^ {2}"?([a-z-]+)"?:/gm)].map(([, name = ""]) => name);
};

/** Rates, and what one thing takes or needs. */
const FIGURE =
  /\d[\d,.]*[^.|;]{0,40} per second|times as (fast|many|long)|\d ?ms each|\d [kMG]B (each|idle|of memory|for)|\b\d[\d,]* ms \(/;

test("every measured figure of the README and the guides names the measurement that made it, and only ones that exist", async () => {
  const groups = await benchGroups();
  expect(groups.length).toBeGreaterThan(15);
  for (const [name, text] of texts) {
    const parts = text.replaceAll(/^( *)```.*?^\1```/gms, "").split(/\n\n|\n(?=\| |- |\d+\. )/);
    const named = (part: string) =>
      [...groups, "soak"].some((group) => new RegExp(`\`${group}\`|--only ${group}\\b`).test(part));
    expect([name, parts.filter((part) => FIGURE.test(part) && !named(part))]).toEqual([name, []]);
    for (const [, group = ""] of text.matchAll(/npm run bench -- --only ([a-z][a-z-]*)/g))
      expect([name, groups.includes(group), group]).toEqual([name, true, group]);
  }
  // The table of the README names a group in each row.
  const table = /^\| \| \|\n.*\n((?:\|.*\n)+)/m.exec(readme)?.[1]?.trim().split("\n") ?? [];
  expect(table).not.toBeEmpty();
  for (const row of table) expect(row).toMatch(new RegExp(`\\(\`(${groups.join("|")})\`\\)`));
});
