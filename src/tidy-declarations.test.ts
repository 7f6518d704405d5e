import { describe, expect, test } from "bun:test";
import { Glob } from "bun";
import { parseSync } from "oxc-parser";
import { z } from "zod";

const FUNCTION_LINES_MAX = 60;
const FUNCTIONS = new Set(["FunctionDeclaration", "FunctionExpression", "ArrowFunctionExpression"]);

const nodeSchema = z.looseObject({ type: z.string(), start: z.number(), end: z.number() });
type AstNode = z.output<typeof nodeSchema>;

const nameSchema = z.object({ name: z.string() });

const nodesIn = (value: unknown): AstNode[] => {
  if (Array.isArray(value)) return value.flatMap(nodesIn);
  const node = nodeSchema.safeParse(value);
  if (!node.success) return [];
  return [node.data, ...Object.values(node.data).flatMap((child) => (typeof child === "object" ? nodesIn(child) : []))];
};

const nodesOf = (path: string, text: string): AstNode[] => nodesIn(parseSync(path, text).program.body);

/** Functions of more than 60 lines, as `file:line lines`. */
const longFunctions = (path: string, text: string): string[] =>
  nodesOf(path, text)
    .filter(({ type }) => FUNCTIONS.has(type))
    .map(({ start, end }) => ({
      line: text.slice(0, start).split("\n").length,
      lines: text.slice(start, end).split("\n").length,
    }))
    .filter(({ lines }) => lines > FUNCTION_LINES_MAX)
    .map(({ line, lines }) => `${path}:${line} has ${lines} lines`);

/** The names that a file declares and exports. An overload counts once. */
const exportedNames = (path: string, text: string): string[] => {
  const declarations = nodesOf(path, text)
    .filter(({ type }) => type === "ExportNamedDeclaration")
    .flatMap(({ declaration }) => nodeSchema.safeParse(declaration).data ?? []);
  const names = declarations.flatMap(({ id, declarations: variables }) =>
    Array.isArray(variables)
      ? variables.map((variable) => nameSchema.parse(variable.id).name)
      : nameSchema.parse(id).name,
  );
  return [...new Set(names)];
};

/** Names that several files export, as `name: files`. */
const repeatedNames = (sources: ReadonlyArray<readonly [path: string, text: string]>): string[] => {
  const exported = sources.flatMap(([path, text]) => exportedNames(path, text).map((name) => ({ name, path })));
  return [...Map.groupBy(exported, ({ name }) => name)]
    .filter(([, places]) => places.length > 1)
    .map(([name, places]) => `${name}: ${places.map(({ path }) => path).join(", ")}`);
};

/**
 * Files that read or write the database and plan timers, each with the reason why its timers cannot end the process. Other
 * recurring work belongs into `base/recurring.ts`: an error that is thrown inside a timer ends the process.
 */
const TIMERS_BESIDE_STORES: Readonly<Record<string, string>> = {
  "accounts/passwords.ts": "a deadline",
  "bulk/drafts.ts": "deletes a file, and catches",
  "bulk/jobs.ts": "the reset catches",
  "bulk/result-batches.ts": "the write catches and repeats",
  "bulk/runner.ts": "starts what is in memory",
  "cli/progress.ts": "prints",
  "cli/run-service.ts": "collects garbage once",
  "dmarc/ingest/ingestion-worker.ts": "catches, with growing waits",
  "usage/rate-limited-requests.ts": "the write catches and repeats",
  "verify/checks.ts": "a deadline; the write catches",
  "verify/runner.ts": "the deadline of a request; its reads are recurring work",
  "webhooks/dispatcher.ts": "the poll catches and repeats",
};

const sourceSchema = z.object({ value: z.string() });
const calleeSchema = z.object({ type: z.literal("MemberExpression"), property: nameSchema });
const STORE = /(^|[/-])store\.ts$|(^|\/)db\/[^/]+\.ts$/;

