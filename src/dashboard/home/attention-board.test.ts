import { expect, test } from "bun:test";
import type { AttentionItem } from "../../foundation/base/attention.ts";
import { createTestClock } from "../../testing/clock.ts";
import type { Viewer } from "../visit.ts";
import { AttentionBoard, operatorSources } from "./attention-board.ts";

const viewerOf = (change: Partial<Viewer["user"]> = {}, mode: Viewer["mode"] = "live"): Viewer => ({
  user: { id: "u", email: "u@example.com", role: "owner", isOperator: true, ...change },
  account: { id: "a", name: "acme" },
  ...{ mode, sessionId: "s", csrfToken: "t", timeZone: "UTC", href: (path) => path },
  caller: { keyId: "user:u", accountId: "a", mode, scopes: [], rate: { perSecond: 1, burst: 2 } },
});

const item = (severity: AttentionItem["severity"], title: string): AttentionItem => ({
  ...{ severity, title, label: "Label", detail: "", sinceMs: null },
  action: { text: "Show", path: "/" },
});

test("items of all parts are in one order, the worst first; the navigation counts them by section", () => {
  const board = new AttentionBoard(createTestClock(), [
    { section: "lists", itemsOf: () => [item("warn", "paused")] },
    { section: "dmarc", itemsOf: () => [item("unknown", "silent"), item("bad", "gone")] },
  ]);
  expect(board.items(viewerOf()).map(({ title }) => title)).toEqual(["gone", "paused", "silent"]);
  expect(board.counts(viewerOf())).toEqual({
    lists: { count: 1, isUrgent: false },
    dmarc: { count: 2, isUrgent: true },
  });
});

test("counts are read again after ten seconds, and whenever the home page is shown", async () => {
  const clock = createTestClock();
  let reads = 0;
  const board = new AttentionBoard(clock, [
    {
      section: "lists",
      itemsOf: () => {
        reads++;
        return [];
      },
    },
  ]);
  board.counts(viewerOf());
  board.counts(viewerOf());
  expect(reads).toBe(1);
  board.items(viewerOf());
  expect(reads).toBe(2);
  await clock.advance(10_000);
  board.counts(viewerOf());
  expect(reads).toBe(3);
});

test("the state of the service is for operators only, and not among test data", () => {
  const machine = { failures: [], warnings: [] };
  const sources = operatorSources(() => ({ machine, blockers: ["The database is not writable."], findings: [] }));
  const board = new AttentionBoard(createTestClock(), sources);
  expect(board.items(viewerOf())).toHaveLength(1);
  expect(board.items(viewerOf({ isOperator: false }))).toEqual([]);
  expect(board.items(viewerOf({}, "test"))).toEqual([]);
  expect(board.counts(viewerOf({ isOperator: false }))).toEqual({ settings: { count: 0, isUrgent: false } });
});
