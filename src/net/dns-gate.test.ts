import { expect, test } from "bun:test";
import { createTestClock } from "../testing/clock.ts";
import { createDnsGate } from "./dns-gate.ts";

const setUp = (underWayMax: number, waitingMax: number) => {
  const clock = createTestClock();
  return { clock, gate: createDnsGate({ clock, underWayMax, waitingMax }) };
};

test("those who wait come in one by one, in their order", async () => {
  const { gate } = setUp(1, 10);
  const entered: number[] = [];
  expect(await gate.enter(1000)).toBe(true);
  const first = gate.enter(1000).then(() => entered.push(1));
  const second = gate.enter(1000).then(() => entered.push(2));
  gate.leave();
  await first;
  expect(entered).toEqual([1]);
  gate.leave();
  await second;
  expect(entered).toEqual([1, 2]);
});

test("a full queue turns away at once", async () => {
  const { clock, gate } = setUp(1, 1);
  await gate.enter(1000);
  const waiting = gate.enter(1000);
  expect(await gate.enter(1000)).toBe(false);
  gate.leave();
  expect(await waiting).toBe(true);
  expect(clock.pending()).toBe(0);
});

test("nobody waits past the deadline, and who left the queue takes no place", async () => {
  const { clock, gate } = setUp(1, 10);
  await gate.enter(1000);
  const late = gate.enter(1000);
  await clock.advance(1000);
  expect(await late).toBe(false);
  gate.leave();
  expect(await gate.enter(2000)).toBe(true);
});
