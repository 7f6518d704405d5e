import { describe, expect, test } from "bun:test";
import { mostFirst, sumBy, sumFields, sumOf } from "./sums.ts";

const ROWS = [
  { name: "a", messages: 2, aligned: 1 },
  { name: "b", messages: 5, aligned: 0 },
] as const;

describe("sums of rows", () => {
  test("add up what each row counts", () => {
    expect(sumBy(ROWS, ({ messages, aligned }) => messages - aligned)).toBe(6);
    expect(sumBy([], () => 1)).toBe(0);
    expect(sumOf(ROWS, "messages")).toBe(7);
  });

  test("add up fields under their names", () => {
    expect(sumFields(ROWS, "messages", "aligned")).toEqual({ messages: 7, aligned: 1 });
    expect(sumFields<"messages">([], "messages")).toEqual({ messages: 0 });
  });

  test("sort rows, the largest number first", () => {
    expect(ROWS.toSorted(mostFirst("messages")).map(({ name }) => name)).toEqual(["b", "a"]);
  });
});
