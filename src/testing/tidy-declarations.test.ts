import { describe, expect, test } from "bun:test";
import { nameSchema, nodeSchema, nodesOf, readSources } from "./source-nodes.ts";

const FUNCTION_LINES_MAX = 60;
const FUNCTIONS = new Set(["FunctionDeclaration", "FunctionExpression", "ArrowFunctionExpression"]);

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

/** Folders that are not free of spreads of literals yet. */
const SPREADING = /^(?:cli|doctor|foundation|service|testing)\//;
const LITERALS: Readonly<Record<string, string>> = { ObjectExpression: "properties", ArrayExpression: "elements" };

/** Literals that are spread into another one of their kind, as `file:line`: their members can stand there themselves. */
const spreadLiterals = (path: string, text: string): string[] =>
  nodesOf(path, text).flatMap((node) => {
    const members = node[LITERALS[node.type] ?? ""];
    return (Array.isArray(members) ? members : []).flatMap((member) => {
      const spread = nodeSchema.safeParse(member).data;
      const of = spread?.type === "SpreadElement" ? nodeSchema.safeParse(spread.argument).data : undefined;
      if (of?.type !== node.type) return [];
      return [`${path}:${text.slice(0, of.start).split("\n").length}`];
    });
  });

describe("the source", () => {
  test(`has no function of more than ${FUNCTION_LINES_MAX} lines`, async () => {
    const sources = await readSources();
    expect(sources.length).toBeGreaterThan(100);
    expect(sources.flatMap(([path, text]) => longFunctions(path, text))).toEqual([]);
  });

  test("spreads no literal", async () => {
    const sources = (await readSources()).filter(([path]) => !SPREADING.test(path));
    expect(sources.flatMap(([path, text]) => spreadLiterals(path, text))).toEqual([]);
  });

  test("exports every name from one file only", async () => {
    expect(repeatedNames(await readSources())).toEqual([]);
  });
});

describe("the checks can fail", () => {
  test.each([
    ["const x = { ...{ a, b }, c };", ["a.ts:1"]],
    ["const x = [\n  ...[1, 2],\n  3,\n];", ["a.ts:2"]],
    ["const x = { ...rest, ...(is ? { a } : {}), ...[1, 2] };", []],
  ])("spreads of literals in %j", (text, found) => {
    expect(spreadLiterals("a.ts", text)).toEqual(found);
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
