import { expect, test } from "bun:test";
import { type OnBehalfOf, createShares } from "./on-behalf-of.ts";

const of = (account: string | null, priority: OnBehalfOf["priority"] = "realtime"): OnBehalfOf => ({
  account,
  priority,
});

const fill = (shares: ReturnType<typeof createShares>, who: OnBehalfOf): number => {
  let held = 0;
  for (; shares.mayHold(who); held++) shares.hold(who);
  return held;
};
const sharesOf = (placesMax: number) => createShares({ placesMax, realtimeShare: 0.1 });

test.each([
  ["the only user", 500, [of(null)], [500]],
  ["the only user's list", 500, [of(null, "bulk")], [450]],
  ["one account's checks", 500, [of("a")], [400]],
  ["one account's list", 500, [of("a", "bulk")], [405]],
  ["two accounts' checks, one after the other", 500, [of("a"), of("b")], [400, 80]],
  ["two accounts' lists", 500, [of("a", "bulk"), of("b", "bulk")], [405, 41]],
  ["a list and another's checks", 500, [of("a", "bulk"), of("b")], [405, 76]],
  ["one place", 1, [of("a")], [1]],
  ["one place and a list", 1, [of("a", "bulk")], [1]],
  ["few places", 4, [of("a"), of("b")], [4, 0]],
] as const)("%s: how many of %i places", (_, placesMax, who, held) => {
  const shares = sharesOf(placesMax);
  expect(who.map((one) => fill(shares, one))).toEqual([...held]);
});

test("what is given back is there for others, and nothing is kept of accounts that hold nothing", () => {
  const shares = sharesOf(10);
  const [a, b] = [of("a"), of("b")];
  const [held, other] = [fill(shares, a), fill(shares, b)];
  for (let n = 0; n < held; n++) shares.release(a);
  expect(fill(shares, b)).toBeGreaterThan(0);
  while (shares.holders() > 0) shares.release(b);
  expect([fill(shares, a), other]).toEqual([held, 2]);
});
