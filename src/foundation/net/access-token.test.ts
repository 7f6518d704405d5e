import { describe, expect, test } from "bun:test";
import { systemClock } from "../base/clock.ts";
import { createTestClock } from "../../testing/clock.ts";
import { runTokenCommand, TOKEN_COMMAND_MS_MAX } from "./access-token.ts";

const run = async (command: string) => {
  const token = await runTokenCommand(command, systemClock);
  return token.ok ? token.value : `! ${token.error}`;
};

describe("a token command", () => {
  test("prints a token, with or without a line end", async () => {
    expect(await run("echo ya29.token")).toBe("ya29.token");
    expect(await run("printf ya29.token")).toBe("ya29.token");
  });

  test.each([
    ["echo secret; exit 3", "! The token command ended with status 3."],
    ["true", "! The token command printed no token: one line of printable ASCII."],
    ["echo secret; echo more", "! The token command printed no token: one line of printable ASCII."],
    ["yes secret", "! The token command printed more than 16384 bytes."],
    ["/nonexistent/program 2>&-", "! The token command ended with status 127."],
  ])("%s fails, and what it printed is not in the sentence", async (command, sentence) => {
    expect(await run(command)).toBe(sentence);
  });

  test("that does not end is ended, with all that it started", async () => {
    const clock = createTestClock();
    const token = runTokenCommand("sleep 600 & sleep 600; echo late", clock);
    await clock.advance(TOKEN_COMMAND_MS_MAX);
    expect(await token).toEqual({ ok: false, error: "The token command took longer than 30 seconds." });
    expect(clock.pending()).toBe(0);
  });
});
