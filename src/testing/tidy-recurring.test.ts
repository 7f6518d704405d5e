import { expect, test } from "bun:test";
import { z } from "zod";
import { type AstNode, nameSchema, nodeSchema, nodesOf, readSources } from "./source-nodes.ts";

/**
 * Timers that plan themselves again outside `foundation/base/recurring.ts`, each with the reason. Other recurring work belongs there: an
 * error that is thrown inside a timer is logged by nobody who knows the work, and ends it.
 */
const REASONS: Readonly<Record<string, string>> = {
  "bulk/run/attempt.ts": "counts in memory",
  "bulk/run/job-changes.ts": "waits for the database between its steps, and says so once",
  "bulk/run/job-writer.ts": "a write that is repeated until the database takes it; nothing else may be written before",
  "bulk/run/runner.ts": "starts what is in memory; a read that is repeated before a list begins",
  "cli/http-listener.ts": "opens the port again; it never throws",
  "cli/progress.ts": "prints",
  "foundation/db/group-commit.ts": "one commit, whose errors reject those that wait for it",
  "service/metrics/metrics.ts": "measures the event loop",
  "foundation/net/line-socket.ts": "the deadline of a line",
  "foundation/net/smtp-receiver-replies.ts": "the deadlines of sessions",
  "verify/smtp/outages.ts": "a probe that cannot throw: every outcome is a value",
  "verify/smtp/pool.ts": "closes idle connections",
  "verify/thread/engine-server.ts": "counts in memory, and tells it; the next order begins anew",
  "verify/thread/engine-thread.ts": "starts a thread again; it looks at times only",
  "verify/runner.ts": "a write that is repeated until the database takes it",
};

const LOOPS = /^(?:For|ForIn|ForOf|While|DoWhile)Statement$/;
const FUNCTIONS = /^(?:FunctionDeclaration|FunctionExpression|ArrowFunctionExpression)$/;

type Range = Pick<AstNode, "start" | "end">;

const contains = (outer: Range, inner: Range): boolean => outer.start <= inner.start && inner.end <= outer.end;
const nodeOf = (value: unknown): AstNode | undefined => nodeSchema.safeParse(value).data;
const nodesIn = (value: unknown): readonly AstNode[] => z.array(nodeSchema).safeParse(value).data ?? [];
const nameOf = (value: unknown): string | undefined => nameSchema.safeParse(value).data?.name;

/** The function that a name or a member of `this` stands for. */
const referenceOf = (value: unknown): string | undefined => {
  const node = nodeOf(value);
  if (node?.type === "Identifier") return nameOf(node);
  return node?.type === "MemberExpression" && nodeOf(node.object)?.type === "ThisExpression"
    ? nameOf(node.property)
    : undefined;
};

/** The named functions of a file: declarations, methods, and what is assigned to a name. */
const functionsOf = (nodes: readonly AstNode[]): ReadonlyMap<string, readonly Range[]> => {
  const found = nodes.flatMap((node) => {
    const value = node.type === "FunctionDeclaration" ? node : nodeOf(node.init ?? node.value);
    const name = nameOf(node.id ?? node.key);
    return name !== undefined && value !== undefined && FUNCTIONS.test(value.type) ? [{ name, value }] : [];
  });
  return new Map(
    [...Map.groupBy(found, ({ name }) => name)].map(([name, some]) => [name, some.map(({ value }) => value)]),
  );
};

/** The task of a call that plans a timer; undefined for other calls. */
const taskOf = ({ type, callee, arguments: given }: AstNode): AstNode | undefined => {
  if (type !== "CallExpression") return undefined;
  const [first, second] = nodesIn(given);
  const called = nodeOf(callee);
  if (called?.type === "Identifier") return /^set(?:Timeout|Interval)$/.test(nameOf(called) ?? "") ? first : undefined;
  return nameOf(called?.property) === "after" ? second : undefined;
};

/** Whether the task of a timer leads to the call that plans it, by the functions of its file. */
const plansItselfAgain = (nodes: readonly AstNode[], timer: AstNode, task: AstNode): boolean => {
  const functions = functionsOf(nodes);
  const calls = nodes.filter(({ type }) => type === "CallExpression");
  const named = (name: string | undefined): readonly Range[] => functions.get(name ?? "") ?? [];
  const reached = new Set<Range>(FUNCTIONS.test(task.type) ? [task] : named(referenceOf(task)));
  for (const range of reached) {
    for (const call of calls.filter((one) => contains(range, one)))
      for (const used of [call.callee, ...nodesIn(call.arguments)])
        for (const next of named(referenceOf(used))) reached.add(next);
  }
  return [...reached].some((range) => contains(range, timer));
};

