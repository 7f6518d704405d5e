import { expect, test } from "bun:test";
import { createTurn } from "./turn.ts";

test("one piece of work begins when the one before has ended, however it ended", async () => {
  const inTurn = createTurn();
  const first = Promise.withResolvers<string>();
  const begun: string[] = [];
  const one = inTurn(() => {
    begun.push("one");
    return first.promise;
  });
  const two = inTurn(async () => {
    begun.push("two");
    return "second";
  });
  await Promise.resolve();
  expect(begun).toEqual(["one"]);
  first.reject(new Error("broken"));
  expect(one).rejects.toThrow("broken");
  expect(await two).toBe("second");
});
