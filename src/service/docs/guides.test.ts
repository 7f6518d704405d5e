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
