import { expect, test } from "bun:test";
import { createTestClock } from "../testing/clock.ts";
import { SignInChallenges } from "./second-factor.ts";

const ADA = { id: "ada", passwordHash: "one" };
const EVE = { id: "eve", passwordHash: "two" };

test("a challenge lasts ten minutes", async () => {
  const clock = createTestClock();
  const challenges = new SignInChallenges(clock);
  const token = challenges.begin(ADA);
  await clock.advance(10 * 60_000 - 1);
  expect(challenges.find(token)).toMatchObject({ userId: "ada", passwordHash: "one" });
  await clock.advance(1);
  expect(challenges.find(token)).toBeUndefined();
});

test("a user who begins many ends only the own ones", () => {
  const challenges = new SignInChallenges(createTestClock());
  const ada = challenges.begin(ADA);
  const eve = Array.from({ length: 2_000 }, () => challenges.begin(EVE));
  expect(challenges.find(ada)?.userId).toBe("ada");
  expect(eve.filter((token) => challenges.find(token) !== undefined)).toEqual(eve.slice(-10));
  challenges.endOf("eve");
  expect(eve.some((token) => challenges.find(token) !== undefined)).toBe(false);
  expect(challenges.find(ada)?.userId).toBe("ada");
});
