import { expect, test } from "bun:test";
import fc from "fast-check";
import { FairQueue, backgroundTurn } from "./fair-queue.ts";
import type { OnBehalfOf } from "./on-behalf-of.ts";
import { nextTurn } from "./clock.ts";

interface Item {
  readonly who: OnBehalfOf;
  readonly serial: number;
  isGone: boolean;
}

const who = fc.record<OnBehalfOf>({
  account: fc.constantFrom(null, "a", "b", "c"),
  priority: fc.constantFrom("realtime", "bulk"),
});
const step = fc.oneof(
  { weight: 5, arbitrary: fc.record({ kind: fc.constant("add"), who }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("take"), who }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("give up"), who }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("put back"), who }) },
);

test("whatever comes and goes: single checks first, accounts in turn, each account's items in their order, none twice", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 300 }), (steps) => {
      const queue = new FairQueue<Item>(({ isGone }) => isGone);
      let waiting: Item[] = [];
      let taken: Item | undefined;
      const takeFor = (may: (one: OnBehalfOf) => boolean): void => {
        const left = waiting.filter((item) => may(item.who));
        expect(queue.peek(may) === null).toBe(left.length === 0);
        taken = queue.take(may)?.item;
        if (taken === undefined) {
          expect(left).toEqual([]);
          return;
        }
        const { account, priority } = taken.who;
        const urgent = left.filter((item) => item.who.priority === "realtime");
        if (urgent.length > 0) expect(priority).toBe("realtime");
        const own = left.filter((item) => item.who.account === account && item.who.priority === priority);
        expect(taken === own[0]).toBe(true);
        waiting = waiting.filter((item) => item !== taken);
      };
      let serial = 0;
      for (const { kind, who: of } of steps) {
        if (kind === "add") {
          const item = { who: of, serial: serial++, isGone: false };
          waiting.push(item);
          queue.add(of, item);
        } else if (kind === "take") takeFor(() => true);
        else if (kind === "put back" && taken !== undefined) {
          waiting.unshift(taken);
          queue.addFirst(taken.who, taken);
          taken = undefined;
        } else if (kind === "give up") {
          const item = waiting.find((one) => one.who.account === of.account);
          if (item !== undefined) item.isGone = true;
          waiting = waiting.filter((one) => one !== item);
        }
        expect(queue.has(of)).toBe(
          waiting.some((item) => item.who.account === of.account && item.who.priority === of.priority),
        );
        expect(queue.isEmpty()).toBe(waiting.length === 0);
      }
      takeFor((one) => one.account === "b");
      while (waiting.length > 0) takeFor(() => true);
      expect(queue.waitingFor()).toEqual([]);
    }),
  );
});

test("accounts are in turn, however many items one has", () => {
  const queue = new FairQueue<string>();
  const of = (account: string): OnBehalfOf => ({ account, priority: "bulk" });
  for (let n = 0; n < 1_000; n++) queue.add(of("large"), `large ${n}`);
  for (const name of ["small 0", "small 1"]) queue.add(of("small"), name);
  queue.add(of("third"), "third 0");
  const order = Array.from({ length: 6 }, () => queue.take()?.item);
  expect(order).toEqual(["large 0", "small 0", "third 0", "large 1", "small 1", "large 2"]);
});

/** Runs steps for an account, one after the other, and writes down when each ran. */
const steps = async (account: string | null, count: number, ran: string[]): Promise<void> => {
  for (let step = 0; step < count; step++) {
    await backgroundTurn(account);
    ran.push(`${account}`);
  }
};

test("the steps of several accounts run in turn, however many requests one of them has", async () => {
  const ran: string[] = [];
  const many = Array.from({ length: 20 }, () => steps("many", 1, ran));
  await Promise.all([...many, steps("one", 3, ran)]);
  expect(ran).toHaveLength(23);
  expect(ran.slice(0, 6).filter((account) => account === "one")).toHaveLength(3);
});

test("between two steps the event loop has a turn", async () => {
  const ran: string[] = [];
  const both = Promise.all([steps("a", 3, ran), steps("b", 3, ran)]);
  let seen = ran.length;
  let mostInOneTurn = 0;
  while (ran.length < 6) {
    await nextTurn();
    mostInOneTurn = Math.max(mostInOneTurn, ran.length - seen);
    seen = ran.length;
  }
  await both;
  expect(mostInOneTurn).toBe(1);
});

test("work that comes when all is done runs too", async () => {
  const ran: string[] = [];
  await steps(null, 1, ran);
  await nextTurn();
  await steps(null, 1, ran);
  expect(ran).toEqual(["null", "null"]);
});
