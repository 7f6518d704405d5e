import { expect, test } from "bun:test";
import { createTestClock } from "../../testing/clock.ts";
import { createLog, redact, RecentProblems, RepeatedError } from "./log.ts";
import { newApiKey } from "./secrets.ts";

const logTo = (lines: string[], level: Parameters<typeof createLog>[0] = "info") =>
  createLog(level, createTestClock(), (line) => lines.push(line));

test("a line is one JSON object with time, level, message and fields", () => {
  const lines: string[] = [];
  logTo(lines).info("started", { port: 8080 });
  expect(JSON.parse(lines[0] ?? "")).toEqual({
    at: "2026-01-01T00:00:00.000Z",
    level: "info",
    message: "started",
    port: 8080,
  });
});

test("a field of the caller does not replace one of the line", () => {
  const lines: string[] = [];
  const error = new Error("boom");
  logTo(lines).warn("failed", { level: "debug", message: "all is well", at: "never", time: 7, error, levels: 3 });
  const { error: logged, ...line } = JSON.parse(lines[0] ?? "");
  expect(line).toEqual({
    ...{ at: "2026-01-01T00:00:00.000Z", level: "warn", message: "failed" },
    ...{ level_: "debug", message_: "all is well", at_: "never", time_: 7, levels: 3 },
  });
  expect([logged.name, logged.message]).toEqual(["Error", "boom"]);
});

test("lines below the level are not written", () => {
  const lines: string[] = [];
  const log = logTo(lines, "warn");
  log.info("no");
  log.warn("yes");
  expect(lines).toHaveLength(1);
});

test("keys, webhook secrets and URL passwords never reach the log", () => {
  const key = newApiKey("live");
  const lines: string[] = [];
  logTo(lines).info(`used ${key}`, { proxy: "socks5://bob:hunter2@10.0.0.1:1080", secret: "whsec_AbCdEfGh" });
  expect(lines[0]).not.toContain(key);
  expect(lines[0]).not.toContain("hunter2");
  expect(lines[0]).not.toContain("AbCdEfGh");
  expect(redact("nothing here")).toBe("nothing here");
});

test("an error keeps its message and a line its ceiling", () => {
  const lines: string[] = [];
  logTo(lines).error("failed", { cause: new Error("boom"), big: "x".repeat(100_000) });
  expect(lines[0]).toContain("boom");
  expect(lines[0]?.length).toBe(8_192);
});

test("redacting takes no longer than the text is long", () => {
  // With one step for every pair of characters each of these would outlast the test by hours.
  const length = 1_000_000;
  for (const text of ["://", ":", "://a:", "x:y@", "a@", "pw_live_", "whsec_"]) {
    const long = text.repeat(length / text.length);
    expect(redact(`https://${long}`).length).toBeGreaterThan(0);
  }
  expect(redact(`https://u${":".repeat(length)}@example.com`)).toBe("https://…@example.com");
});

const start = () => {
  const problems = new RecentProblems();
  const log = createLog("debug", createTestClock(Date.UTC(2026, 0, 1)), problems.note);
  return { problems, log };
};

test("warnings and errors are kept, the newest first, with their fields and without secrets", () => {
  const { problems, log } = start();
  log.info("fine");
  log.warn('say "no"', { host: "mx.example", url: "https://u:hunter2@x.example" });
  log.error("alone", { error: new Error("disk full") });
  expect(problems.list()).toEqual([
    { atMs: Date.UTC(2026, 0, 1), level: "error", message: "alone", fields: [["error", "disk full"]] },
    {
      ...{ atMs: Date.UTC(2026, 0, 1), level: "warn", message: 'say "no"' },
      fields: [
        ["host", "mx.example"],
        ["url", "https://…@x.example"],
      ],
    },
  ]);
});

test("the last hundred are kept, and long ones are cut", () => {
  const { problems, log } = start();
  for (let n = 1; n <= 120; n++) log.warn(`number ${n}`, { text: "x".repeat(9_000) });
  const kept = problems.list();
  expect([kept.length, kept[0]?.message, kept.at(-1)?.message]).toEqual([100, "number 120", "number 21"]);
  const [[name, text] = []] = kept[0]?.fields ?? [];
  expect([name, text?.length, text?.at(-1)]).toEqual(["fields", 501, "…"]);
  log.warn("nested", { error: { code: 1 }, text: "y".repeat(600), rows: 3 });
  expect(problems.list()[0]?.fields).toEqual([
    ["error", '{"code":1}'],
    ["text", `${"y".repeat(500)}…`],
    ["rows", "3"],
  ]);
});

test("an error is logged once in ten seconds, with how many there were in between", async () => {
  const clock = createTestClock();
  const lines: string[] = [];
  const repeated = new RepeatedError("disk full", {
    log: createLog("error", clock, (line) => lines.push(line)),
    clock,
  });
  for (let id = 0; id < 3; id++) repeated.log({ id });
  await clock.advance(9_999);
  repeated.log({ id: 3 });
  expect(lines).toHaveLength(1);
  await clock.advance(1);
  repeated.log({ id: 4 });
  await clock.advance(10_000);
  repeated.log({ id: 5 });
  const logged = lines.map((line) => JSON.parse(line));
  expect(logged.map(({ message, id, others }) => [message, id, others])).toEqual([
    ["disk full", 0, undefined],
    ["disk full", 4, 3],
    ["disk full", 5, undefined],
  ]);
});
