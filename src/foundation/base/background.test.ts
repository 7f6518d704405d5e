import { expect, test } from "bun:test";
import { backgroundTurn } from "./background.ts";
import { nextTurn } from "./clock.ts";

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
