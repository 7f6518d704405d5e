import { describe, expect, test } from "bun:test";
import type { SmtpFailure } from "../../foundation/net/smtp-failure.ts";
import { createTestClock } from "../../testing/clock.ts";
import { Pacing } from "./pacing.ts";

const failure: SmtpFailure = {
  stage: "connect",
  kind: "connect_timeout",
  reply: null,
  detail: null,
  receivedAnything: false,
  transcript: [],
};
const silent = { kind: "unresponsive", failure } as const;
const answered = { kind: "answered" } as const;
const limited = { kind: "rate_limited" } as const;
const HOST = "192.0.2.1 25";

describe("a host that times out", () => {
  test("is dialled again after one and two timeouts, and is on cooldown after the third", () => {
    const pacing = new Pacing(createTestClock(), 4);
    for (let n = 0; n < 2; n++) pacing.note(HOST, silent);
    expect(pacing.admit(HOST).kind).toBe("go");
    pacing.note(HOST, silent);
    expect(pacing.admit(HOST)).toMatchObject({ kind: "cooldown", failure });
    expect(pacing.admit("192.0.2.2 25").kind).toBe("go");
    expect(pacing.countCooldowns()).toBe(1);
  });

  test("one answer in between counts from the start again", () => {
    const pacing = new Pacing(createTestClock(), 4);
    for (const end of [silent, silent, answered, silent, silent]) pacing.note(HOST, end);
    expect(pacing.admit(HOST).kind).toBe("go");
  });

  test("after the cooldown it is dialled once, and gets a longer cooldown if it times out again", async () => {
    const clock = createTestClock();
    const pacing = new Pacing(clock, 4);
    for (let n = 0; n < 3; n++) pacing.note(HOST, silent);
    await clock.advance(60_000);
    expect(pacing.countCooldowns()).toBe(0);
    expect(pacing.admit(HOST).kind).toBe("go");
    pacing.note(HOST, silent);
    await clock.advance(119_999);
    expect(pacing.admit(HOST).kind).toBe("cooldown");
    await clock.advance(1);
    expect(pacing.admit(HOST).kind).toBe("go");
    pacing.note(HOST, answered);
    pacing.note(HOST, silent);
    expect(pacing.admit(HOST).kind).toBe("go");
  });
});

describe("a host that limits us", () => {
  test("is given a pause that doubles, and fewer connections", async () => {
    const clock = createTestClock();
    const pacing = new Pacing(clock, 4);
    pacing.note(HOST, limited);
    expect(pacing.admit(HOST)).toEqual({ kind: "wait", waitMs: 500 });
    await clock.advance(500);
    expect(pacing.admit(HOST)).toEqual({ kind: "go", connectionsMax: 2 });
    pacing.note(HOST, limited);
    expect(pacing.admit(HOST)).toEqual({ kind: "wait", waitMs: 1_000 });
    await clock.advance(1_000);
    expect(pacing.admit(HOST)).toEqual({ kind: "go", connectionsMax: 1 });
  });

  test("waits never get longer than five seconds", () => {
    const pacing = new Pacing(createTestClock(), 4);
    for (let n = 0; n < 20; n++) pacing.note(HOST, limited);
    expect(pacing.admit(HOST)).toEqual({ kind: "wait", waitMs: 5_000 });
  });

  test("gets its connections back one by one while it answers", async () => {
    const clock = createTestClock();
    const pacing = new Pacing(clock, 4);
    pacing.note(HOST, limited);
    pacing.note(HOST, limited);
    await clock.advance(30_000);
    for (const connectionsMax of [1, 2, 3, 4, 4]) {
      expect(pacing.admit(HOST)).toEqual({ kind: "go", connectionsMax });
      pacing.note(HOST, answered);
    }
  });
});

test("hosts that always responded are not kept, and the number of hosts is bounded", () => {
  const pacing = new Pacing(createTestClock(), 4);
  for (let n = 0; n < 100; n++) pacing.note(`a${n}`, answered);
  expect(pacing.size).toBe(0);
  for (let n = 0; n < 50_010; n++) pacing.note(`b${n}`, silent);
  expect(pacing.size).toBeLessThanOrEqual(50_000);
});

test("a response ends the doubling of cooldowns", async () => {
  const clock = createTestClock();
  const pacing = new Pacing(clock, 4);
  const restMs = async (silences: number) => {
    for (let n = 0; n < silences; n++) pacing.note(HOST, silent);
    let ms = 0;
    for (; pacing.admit(HOST).kind === "cooldown"; ms += 1_000) await clock.advance(1_000);
    return ms;
  };
  expect(await restMs(3)).toBe(60_000);
  expect(await restMs(1)).toBe(120_000);
  pacing.note(HOST, answered);
  expect(await restMs(3)).toBe(60_000);
});

test("no host is on cooldown once cooldowns are ended", () => {
  const pacing = new Pacing(createTestClock(), 4);
  for (let n = 0; n < 3; n++) pacing.note(HOST, silent);
  pacing.endCooldowns();
  expect(pacing.admit(HOST).kind).toBe("go");
  for (let n = 0; n < 2; n++) pacing.note(HOST, silent);
  expect(pacing.admit(HOST).kind).toBe("go");
});

test("a host that shuts us out after every pause gets five of them, and new ones once it has answered", async () => {
  const clock = createTestClock();
  const pacing = new Pacing(clock, 4);
  const shutOut = { kind: "shut_out", pauseMs: 60_000 } as const;
  for (let n = 0; n < 5; n++) {
    // Sessions that were under way are refused as well: the pauses are one.
    for (let at = 0; at < 4; at++) pacing.note(HOST, shutOut);
    expect(pacing.admit(HOST)).toEqual({ kind: "pause", waitMs: 60_000 });
    await clock.advance(60_000);
  }
  pacing.note(HOST, shutOut);
  expect(pacing.admit(HOST)).toEqual({ kind: "wait", waitMs: 500 });
  pacing.note(HOST, answered);
  pacing.note(HOST, shutOut);
  expect(pacing.admit(HOST).kind).toBe("pause");
});
