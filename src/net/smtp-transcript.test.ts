import { expect, test } from "bun:test";
import { createTestClock } from "../testing/clock.ts";
import { TRANSCRIPT_LINE_CHARS_MAX, TRANSCRIPT_LINES_MAX, TranscriptRecorder } from "./smtp-transcript.ts";

test("lines carry whole milliseconds since the connect began", async () => {
  const clock = createTestClock();
  await clock.advance(100.4);
  const dialogue = new TranscriptRecorder(clock, clock.monotonicMs());
  await clock.advance(7.8);
  dialogue.add("server", ["220 hi"]);
  expect(dialogue.lines()).toEqual([{ atMs: 8, from: "server", text: "220 hi" }]);
});

test("a line that is too long is cut and says so", () => {
  const clock = createTestClock();
  const dialogue = new TranscriptRecorder(clock, 0);
  dialogue.add("server", ["x".repeat(TRANSCRIPT_LINE_CHARS_MAX), "y".repeat(TRANSCRIPT_LINE_CHARS_MAX + 1)]);
  const [whole, cut] = dialogue.lines();
  expect(whole?.text).toBe("x".repeat(TRANSCRIPT_LINE_CHARS_MAX));
  expect(cut?.text).toBe(`${"y".repeat(TRANSCRIPT_LINE_CHARS_MAX - 1)}…`);
});

test("opening and question are bounded each, and what was handed out does not grow", () => {
  const dialogue = new TranscriptRecorder(createTestClock(), 0);
  for (let i = 0; i < 2 * TRANSCRIPT_LINES_MAX; i++) dialogue.add("server", ["250-x"]);
  const opening = dialogue.lines();
  expect(opening).toHaveLength(TRANSCRIPT_LINES_MAX);
  dialogue.beginProbe();
  for (let i = 0; i < 2 * TRANSCRIPT_LINES_MAX; i++) dialogue.add("us", ["RSET"]);
  expect(dialogue.lines()).toHaveLength(2 * TRANSCRIPT_LINES_MAX);
  dialogue.beginProbe();
  expect(dialogue.lines()).toEqual(opening);
});
