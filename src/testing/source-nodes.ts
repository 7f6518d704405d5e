import { Glob } from "bun";
import { parseSync } from "oxc-parser";
import { z } from "zod";

export const nodeSchema = z.looseObject({ type: z.string(), start: z.number(), end: z.number() });
export type AstNode = z.output<typeof nodeSchema>;

export const nameSchema = z.object({ name: z.string() });

/** By hand: there are a million of them. */
const isNode = (value: object): value is AstNode =>
  "type" in value && typeof value.type === "string" && "start" in value && typeof value.start === "number";

const addNodesIn = (value: unknown, nodes: AstNode[]): void => {
  if (typeof value !== "object" || value === null) return;
  if (!Array.isArray(value)) {
    if (!isNode(value)) return;
    nodes.push(value);
  }
  for (const child of Object.values(value)) addNodesIn(child, nodes);
};

const nodesIn = (value: unknown): AstNode[] => {
  const nodes: AstNode[] = [];
  addNodesIn(value, nodes);
  return nodes;
};

/** The nodes of the sources that several tests read, until memory is needed. */
const known = new Map<string, WeakRef<readonly AstNode[]>>();

/** All nodes of a file, parents first. */
export const nodesOf = (path: string, text: string): readonly AstNode[] => {
  const found = known.get(text)?.deref() ?? nodesIn(parseSync(path, text).program.body);
  known.set(text, new WeakRef(found));
  return found;
};

/** Path and text of every file of the source, without tests. */
export const readSources = async (): Promise<Array<readonly [string, string]>> => {
  const folder = new URL("..", import.meta.url).pathname;
  const paths = [...new Glob("**/*.{ts,tsx}").scanSync(folder)]
    .filter((path) => !/\.(test|d)\.tsx?$/.test(path))
    .toSorted();
  return Promise.all(paths.map(async (path) => [path, await Bun.file(folder + path).text()] as const));
};
