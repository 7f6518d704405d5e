import { expect, test } from "bun:test";
import { createTestClock } from "../../testing/clock.ts";
import { FairGate } from "./fair-gate.ts";

test("who waits too long is not let in later, and takes no place of those behind", async () => {
  const clock = createTestClock();
  const gate = new FairGate({ concurrencyMax: 1, waitingMax: 2, waitMsMax: 1_000 }, clock);
  const leave = await gate.enter("a");
  const late = gate.enter("b");
  await clock.advance(500);
  const inTime = gate.enter("c");
  await clock.advance(500);
  expect(await late).toBeNull();
  leave?.();
  const next = await inTime;
  expect(next).toBeFunction();
  expect(clock.pending()).toBe(0);
  next?.();
  expect(await gate.enter("d")).toBeFunction();
});

test("a command is not limited to a part of the places", async () => {
  const gate = new FairGate({ concurrencyMax: 1, waitingMax: 4, waitMsMax: 1_000 }, createTestClock());
  const leave = await gate.enter(null);
  const entered: number[] = [];
  const waiting = [1, 2, 3, 4].map(async (n) => {
    const end = await gate.enter(null);
    entered.push(n);
    end?.();
  });
  expect(await gate.enter(null)).toBeNull();
  leave?.();
  await Promise.all(waiting);
  expect(entered).toEqual([1, 2, 3, 4]);
});