/** Whether a file imports a store or the database, and plans a timer. */
const hasTimerBesideStore = (path: string, text: string): boolean => {
  if (!text.includes(".after(")) return false;
  const nodes = nodesOf(path, text);
  const isStored = nodes.some(
    ({ type, source }) => type === "ImportDeclaration" && STORE.test(sourceSchema.safeParse(source).data?.value ?? ""),
  );
  const isTimed = nodes.some(
    ({ type, callee }) => type === "CallExpression" && calleeSchema.safeParse(callee).data?.property.name === "after",
  );
  return isStored && isTimed;
};

const readSources = async (): Promise<Array<readonly [string, string]>> => {
  const folder = new URL(".", import.meta.url).pathname;
  const paths = [...new Glob("**/*.{ts,tsx}").scanSync(folder)]
    .filter((path) => !/\.(test|d)\.tsx?$/.test(path))
    .toSorted();
  return Promise.all(paths.map(async (path) => [path, await Bun.file(folder + path).text()] as const));
};

describe("the source", () => {
  test(`has no function of more than ${FUNCTION_LINES_MAX} lines`, async () => {
    const sources = await readSources();
    expect(sources.length).toBeGreaterThan(100);
    expect(sources.flatMap(([path, text]) => longFunctions(path, text))).toEqual([]);
  });

  test("exports every name from one file only", async () => {
    expect(repeatedNames(await readSources())).toEqual([]);
  });
});

test("recurring work that uses the database runs in base/recurring.ts, which catches its errors", async () => {
  const sources = (await readSources()).filter(([path]) => !/^(base|db|testing)\//.test(path));
  const timed = sources.filter(([path, text]) => hasTimerBesideStore(path, text)).map(([path]) => path);
  expect(timed.toSorted()).toEqual(Object.keys(TIMERS_BESIDE_STORES).toSorted());
});

describe("the checks can fail", () => {
  test("a timer beside a store", () => {
    const timer = "export const f = (clock) => clock.after(9, () => g());";
    expect(hasTimerBesideStore("a.ts", `import type { JobStore } from "./job-store.ts";\n${timer}`)).toBe(true);
    expect(hasTimerBesideStore("a.ts", `import { g } from "./store.ts";\n${timer}`)).toBe(true);
    expect(hasTimerBesideStore("a.ts", `import type { Runtime } from "../db/runtime.ts";\n${timer}`)).toBe(true);
    expect(hasTimerBesideStore("a.ts", `import { g } from "./restore.ts";\n${timer}`)).toBe(false);
    expect(hasTimerBesideStore("a.ts", `import { g } from "./store.ts";\n// clock.after(9)`)).toBe(false);
  });

  const lines = (count: number) => "  work();\n".repeat(count);

  test.each([
    ["a function", `function f() {\n${lines(60)}}`],
    ["an arrow function", `export const f = () => {\n${lines(60)}};`],
    ["an async function within a function", `const f = () => {\n  const g = async () => {\n${lines(60)}  };\n};`],
    ["a method", `class A {\n  async work() {\n${lines(60)}  }\n}`],
    ["a method of an object", `const a = {\n  work() {\n${lines(60)}  },\n};`],
  ])("%s of 62 lines", (_, text) => {
    expect(longFunctions("a.ts", text)).not.toEqual([]);
  });

  test("60 lines are allowed", () => {
    expect(longFunctions("a.ts", `const f = () => {\n${lines(58)}};`)).toEqual([]);
  });

  test.each([
    ["a function", "export function take() {}"],
    ["a constant", "export const take = 1;"],
    ["a type", "export type take = string;"],
    ["an interface", "export interface take {}"],
    ["a class", "export class take {}"],
  ])("%s of a name that another file exports", (_, text) => {
    expect(
      repeatedNames([
        ["a.ts", text],
        ["b.ts", "export const take = 2;"],
      ]),
    ).toEqual(["take: a.ts, b.ts"]);
  });

  test("a name that is not exported, and overloads of one function, are allowed", () => {
    const overloads =
      "export function take(a: string): void;\nexport function take(a: number): void;\nexport function take() {}";
    expect(
      repeatedNames([
        ["a.ts", overloads],
        ["b.ts", "const take = 2;"],
      ]),
    ).toEqual([]);
  });
});
