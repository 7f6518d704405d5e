import { expect, test } from "bun:test";
import { createTestClock } from "../testing/clock.ts";
import { WrongCodeCounts } from "./second-factor.ts";

const ADA = { id: "ada", passwordHash: "one" };
const BOB = { id: "bob", passwordHash: "two" };

const start = () => {
  const clock = createTestClock();
  return { clock, codes: new WrongCodeCounts(clock) };
};

const fail = (codes: WrongCodeCounts, user: typeof ADA, times: number) =>
  Array.from({ length: times }, () => codes.add(user)).filter((refused) => refused !== null);

test("every ten wrong codes the wait doubles, from a minute to an hour", async () => {
  const { clock, codes } = start();
  const waits: number[] = [];
  for (let ten = 0; ten < 9; ten++) {
    expect(codes.waitMs(ADA)).toBe(0);
    const [refused, ...more] = fail(codes, ADA, 10);
    expect([refused?.count, more]).toEqual([(ten + 1) * 10, []]);
    expect(codes.waitMs(ADA)).toBe(refused?.waitMs ?? -1);
    waits.push((refused?.waitMs ?? 0) / 60_000);
    await clock.advance(refused?.waitMs ?? 0);
  }
  expect(waits).toEqual([1, 2, 4, 8, 16, 32, 60, 60, 60]);
});

test("nine are no reason to wait, and another user never waits", () => {
  const { codes } = start();
  expect(fail(codes, ADA, 9)).toEqual([]);
  expect(codes.waitMs(ADA)).toBe(0);
  codes.add(ADA);
  expect(codes.waitMs(ADA)).toBe(60_000);
  expect(codes.waitMs(BOB)).toBe(0);
});

test("a right code takes back what was mistyped before it, but no full ten", async () => {
  const { clock, codes } = start();
  fail(codes, ADA, 9);
  codes.succeed(ADA);
  expect(codes.size).toBe(0);
  expect(fail(codes, ADA, 10)).toHaveLength(1);
  await clock.advance(60_000);
  fail(codes, ADA, 5);
  codes.succeed(ADA);
  expect(fail(codes, ADA, 10)).toEqual([{ count: 20, waitMs: 120_000 }]);
});

test("a new password ends the wait, and a day without wrong codes, too", async () => {
  const { clock, codes } = start();
  fail(codes, ADA, 20);
  expect(codes.waitMs({ ...ADA, passwordHash: "three" })).toBe(0);
  await clock.advance(24 * 60 * 60_000 + 1);
  expect(fail(codes, ADA, 10)).toEqual([{ count: 10, waitMs: 60_000 }]);
});

test("memory is bounded", () => {
  const { codes } = start();
  for (let n = 0; n < 20_100; n++) codes.add({ id: `user ${n}`, passwordHash: null });
  expect(codes.size).toBe(20_000);
});
