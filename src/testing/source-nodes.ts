import { Glob } from "bun";
import { parseSync } from "oxc-parser";
import { z } from "zod";

export const nodeSchema = z.looseObject({ type: z.string(), start: z.number(), end: z.number() });
export type AstNode = z.output<typeof nodeSchema>;

export const nameSchema = z.object({ name: z.string() });

const nodesIn = (value: unknown): AstNode[] => {
  if (Array.isArray(value)) return value.flatMap(nodesIn);
  const node = nodeSchema.safeParse(value);
  if (!node.success) return [];
  return [node.data, ...Object.values(node.data).flatMap((child) => (typeof child === "object" ? nodesIn(child) : []))];
};

/** All nodes of a file, parents first. */
export const nodesOf = (path: string, text: string): AstNode[] => nodesIn(parseSync(path, text).program.body);

/** Path and text of every file of the source, without tests. */
export const readSources = async (): Promise<Array<readonly [string, string]>> => {
  const folder = new URL("..", import.meta.url).pathname;
  const paths = [...new Glob("**/*.{ts,tsx}").scanSync(folder)]
    .filter((path) => !/\.(test|d)\.tsx?$/.test(path))
    .toSorted();
  return Promise.all(paths.map(async (path) => [path, await Bun.file(folder + path).text()] as const));
};
