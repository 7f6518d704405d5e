import { expect, test } from "bun:test";
import { createTestClock } from "../../testing/clock.ts";
import { createLog, redact } from "./log.ts";
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
