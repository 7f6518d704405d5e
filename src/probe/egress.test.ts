import { expect, test } from "bun:test";
import { createTestClock } from "../testing/clock.ts";
import { failureOf } from "../testing/pool-world.ts";
import { createEgressWatch } from "./egress.ts";

const HOUR_MS = 60 * 60 * 1000;
const silent = (watch: ReturnType<typeof createEgressWatch>, hosts: number) => {
  for (let at = 0; at < hosts; at++) watch.note(`192.0.2.${at}`, failureOf("connect_timeout", "connect"));
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
  for (let at = 0; at < 10; at++) watch.note("192.0.2.1", failureOf("connect_timeout", "connect"));
  expect(watch.finding()).toBeNull();
});

test.each([
  ["an open session", null],
  ["a refusal of the connection", failureOf("refused_or_unreachable", "connect")],
  ["a banner that says no", failureOf("reply", "banner")],
])("%s clears the suspicion", (_, failure) => {
  const watch = createEgressWatch(createTestClock());
  silent(watch, 12);
  watch.note("192.0.2.99", failure);
  expect(watch.finding()).toBeNull();
});

test.each(["local_failure", "proxy_failed", "address_not_allowed"] as const)("%s says nothing about it", (kind) => {
  const watch = createEgressWatch(createTestClock());
  silent(watch, 12);
  watch.note("192.0.2.99", failureOf(kind, "connect"));
  expect(watch.finding()).not.toBeNull();
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
