import { expect, test } from "bun:test";
import { createTestClock } from "../../testing/clock.ts";
import { createLog } from "./log.ts";
import { RecentProblems } from "./recent-problems.ts";

const start = () => {
  const problems = new RecentProblems();
  const log = createLog("debug", createTestClock(Date.UTC(2026, 0, 1)), problems.note);
  return { problems, log };
};

test("warnings and errors are kept, the newest first, with their fields and without secrets", () => {
  const { problems, log } = start();
  log.info("fine");
  log.warn('say "no"', { host: "mx.example", url: "https://u:hunter2@x.example" });
  log.error("alone");
  expect(problems.list()).toEqual([
    { atMs: Date.UTC(2026, 0, 1), level: "error", message: "alone", details: "" },
    {
      ...{ atMs: Date.UTC(2026, 0, 1), level: "warn", message: 'say "no"' },
      details: '"host":"mx.example","url":"https://…@x.example"',
    },
  ]);
});

test("the last hundred are kept, and long ones are cut", () => {
  const { problems, log } = start();
  for (let n = 1; n <= 120; n++) log.warn(`number ${n}`, { text: "x".repeat(9_000) });
  const kept = problems.list();
  expect([kept.length, kept[0]?.message, kept.at(-1)?.message]).toEqual([100, "number 120", "number 21"]);
  expect(kept[0]?.details).toHaveLength(1_000);
});
