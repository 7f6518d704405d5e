import { expect, test } from "bun:test";
import { nextTurn } from "./clock.ts";
import { TurnGate } from "./turn-gate.ts";

/** A gate whose clock moves by so much at each look, and requests that note the turn in which they begin. */
const gateOf = (stepMs: number) => {
  let nowMs = 0;
  const gate = new TurnGate({ monotonicMs: () => (nowMs += stepMs) });
  const begun: { caller: string; turn: number }[] = [];
  let turn = 0;
  const request = async (caller: string): Promise<void> => {
    const waiting = gate.enter(() => caller);
    if (waiting !== null) await waiting;
    begun.push({ caller, turn });
  };
  const turns = async (count: number): Promise<void> => {
    for (; count > 0; count--) {
      await nextTurn();
      turn += 1;
    }
  };
  return { begun, request, turns };
};

test("requests that come in one turn begin at once while there is time", async () => {
  const { begun, request } = gateOf(0);
  const all = Array.from({ length: 500 }, () => request("a"));
  expect(begun).toHaveLength(500);
  await Promise.all(all);
});

test("the others begin in the next turns, a few in each, and none is lost", async () => {
  const { begun, request, turns } = gateOf(1);
  const all = Array.from({ length: 100 }, () => request("a"));
  expect(begun.length).toBeLessThan(10);
  await turns(30);
  await Promise.all(all);
  expect(begun).toHaveLength(100);
  const perTurn = Object.values(Object.groupBy(begun, ({ turn }) => turn));
  for (const some of perTurn) expect(some?.length).toBeLessThan(20);
});

test("callers take turns: one request does not wait behind hundreds of somebody else", async () => {
  const { begun, request, turns } = gateOf(1);
  const many = Array.from({ length: 300 }, () => request("many"));
  const one = request("one");
  await turns(80);
  await Promise.all([...many, one]);
  expect(begun.findIndex(({ caller }) => caller === "one")).toBeLessThan(20);
});

test("after a rush, requests begin at once again", async () => {
  const { begun, request, turns } = gateOf(1);
  const many = Array.from({ length: 50 }, () => request("many"));
  await turns(30);
  await Promise.all(many);
  const last = request("late");
  expect(begun.at(-1)?.caller).toBe("late");
  await last;
});

test("less begins in turns that are long already, and never nothing", async () => {
  const { begun, request, turns } = gateOf(10);
  const all = Array.from({ length: 40 }, () => request("a"));
  await turns(40);
  await Promise.all(all);
  const later = begun.filter(({ turn }) => turn > 0);
  expect(later).toHaveLength(37);
  for (const some of Object.values(Object.groupBy(later, ({ turn }) => turn)))
    expect(some?.length).toBeLessThanOrEqual(2);
});
