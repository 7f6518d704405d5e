import { expect, test } from "bun:test";
import { createTestClock } from "../../testing/clock.ts";
import { TRANSCRIPT_LINE_CHARS_MAX, TRANSCRIPT_LINES_MAX, TranscriptRecorder } from "./line-socket.ts";

test("lines carry whole milliseconds since the connect began", async () => {
  const clock = createTestClock();
  await clock.advance(100.4);
  const transcript = new TranscriptRecorder(clock, clock.monotonicMs());
  await clock.advance(7.8);
  transcript.add("server", ["220 hi"]);
  expect(transcript.lines()).toEqual([{ atMs: 8, from: "server", text: "220 hi" }]);
});

test("a line that is too long is cut and says so", () => {
  const clock = createTestClock();
  const transcript = new TranscriptRecorder(clock, 0);
  transcript.add("server", ["x".repeat(TRANSCRIPT_LINE_CHARS_MAX), "y".repeat(TRANSCRIPT_LINE_CHARS_MAX + 1)]);
  const [whole, cut] = transcript.lines();
  expect(whole?.text).toBe("x".repeat(TRANSCRIPT_LINE_CHARS_MAX));
  expect(cut?.text).toBe(`${"y".repeat(TRANSCRIPT_LINE_CHARS_MAX - 1)}…`);
});

test("opening and question are bounded each, and what was handed out does not grow", () => {
  const transcript = new TranscriptRecorder(createTestClock(), 0);
  for (let i = 0; i < 2 * TRANSCRIPT_LINES_MAX; i++) transcript.add("server", ["250-x"]);
  const opening = transcript.lines();
  expect(opening).toHaveLength(TRANSCRIPT_LINES_MAX);
  transcript.beginProbe();
  for (let i = 0; i < 2 * TRANSCRIPT_LINES_MAX; i++) transcript.add("us", ["RSET"]);
  expect(transcript.lines()).toHaveLength(2 * TRANSCRIPT_LINES_MAX);
  transcript.beginProbe();
  expect(transcript.lines()).toEqual(opening);
});
