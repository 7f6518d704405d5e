/** Makes every function of `src` say, at its first call while a flow is recorded, that its file takes part. Loaded before the flows. */
import { plugin } from "bun";
import { readFileSync } from "node:fs";
import { parseSync } from "oxc-parser";

const root = new URL("../../src/", import.meta.url).pathname;
const files = new Set<string>();
let isRecording = false;

/** Called by every function of `src` with the file that it is in. */
Object.assign(globalThis, {
  tookPart(file: string): void {
    if (isRecording) files.add(file);
  },
});

/** The production files whose functions run during `work`, in the order of their first call. */
export const filesOf = async (work: () => Promise<void>): Promise<readonly string[]> => {
  files.clear();
  isRecording = true;
  await work().finally(() => {
    isRecording = false;
  });
  return [...files].filter((file) => !file.startsWith("testing/"));
};

interface Insertion {
  readonly at: number;
  readonly text: string;
}

type Node = Readonly<Record<string, unknown>> & { readonly type: string; readonly start: number; readonly end: number };

const isNode = (value: unknown): value is Node =>
  typeof value === "object" && value !== null && "type" in value && typeof value.type === "string";

const FUNCTIONS = /^(?:FunctionDeclaration|FunctionExpression|ArrowFunctionExpression)$/;

/** A constructor says it after `super()`, so it is left out: its class has methods. */
const insertionsIn = (value: unknown, call: string, isConstructor = false): Insertion[] => {
  if (Array.isArray(value)) return value.flatMap((one) => insertionsIn(one, call));
  if (!isNode(value)) return [];
  const { type, body } = value;
  const inner = Object.values(value).flatMap((child) =>
    insertionsIn(child, call, type === "MethodDefinition" && value.kind === "constructor"),
  );
  if (!FUNCTIONS.test(type) || isConstructor || !isNode(body)) return inner;
  return body.type === "BlockStatement"
    ? [...inner, { at: body.start + 1, text: `${call};` }]
    : [...inner, { at: body.start, text: `(${call}, ` }, { at: body.end, text: ")" }];
};

/** The source with a call in each function; `(a, b)` around the body of an arrow function keeps its value. */
const instrument = (path: string, text: string): string => {
  const file = JSON.stringify(path.slice(root.length));
  const { program } = parseSync(path, text);
  const insertions = insertionsIn(program, `globalThis.tookPart(${file})`).toSorted((a, b) => b.at - a.at);
  return insertions.reduce((source, { at, text: added }) => source.slice(0, at) + added + source.slice(at), text);
};

await plugin({
  name: "functions that say that they ran",
  setup(build) {
    build.onLoad({ filter: new RegExp(`^${RegExp.escape(root)}.*\\.tsx?$`) }, ({ path }) => ({
      contents: instrument(path, readFileSync(path, "utf8")),
      loader: path.endsWith("x") ? "tsx" : "ts",
    }));
  },
});
