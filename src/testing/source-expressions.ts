import { Glob } from "bun";
import { parseSync } from "oxc-parser";
import { z } from "zod";

/** What is done with an expression. `exec`: also for `test`, `match` and `search`. */
export type ExpressionUse = "exec" | "replace" | "split" | "matchAll";

/** A regular expression of the source. */
export interface SourceExpression {
  /** `path:line`. */
  readonly place: string;
  readonly pattern: string;
  readonly flags: string;
  readonly use: ExpressionUse;
  /** The limit of its input that a comment on its line or above it states: `// input ≤ N characters`; null without one. */
  readonly charactersMax: number | null;
}

interface AstNode {
  readonly type: string;
  readonly start: number;
}

const isNode = (value: unknown): value is AstNode =>
  typeof value === "object" && value !== null && "type" in value && typeof value.type === "string" && "start" in value;

const regexSchema = z.object({ regex: z.object({ pattern: z.string(), flags: z.string() }) });
const nameSchema = z.object({ name: z.string() });
const callSchema = z.object({ type: z.literal("CallExpression"), callee: z.object({ property: nameSchema }) });
const CALLS = new Set(["CallExpression", "NewExpression"]);
const dynamicSchema = z.object({ callee: z.object({ name: z.literal("RegExp") }) });

/** Calls `visit` with each node and the one around it. */
const visitNodes = (
  value: unknown,
  parent: AstNode | null,
  visit: (node: AstNode, parent: AstNode | null) => void,
): void => {
  if (Array.isArray(value)) for (const item of value) visitNodes(item, parent, visit);
  if (!isNode(value)) return;
  visit(value, parent);
  for (const child of Object.values(value)) if (typeof child === "object") visitNodes(child, value, visit);
};

const USES: Readonly<Record<string, ExpressionUse>> = {
  replace: "replace",
  replaceAll: "replace",
  split: "split",
  match: "matchAll",
  matchAll: "matchAll",
};

/** An expression with a name or in a table may be used in each way; with the flag g, replacing goes on behind a match. */
const useOf = (flags: string, parent: AstNode | null): ExpressionUse => {
  const method = callSchema.safeParse(parent).data?.callee.property.name ?? "";
  const use = USES[method];
  if (use === "split") return use;
  return flags.includes("g") ? "replace" : "exec";
};

const LIMIT = /\/\/ input ≤ ([\d,]+) characters/;

/** The expressions in a file, and the places of those that are put together from texts without a stated limit. */
export const expressionsIn = (path: string, text: string) => {
  const lines = text.split("\n");
  const expressions: SourceExpression[] = [];
  const unlimited: string[] = [];
  visitNodes(parseSync(path, text).program.body, null, (node, parent) => {
    const literal = node.type === "Literal" ? regexSchema.safeParse(node).data?.regex : undefined;
    const isDynamic = CALLS.has(node.type) && dynamicSchema.safeParse(node).success;
    if (literal === undefined && !isDynamic) return;
    const line = text.slice(0, node.start).split("\n").length;
    const place = `${path}:${line}`;
    const [own = "", above = ""] = [lines[line - 1], lines[line - 2]];
    const stated = LIMIT.exec(above.trimStart().startsWith("//") ? `${above}${own}` : own)?.[1];
    const charactersMax = stated === undefined ? null : Number(stated.replaceAll(",", ""));
    if (literal !== undefined)
      expressions.push({ place, ...literal, use: useOf(literal.flags, parent), charactersMax });
    if (isDynamic && charactersMax === null) unlimited.push(place);
  });
  return { expressions, unlimited };
};

/** The expressions of the whole source except tests. */
export const expressionsOfSource = async () => {
  const folder = new URL("../", import.meta.url).pathname;
  const paths = [...new Glob("**/*.{ts,tsx,js}").scanSync(folder)]
    .filter((path) => !/\.(test|d)\.tsx?$/.test(path) && !path.startsWith("testing/"))
    .toSorted();
  const read = await Promise.all(paths.map(async (path) => expressionsIn(path, await Bun.file(folder + path).text())));
  return {
    expressions: read.flatMap(({ expressions }) => expressions),
    unlimited: read.flatMap(({ unlimited }) => unlimited),
  };
};
