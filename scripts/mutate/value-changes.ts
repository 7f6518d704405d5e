import { z } from "zod";

const nodeSchema = z.looseObject({ type: z.string(), start: z.number(), end: z.number() });

/** A node of the syntax tree. */
export type AstNode = z.output<typeof nodeSchema>;

export const isNode = (value: unknown): value is AstNode => nodeSchema.safeParse(value).success;

/** What a node allows to be changed: where, and what instead. */
export interface Change {
  readonly at: AstNode;
  readonly replacement: string;
  readonly description: string;
}

const CONSTANT = /^[A-Z][A-Z0-9_]*$/;
const CONDITIONS = new Set(["and", "or"]);
const COLLECTIONS = new Set(["Set", "Map"]);
/** What opening a file with another flag means: `wx` refuses one that exists. */
const OPEN_FLAGS: Readonly<Record<string, string>> = { wx: "w", ax: "a" };
const FACTOR = 10;
/** The portions in which long work is done: their size changes how long one portion takes, not what comes out. */
const PORTION = /^(STEP|[A-Z_]+_PER_STEP|[A-Z_]+_AT_ONCE)$/;
/** Below it is how many things run at the same time, or how many rows a page shows. */
const PORTION_MIN = 100;

const nodesOf = (value: unknown): readonly AstNode[] => (Array.isArray(value) ? value.filter(isNode) : []);

const source = ({ start, end }: AstNode, text: string): string => text.slice(start, end);

const nameOf = (node: unknown): string => (isNode(node) && typeof node.name === "string" ? node.name : "");

/** A list without one of its members, for each of them. */
const without = (list: AstNode, members: readonly AstNode[], text: string, what: string): readonly Change[] =>
  members.map((member) => {
    const others = members.filter((one) => one !== member).map((one) => source(one, text));
    const first = members[0] ?? member;
    const last = members.at(-1) ?? member;
    const at = { ...list, start: first.start, end: last.end };
    return { at, replacement: others.join(", "), description: `${what} dropped: ${source(member, text).slice(0, 40)}` };
  });

/** The first number of a named constant: ten times as much, or 1 instead of 0. */
const constantChanges = ({ id, init }: AstNode, text: string): readonly Change[] => {
  if (!CONSTANT.test(nameOf(id)) || !isNode(init)) return [];
  const firstNumber = (node: AstNode): AstNode | null => {
    if (node.type === "Literal" && typeof node.value === "number") return node;
    return node.type === "BinaryExpression" && isNode(node.left) ? firstNumber(node.left) : null;
  };
  const number = firstNumber(init);
  if (number === null || source(number, text).startsWith("0o")) return [];
  if (PORTION.test(nameOf(id)) && Number(number.value) >= PORTION_MIN) return [];
  const replacement = number.value === 0 ? "1" : String(Number(number.value) * FACTOR);
  return [{ at: number, replacement, description: `${nameOf(id)}: ${source(number, text)} → ${replacement}` }];
};

/** A condition of and() or or(), a whole WHERE, the members of a set, and arguments dropped or swapped. */
const callChanges = (node: AstNode, text: string): readonly Change[] => {
  const given = nodesOf(node.arguments);
  const [first, second] = given;
  if (first === undefined || !isNode(node.callee)) return [];
  if (node.type === "NewExpression") {
    if (!COLLECTIONS.has(nameOf(node.callee)) || first.type !== "ArrayExpression") return [];
    return without(first, nodesOf(first.elements), text, "member");
  }
  if (CONDITIONS.has(nameOf(node.callee)) && given.length > 1) return without(node, given, text, "condition");
  if (node.callee.type === "MemberExpression" && nameOf(node.callee.property) === "where")
    return [{ at: first, replacement: "undefined", description: "WHERE dropped" }];
  if (second === undefined || first.type !== "Identifier" || second.type !== "Identifier") return [];
  const last = given.at(-1) ?? second;
  const beforeLast = given.at(-2) ?? first;
  const dropped = { ...node, start: beforeLast.end, end: last.end };
  const drop = { at: dropped, replacement: "", description: "last argument dropped" };
  const swapped = { ...node, start: first.start, end: second.end };
  const replacement = `${nameOf(second)}, ${nameOf(first)}`;
  return [
    ...(nameOf(first) === nameOf(second) ? [] : [{ at: swapped, replacement, description: "arguments swapped" }]),
    ...(PORTION.test(nameOf(last)) ? [] : [drop]),
  ];
};

/** The members of a named list, such as the values of a column or the states in which something is allowed. */
const listChanges = ({ id, init }: AstNode, text: string): readonly Change[] => {
  if (!CONSTANT.test(nameOf(id)) || !isNode(init)) return [];
  const list = init.type === "TSAsExpression" && isNode(init.expression) ? init.expression : init;
  if (list.type !== "ArrayExpression") return [];
  const members = nodesOf(list.elements);
  return members.every(({ type }) => type === "Literal") ? without(list, members, text, "member") : [];
};

/** The value of a header: a property whose name has a hyphen. */
const headerChanges = ({ key, value }: AstNode, text: string): readonly Change[] => {
  const isHeader = isNode(key) && typeof key.value === "string" && /^[a-z]+(-[a-z]+)+$/i.test(key.value);
  if (!isHeader || !isNode(value) || !(typeof value.value === "string" || value.type === "TemplateLiteral")) return [];
  return [{ at: value, replacement: '""', description: `header ${source(key, text)} emptied` }];
};

/** Permissions for everybody, and files that may exist already. */
const literalChanges = (node: AstNode, text: string): readonly Change[] => {
  if (/^0o[0-7]{3}$/.test(source(node, text)) && source(node, text) !== "0o777")
    return [{ at: node, replacement: "0o777", description: `${source(node, text)} → 0o777` }];
  const flag = typeof node.value === "string" ? OPEN_FLAGS[node.value] : undefined;
  return flag === undefined
    ? []
    : [{ at: node, replacement: `"${flag}"`, description: `flag ${node.value} → ${flag}` }];
};

/** The changes of values that a node allows: constants, conditions of a WHERE, members, arguments, headers, file modes. */
export const valueChangesOf = (node: AstNode, text: string): readonly Change[] => {
  switch (node.type) {
    case "VariableDeclarator":
      return [...constantChanges(node, text), ...listChanges(node, text)];
    case "CallExpression":
    case "NewExpression":
      return callChanges(node, text);
    case "Property":
      return headerChanges(node, text);
    case "Literal":
      return literalChanges(node, text);
    default:
      return [];
  }
};
