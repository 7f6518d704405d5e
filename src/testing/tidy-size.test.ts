import { describe, expect, test } from "bun:test";
import { Glob } from "bun";
import { parseSync } from "oxc-parser";

/**
 * Tokens of production code by folder. A change may raise a number only here, in its own diff: the best change lowers one.
 * Comments are free, a text counts as one.
 */
const TOKENS_MAX: Readonly<Record<string, number>> = {
  accounts: 26_022,
  blocklist: 61_874,
  bulk: 53_638,
  cli: 58_395,
  dashboard: 168_438,
  dmarc: 223_323,
  doctor: 14_099,
  foundation: 108_480,
  "main.ts": 133,
  notifications: 35_099,
  service: 52_977,
  verify: 78_128,
};
const FILES_MAX = 782;

/** A file with one reader and fewer lines belongs into its reader. */
const SMALL_LINES = 40;
/** Why a small file with one reader stays a file. */
const SMALL_FILES: Readonly<Record<string, string>> = {
  "blocklist/lists/embedded-catalogue.ts": "a macro is imported from another file than its own",
  "cli/worker.ts": "main.ts may import nothing of service",
  "dashboard/help.ts": "a table that the test of the manual reads, too",
  "dmarc/operations.ts": "a door",
  "verify/bounces/formats/sendgrid.ts": "one file for each format",
  "foundation/http/security-headers.ts": "one place for what every response has",
};

interface Source {
  /** Relative to `src`. */
  readonly path: string;
  readonly text: string;
}

const root = new URL("..", import.meta.url).pathname;
const isProduction = (path: string): boolean => !/\.test\.tsx?$|\.d\.ts$|^testing\//.test(path);

const readSources = async (): Promise<readonly Source[]> => {
  const paths = [...new Glob("**/*.{ts,tsx}").scanSync(root)].filter(isProduction);
  return Promise.all(paths.map(async (path) => ({ path, text: await Bun.file(root + path).text() })));
};

type Node = Readonly<Record<string, unknown>> & {
  readonly type: string;
  readonly start: number;
  readonly end: number;
};

const isNode = (value: unknown): value is Node =>
  typeof value === "object" && value !== null && "type" in value && typeof value.type === "string";

/** Places of a file that are not code: `tokens` is what each counts as. */
interface Span {
  readonly start: number;
  readonly end: number;
  readonly tokens: number;
}

const textsIn = (value: unknown): Span[] => {
  if (Array.isArray(value)) return value.flatMap(textsIn);
  if (!isNode(value)) return [];
  const { type, start, end } = value;
  if (type === "TemplateLiteral" || (type === "Literal" && (typeof value.value === "string" || "regex" in value)))
    return [{ start, end, tokens: 1 }];
  if (type === "JSXText") return [{ start, end, tokens: String(value.value).trim() === "" ? 0 : 1 }];
  return Object.values(value).flatMap(textsIn);
};

const TOKEN = /[\p{L}\p{N}_$#.]+|=>|[=!]==?|[<>]=|&&|\|\||\?\?=?|\?\.|\+\+|--|[-+*/%]=|\*\*|\S/gu;
const tokensIn = (code: string): number => code.match(TOKEN)?.length ?? 0;

/** The number of tokens of a file: names with their members are one, a text is one, comments do not count. */
const countTokens = ({ path, text }: Source): number => {
  const { program, comments } = parseSync(path, text);
  const free = comments.map(({ start, end }) => ({ start, end, tokens: 0 }));
  const spans = [...free, ...textsIn(program)].toSorted((a, b) => a.start - b.start);
  let [at, count] = [0, 0];
  for (const { start, end, tokens } of spans) {
    if (start < at) continue;
    count += tokensIn(text.slice(at, start)) + tokens;
    at = end;
  }
  return count + tokensIn(text.slice(at));
};

const importsOf = ({ path, text }: Source): readonly string[] =>
  [...text.matchAll(/(?:from|import\()\s*"(\.{1,2}\/[^"]+)"/g)].map(([, specifier = ""]) =>
    new URL(specifier, `file:///${path}`).pathname.slice(1),
  );

/** Small files with one reader. */
const leaves = (sources: readonly Source[]): readonly string[] => {
  const readers = Map.groupBy(
    sources.flatMap((source) => [...new Set(importsOf(source))].map((path) => ({ path, reader: source.path }))),
    ({ path }) => path,
  );
  return sources
    .filter(({ path, text }) => text.split("\n").length <= SMALL_LINES && readers.get(path)?.length === 1)
    .map(({ path }) => path);
};

describe("the size of the source", () => {
  test("is within the budget of each folder", async () => {
    const sources = await readSources();
    const folders = Map.groupBy(sources, ({ path }) => path.split("/", 1)[0] ?? "");
    const counted = [...folders].map(([folder, of]) => [folder, of.reduce((sum, one) => sum + countTokens(one), 0)]);
    const over = counted.filter(([folder, count]) => Number(count) > (TOKENS_MAX[String(folder)] ?? 0));
    expect(Object.fromEntries(over)).toEqual({});
  });

  test(`is at most ${FILES_MAX} files`, async () => {
    expect((await readSources()).length).toBeLessThanOrEqual(FILES_MAX);
  });

  test("has no small file with one reader, unless a reason is given", async () => {
    const small = leaves(await readSources());
    expect(small.filter((path) => SMALL_FILES[path] === undefined)).toEqual([]);
    expect(Object.keys(SMALL_FILES).filter((path) => !small.includes(path))).toEqual([]);
  });
});

describe("the checks can fail", () => {
  test.each([
    ["const a = 1;", 5],
    ["/** free */ const a = b.c.d; // free", 5],
    ["const a = `one \u0024{b + c} text`;", 5],
    ["const a = 'x' + /[a-z]+/u;", 7],
    ["const a = <p>\n  some words\n</p>;", 12],
  ])("%j has %d tokens", (text, tokens) => {
    expect(countTokens({ path: "a.tsx", text })).toBe(tokens);
  });

  test("for a small file with one reader, not for one with two or a long one", () => {
    const reader = (path: string, specifier: string) => ({
      path,
      text: `import { x } from "${specifier}";${"\n".repeat(50)}`,
    });
    const small = { path: "a/small.ts", text: "export const x = 1;\n" };
    expect(leaves([small, reader("a/one.ts", "./small.ts")])).toEqual(["a/small.ts"]);
    expect(leaves([small, reader("a/one.ts", "./small.ts"), reader("b/two.ts", "../a/small.ts")])).toEqual([]);
    expect(leaves([{ ...small, text: "\n".repeat(41) }, reader("a/one.ts", "./small.ts")])).toEqual([]);
  });
});
