import { describe, expect, test } from "bun:test";
import { closeSync, fstatSync, openSync } from "node:fs";
import { devNull } from "node:os";
import { createLog } from "../foundation/base/log.ts";
import { createTestClock } from "../testing/clock.ts";
import { withPriority, writesToJournal } from "./journal.ts";

describe("the priority of a line", () => {
  test.each([
    ["error", "<3>"],
    ["warn", "<4>"],
    ["info", "<6>"],
    ["debug", "<7>"],
  ] as const)("of level %s is %s", (level, prefix) => {
    const lines: string[] = [];
    createLog("debug", createTestClock(), (line) => lines.push(line))[level]("message", {
      of: '"level":"error"',
      x: "\n",
    });
    expect(lines.map(withPriority)).toEqual(lines.map((line) => prefix + line));
  });

  test("stands before each line of a failure, and before other text", () => {
    expect(withPriority("postwarden: Settings:\n  A is wrong.")).toBe("<3>postwarden: Settings:\n<3>  A is wrong.");
    expect(withPriority('{"error":"usage","message":"x"}')).toBe('<3>{"error":"usage","message":"x"}');
    expect(withPriority("Settings: /etc/postwarden.env")).toBe("<6>Settings: /etc/postwarden.env");
  });
});

test("the journal is the stream that JOURNAL_STREAM names by device and inode, and no other", () => {
  const descriptor = openSync(devNull, "w");
  const { dev, ino } = fstatSync(descriptor, { bigint: true });
  const isJournal = (stream?: string) =>
    writesToJournal(stream === undefined ? {} : { JOURNAL_STREAM: stream }, descriptor);
  expect(isJournal(`${dev}:${ino}`)).toBe(true);
  expect(isJournal(`${dev}:${ino + 1n}`)).toBe(false);
  expect(isJournal(`${dev + 1n}:${ino}`)).toBe(false);
  expect(isJournal()).toBe(false);
  closeSync(descriptor);
  expect(isJournal(`${dev}:${ino}`)).toBe(false);
});
