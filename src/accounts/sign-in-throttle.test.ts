import { describe, expect, test } from "bun:test";
import { createTestClock } from "../testing/clock.ts";
import { SignInThrottle } from "./sign-in-throttle.ts";

const ADA = "ada@example.com";
const HOME = "192.0.2.1";

const start = () => {
  const clock = createTestClock();
  return { clock, throttle: new SignInThrottle(clock) };
};

test("the waits of a user from one address grow from a second to a minute, and not further", async () => {
  const { clock, throttle } = start();
  const waitsS: number[] = [];
  while (waitsS.length < 9) {
    const waitMs = throttle.admit(ADA, HOME);
    if (waitMs > 0) waitsS.push(waitMs / 1000);
    await clock.advance(waitMs);
  }
  expect(waitsS).toEqual([1, 2, 4, 8, 16, 32, 60, 60, 60]);
});

describe("nobody is locked out", () => {
  test("after the wait an attempt is let through, however many were refused meanwhile", async () => {
    const { clock, throttle } = start();
    for (let n = 0; n < 30; n++) {
      const waitMs = throttle.admit(ADA, HOME);
      await clock.advance(waitMs);
      if (waitMs > 0) throttle.admit(ADA, HOME);
    }
    for (let n = 0; n < 1_000; n++) throttle.admit(ADA, HOME);
    await clock.advance(60_000);
    expect(throttle.admit(ADA, HOME)).toBe(0);
  });

  test("failures from one address do not slow the user down at another one", async () => {
    const { throttle } = start();
    for (let n = 0; n < 3; n++) throttle.admit(ADA, "203.0.113.9");
    expect(throttle.admit(ADA, "203.0.113.9")).toBeGreaterThan(0);
    expect(throttle.admit(ADA, HOME)).toBe(0);
  });

  test("while many addresses guess at a user, a further one waits once, at most a minute, and is let through", async () => {
    const { clock, throttle } = start();
    for (let n = 0; n < 200; n++) throttle.admit(ADA, `203.0.113.${n}`);
    const waitMs = throttle.admit(ADA, HOME);
    expect(waitMs).toBeGreaterThan(0);
    expect(waitMs).toBeLessThanOrEqual(60_000);
    await clock.advance(waitMs - 1);
    expect(throttle.admit(ADA, HOME)).toBe(1);
    for (let n = 200; n < 250; n++) throttle.admit(ADA, `203.0.113.${n}`);
    await clock.advance(1);
    expect(throttle.admit(ADA, HOME)).toBe(0);
    expect(throttle.admit("bob@example.com", HOME)).toBe(0);
  });
});

test("an address that fails for many users waits for all of them", async () => {
  const { clock, throttle } = start();
  for (let n = 0; n < 20; n++) expect(throttle.admit(`u${n}@example.com`, HOME)).toBe(0);
  expect(throttle.admit("u20@example.com", HOME)).toBe(1_000);
  expect(throttle.admit("u20@example.com", "192.0.2.2")).toBe(0);
  await clock.advance(1_000);
  expect(throttle.admit("u21@example.com", HOME)).toBe(0);
  expect(throttle.admit("u22@example.com", HOME)).toBe(2_000);
});

test("an IPv6 network of 64 bits is one client", () => {
  const { throttle } = start();
  for (let n = 1; n <= 3; n++) expect(throttle.admit(ADA, `2001:db8:0:1::${n}`)).toBe(0);
  expect(throttle.admit(ADA, "2001:db8:0:1:ffff::9")).toBe(1_000);
  expect(throttle.admit(ADA, "2001:db8:0:2::1")).toBe(0);
});

describe("an IPv6 network of 48 bits", () => {
  const clientOf = (n: number, site = 0): string => `2001:db8:${site.toString(16)}:${n.toString(16)}::1`;

  test("waits for a user after ten attempts from ever new clients; the user elsewhere and other users do not", async () => {
    const { clock, throttle } = start();
    for (let n = 0; n < 10; n++) expect(throttle.admit(ADA, clientOf(n))).toBe(0);
    expect(throttle.admit(ADA, clientOf(10))).toBe(1_000);
    expect(throttle.admit(ADA, clientOf(10, 1))).toBe(0);
    expect(throttle.admit(ADA, HOME)).toBe(0);
    expect(throttle.admit("bob@example.com", clientOf(10))).toBe(0);
    await clock.advance(1_000);
    expect(throttle.admit(ADA, clientOf(11))).toBe(0);
    expect(throttle.admit(ADA, clientOf(12))).toBe(2_000);
  });

  test("waits for all users after sixty attempts, and no other network does", () => {
    const { throttle } = start();
    for (let n = 0; n < 60; n++) expect(throttle.admit(`u${n}@example.com`, clientOf(n))).toBe(0);
    expect(throttle.admit("u60@example.com", clientOf(60))).toBe(1_000);
    expect(throttle.admit("u60@example.com", clientOf(60, 1))).toBe(0);
  });

  test("lets 16 of 2,000 guesses at a user through in a minute", async () => {
    const { clock, throttle } = start();
    let admitted = 0;
    for (let n = 0; n < 2_000; n++) {
      if (throttle.admit(ADA, clientOf(n)) === 0) admitted++;
      if (n % 33 === 0) await clock.advance(1_000);
    }
    expect(admitted).toBeLessThanOrEqual(10 + 6);
  });

  test("is not counted for attempts that were none, and IPv4 has no such network", () => {
    const { throttle } = start();
    for (let n = 0; n < 100; n++) {
      expect(throttle.admit(ADA, clientOf(n))).toBe(0);
      throttle.undo(ADA, clientOf(n));
    }
    for (let n = 0; n < 14; n++) expect(throttle.admit(ADA, `203.0.113.${n}`)).toBe(0);
  });
});

test("a success begins anew; an attempt that was none does not count", () => {
  const { throttle } = start();
  for (let n = 0; n < 10; n++) {
    expect(throttle.admit(ADA, HOME)).toBe(0);
    throttle.undo(ADA, HOME);
  }
  for (let n = 0; n < 2; n++) expect(throttle.admit(ADA, HOME)).toBe(0);
  throttle.succeed(ADA, HOME);
  for (let n = 0; n < 3; n++) expect(throttle.admit(ADA, HOME)).toBe(0);
  expect(throttle.admit(ADA, HOME)).toBe(1_000);
});

test("attempts at the same time all count", () => {
  const { throttle } = start();
  const admitted = Array.from({ length: 100 }, () => throttle.admit(ADA, HOME)).filter((waitMs) => waitMs === 0);
  expect(admitted).toHaveLength(3);
});

test("an hour without a failure expires them", async () => {
  const { clock, throttle } = start();
  for (let n = 0; n < 3; n++) throttle.admit(ADA, HOME);
  await clock.advance(60 * 60 * 1000 + 1);
  for (let n = 0; n < 3; n++) expect(throttle.admit(ADA, HOME)).toBe(0);
});

test("memory is bounded: each kind of count has at most so many entries", () => {
  const throttle = new SignInThrottle(createTestClock(), 20);
  for (let n = 0; n < 70; n++) throttle.admit(`u${n}@example.com`, `10.0.0.${n}`);
  // Of users at an address, of addresses and of users.
  expect(throttle.size).toBe(60);
  expect(start().throttle.entriesMax).toBe(20_000);
});
