import { expect, test } from "bun:test";
import { BoundedMap, cached } from "./bounded-map.ts";

test("a result is computed once while the cache has room, undefined and null too", () => {
  const computed: string[] = [];
  const lengthOf = cached(2, (key: string) => {
    computed.push(key);
    return key === "" ? undefined : key === "0" ? null : key.length;
  });
  expect(["a", "", "a", "", "a"].map(lengthOf)).toEqual([1, undefined, 1, undefined, 1]);
  expect(computed).toEqual(["a", ""]);
  expect(["0", "0", "a"].map(lengthOf)).toEqual([null, null, 1]);
  expect(computed).toEqual(["a", "", "0", "a"]);
});

test("a result that could not be computed is not cached", () => {
  let calls = 0;
  const failing = cached(2, (): string => {
    calls += 1;
    if (calls === 1) throw new Error("not yet");
    return "done";
  });
  expect(() => failing("x")).toThrow("not yet");
  expect([failing("x"), calls]).toEqual(["done", 2]);
});

test("the oldest entry of a full map gives way; an entry that is set again is the newest", () => {
  const map = new BoundedMap<string, number>(2);
  map.set("a", 1).set("b", 2).set("a", 3).set("c", 4);
  expect([...map]).toEqual([
    ["a", 3],
    ["c", 4],
  ]);
  map.set("a", 5);
  expect([...map.keys()]).toEqual(["c", "a"]);
});

test("entries give way in their order also after deletions, second settings and a cleared map", () => {
  const map = new BoundedMap<string, number>(3);
  for (const key of "abcabcddefaab") map.set(key, 1);
  expect([...map.keys()].join("")).toBe("fab");
  map.delete("f");
  for (const key of "cd") map.set(key, 1);
  expect([...map.keys()].join("")).toBe("bcd");
  map.clear();
  for (const key of "xyzwv") map.set(key, 1);
  expect([...map.keys()].join("")).toBe("zwv");
});
