import { expect, test } from "bun:test";
import { LoadOnce, once } from "./load-once.ts";

const loader = (failures = 0) => {
  let loads = 0;
  const value = { name: "loaded" };
  const once = new LoadOnce(async () => {
    if (++loads <= failures) throw new Error("no disk");
    return value;
  });
  return { once, value, loads: () => loads };
};

test("nothing is loaded before the first use, and nothing twice", async () => {
  const { once, value, loads } = loader();
  expect(loads()).toBe(0);
  expect(await Promise.all([once.get(), once.get()])).toEqual([value, value]);
  expect(loads()).toBe(1);
  expect(once.get()).toBe(value);
});

test("a load that failed is tried again by the next use", async () => {
  const { once, value, loads } = loader(1);
  const first = Promise.all([once.get(), once.get()]);
  await expect(first).rejects.toThrow("no disk");
  expect(await once.get()).toBe(value);
  expect(loads()).toBe(2);
});

test("once: what returns undefined is loaded once, too; what throws is tried again", () => {
  let calls = 0;
  const nothing = once(() => {
    calls += 1;
  });
  expect([nothing(), nothing(), calls]).toEqual([undefined, undefined, 1]);
  const late = once(() => {
    calls += 1;
    if (calls < 3) throw new Error("not yet");
    return calls;
  });
  expect(late).toThrow("not yet");
  expect([late(), late()]).toEqual([3, 3]);
});
