import { expect, test } from "bun:test";
import { createTestClock } from "../../testing/clock.ts";
import { IDLE_STATE } from "./messages.ts";
import { StateView } from "./state-view.ts";

const start = () => {
  const clock = createTestClock();
  const view = new StateView(clock, IDLE_STATE);
  const changes: Array<string | null> = [];
  view.outages.onChange(() => changes.push(view.outages.current()));
  return { clock, view, changes };
};

test("an outage of the other thread is noticed when it begins and ends, and each turn in it is taken once", () => {
  const { view, changes } = start();
  const out = { ...IDLE_STATE, paused: "dns_unavailable", outages: ["No DNS server responds."] } as const;
  view.update(IDLE_STATE, false);
  view.update(out, false);
  view.update(out, false);
  expect(view.outages.findings()).toEqual(["No DNS server responds."]);
  expect(view.outages.takeTurn()).toBe(false);
  view.update(out, true);
  view.update(out, false);
  expect([view.outages.takeTurn(), view.outages.takeTurn()]).toEqual([true, false]);
  view.update(IDLE_STATE, false);
  expect(changes).toEqual(["dns_unavailable", "dns_unavailable", null]);
});

test("the time of a shortage is by the clock of this thread", async () => {
  const { clock, view } = start();
  expect(view.outages.lastShortageMs()).toBe(Number.NEGATIVE_INFINITY);
  await clock.advance(1_000);
  view.update({ ...IDLE_STATE, shortageAgoMs: 300 }, false);
  expect(view.outages.lastShortageMs()).toBe(clock.monotonicMs() - 300);
});

test("a measured delay counts until the next measurement is due", async () => {
  const { clock, view } = start();
  expect(view.loopDelay()).toBeNull();
  view.noteDelay({ lateMs: 30, ownMs: 1 });
  await clock.advance(40);
  expect(view.loopDelay()).toEqual({ lateMs: 30, ownMs: 1 });
  await clock.advance(1);
  expect(view.loopDelay()).toBeNull();
});

test("of a thread that ended nothing is known but that it did", () => {
  const { view, changes } = start();
  view.update({ ...IDLE_STATE, connections: 4, paused: "dns_unavailable" }, false);
  view.reset(IDLE_STATE, "It ended.");
  expect([view.pool.connections(), view.outages.current(), view.outages.findings()]).toEqual([0, null, ["It ended."]]);
  view.update(IDLE_STATE, false);
  expect(view.outages.findings()).toEqual([]);
  expect(changes).toEqual(["dns_unavailable", null]);
});
