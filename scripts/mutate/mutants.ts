import { type AstNode, type Change, isNode, valueChangesOf } from "./value-changes.ts";
import { parseSync } from "oxc-parser";

/** One change to one file that a test should notice. */
export interface Mutant {
  readonly start: number;
  readonly end: number;
  /** 1-based. */
  readonly line: number;
  readonly original: string;
  readonly replacement: string;
  readonly description: string;
}

const OPERATORS: Readonly<Record<string, string>> = {
  "<": "<=",
  "<=": "<",
  ">": ">=",
  ">=": ">",
  "===": "!==",
  "!==": "===",
  "&&": "||",
  "||": "&&",
};

const EXITS = new Set(["ReturnStatement", "ThrowStatement", "ContinueStatement", "BreakStatement"]);

/** `if (…) return …;` and the like: a guard clause. */
const isGuard = ({ consequent, alternate }: AstNode): boolean => {
  if (!isNode(consequent) || isNode(alternate)) return false;
  const { type, body } = consequent;
  const last: unknown = type === "BlockStatement" && Array.isArray(body) ? body.at(-1) : consequent;
  return isNode(last) && EXITS.has(last.type);
};

/** The change of control that a node allows. */
const changeOf = (node: AstNode, text: string): Change | null => {
  const { type, operator, left, right, test, value } = node;
  if (type === "IfStatement" && isNode(test))
    return { at: test, replacement: "false", description: isGuard(node) ? "guard removed" : "condition false" };
  if (type === "ConditionalExpression" && isNode(test))
    return { at: test, replacement: "false", description: "condition false" };
  if ((type === "BinaryExpression" || type === "LogicalExpression") && typeof operator === "string") {
    const other = OPERATORS[operator];
    if (other === undefined || !isNode(left) || !isNode(right)) return null;
    const replacement = `${text.slice(left.start, left.end)} ${other} ${text.slice(right.start, right.end)}`;
    return { at: node, replacement, description: `${operator} → ${other}` };
  }
  if (type === "Literal" && typeof value === "boolean")
    return { at: node, replacement: String(!value), description: `${value} → ${!value}` };
  if (type === "ExpressionStatement" && isNode(node.expression) && node.expression.type === "CallExpression")
    return { at: node, replacement: ";", description: "call removed" };
  return null;
};

/** Not mutated: types, and texts that only people read. */
const SKIPPED = new Set(["ImportDeclaration", "TSTypeAliasDeclaration", "TSInterfaceDeclaration", "TSTypeAnnotation"]);

/**
 * `for (let at = 0; at < length; at += STEP)`: what such a loop does with slices of a list or of bytes, it would do once more with an
 * empty slice, so that `<=` is equivalent.
 */
const isSliceLoop = ({ type, update }: AstNode): boolean =>
  type === "ForStatement" &&
  isNode(update) &&
  update.operator === "+=" &&
  isNode(update.right) &&
  /^[A-Z][A-Z_]+$/.test(String(update.right.name));

/** All mutants of a source file, in the order of the text. */
export const mutantsOf = (path: string, text: string): Mutant[] => {
  const { program, errors } = parseSync(path, text);
  if (errors.length > 0) throw new Error(`${path}: ${errors[0]?.message}`);
  const mutants: Mutant[] = [];
  const equivalent = new Set<unknown>();
  const visit = (value: unknown): void => {
    if (Array.isArray(value)) {
      for (const item of value) visit(item);
      return;
    }
    if (!isNode(value) || SKIPPED.has(value.type)) return;
    if (isSliceLoop(value)) equivalent.add(value.test);
    const change = equivalent.has(value) ? null : changeOf(value, text);
    const changes = [...(change === null ? [] : [change]), ...valueChangesOf(value, text)];
    for (const { at, replacement, description } of changes) {
      const line = text.slice(0, at.start).split("\n").length;
      const original = text.slice(at.start, at.end);
      mutants.push({ start: at.start, end: at.end, line, original, replacement, description });
    }
    for (const child of Object.values(value)) if (typeof child === "object") visit(child);
  };
  visit(program.body);
  return mutants;
};
