import { expect, test } from "bun:test";
import { createTestClock } from "../testing/clock.ts";
import { createEgressWatch } from "./egress.ts";

const HOUR_MS = 60 * 60 * 1000;
const silent = (watch: ReturnType<typeof createEgressWatch>, hosts: number) => {
  for (let at = 0; at < hosts; at++) watch.noteSilence(`192.0.2.${at}`);
};

test("ten silent hosts in a row are a finding, nine are not", () => {
  const watch = createEgressWatch(createTestClock());
  silent(watch, 9);
  expect(watch.finding()).toBeNull();
  silent(watch, 10);
  expect(watch.finding()).toContain("10 mail hosts");
});

test("one host asked ten times is one host", () => {
  const watch = createEgressWatch(createTestClock());
  for (let at = 0; at < 10; at++) watch.noteSilence("192.0.2.1");
  expect(watch.finding()).toBeNull();
});

test("a single answer clears the suspicion", () => {
  const watch = createEgressWatch(createTestClock());
  silent(watch, 12);
  watch.noteAnswered();
  expect(watch.finding()).toBeNull();
});

test("silence of an hour ago says nothing about now, and new silence counts again", async () => {
  const clock = createTestClock();
  const watch = createEgressWatch(clock);
  silent(watch, 50);
  await clock.advance(HOUR_MS + 1);
  expect(watch.finding()).toBeNull();
  silent(watch, 10);
  expect(watch.finding()).not.toBeNull();
});