/** Whether a loop catches an error and then waits to repeat the work. */
const catchesAndWaits = (nodes: readonly AstNode[], loop: AstNode): boolean => {
  const within = (outer: AstNode) => nodes.filter((node) => contains(outer, node));
  const handlers = within(loop).filter(({ type }) => type === "CatchClause");
  return handlers.flatMap(within).some(({ type, callee }) => type === "CallExpression" && nameOf(callee) === "wait");
};

/** Whether a `cron` call runs something else than recurring work. */
const runsUncaught = (nodes: readonly AstNode[], { type, callee, arguments: given }: AstNode): boolean => {
  if (type !== "CallExpression" || nameOf(callee) !== "cron") return false;
  const [options] = nodesIn(given);
  const run = nodesIn(options?.properties).find(({ key }) => nameOf(key) === "run");
  const called = nodeOf(nodeOf(nodeOf(nodeOf(run?.value)?.body)?.callee)?.object);
  return !nodes.some(
    ({ id, init }) => nameOf(id) === (nameOf(called) ?? "") && nameOf(nodeOf(init)?.callee) === "Recurring",
  );
};

/** Recurring work that does not run in `foundation/base/recurring.ts`, as `file:line what`. */
const recurringElsewhere = (path: string, text: string): string[] => {
  if (!/\.after\(|setInterval|setTimeout|\bwait\(|\bcron\(/.test(text)) return [];
  const nodes = nodesOf(path, text);
  const found = nodes.flatMap((node) => {
    const task = taskOf(node);
    if (nameOf(node.callee) === "setInterval") return [{ node, what: "setInterval" }];
    if (task !== undefined && plansItselfAgain(nodes, node, task))
      return [{ node, what: "a timer that plans itself again" }];
    if (LOOPS.test(node.type) && catchesAndWaits(nodes, node)) return [{ node, what: "a loop that catches and waits" }];
    return runsUncaught(nodes, node) ? [{ node, what: "cron without Recurring" }] : [];
  });
  return found.map(({ node, what }) => `${path}:${text.slice(0, node.start).split("\n").length} ${what}`);
};

test("recurring work runs in foundation/base/recurring.ts, which catches its errors", async () => {
  const found = (await readSources())
    .filter(([path]) => path !== "foundation/base/recurring.ts" && !path.startsWith("testing/"))
    .flatMap(([path, text]) => recurringElsewhere(path, text));
  const [known, others] = [new Set<string>(), [] as string[]];
  for (const place of found) {
    const path = place.split(":", 1)[0] ?? "";
    if (path in REASONS) known.add(path);
    else others.push(place);
  }
  expect(others).toEqual([]);
  expect([...known].toSorted()).toEqual(Object.keys(REASONS).toSorted());
});

test.each([
  ["a timer of a method", "class A { #run() { this.clock.after(9, () => this.#run()); } }"],
  ["through another function", "const f = () => g();\nconst g = () => clock.after(9, f);"],
  ["as a reference", "function f() { clock.after(9, f); }"],
  ["of the platform", "const f = () => { setTimeout(f, 9); };"],
  ["setInterval", "setInterval(() => work(), 9);"],
  [
    "a loop that catches and waits",
    "async function f() { for (;;) { try { await g(); } catch { await wait(clock, 9); } } }",
  ],
  ["cron without Recurring", 'const c = cron({ name: "x", run: () => work() });'],
])("the check can fail: %s", (_, text) => {
  expect(recurringElsewhere("a.ts", text)).toHaveLength(1);
});

test.each([
  ["a deadline", "const f = () => { const cancel = clock.after(9, () => reject()); };"],
  ["a loop that waits without a catch", "async function f() { for (;;) { await g(); await wait(clock, 9); } }"],
  [
    "cron with Recurring",
    'const work = new Recurring(runtime, {});\nconst c = cron({ name: "x", run: () => work.run() });',
  ],
])("it passes %s", (_, text) => {
  expect(recurringElsewhere("a.ts", text)).toEqual([]);
});
