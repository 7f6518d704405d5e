import { expect, test } from "bun:test";
import { findExcess } from "./body.ts";

const of = (text: string) => findExcess(Buffer.from(text));
const list = (count: number, item: (at: number) => string) =>
  Array.from({ length: count }, (_, at) => item(at)).join(",");

test.each([
  ["100,000 addresses", `{"emails":[${list(100_000, (at) => `"user${at}@x.example"`)}]}`],
  ["200,001 numbers", `[${list(200_001, () => "1")}]`],
  ["10,000 fields", `{${list(10_000, (at) => `"k${at}":1`)}}`],
  ["structure within a string", JSON.stringify({ text: '[{"a":1},'.repeat(20_000) })],
  ["a string of a megabyte", JSON.stringify("x".repeat(1024 * 1024 - 1))],
  ["many containers", `[${list(9_999, () => "[]")}]`],
  ["no JSON", '{"never ended'],
  ["a backslash at the end", '"\\'],
  ["nothing", ""],
])("%s is not too much", (_, text) => {
  expect(of(text)).toBeNull();
});

test.each([
  ["fields", `{${list(10_001, (at) => `"k${at}":1`)}}`, "fields"],
  ["values", `[${list(200_002, () => "1")}]`, "values"],
  ["containers", `[${list(10_000, () => "{}")}]`, "objects and arrays"],
  ["depth", "[".repeat(10_001), "objects and arrays"],
  ["a long string", JSON.stringify("x".repeat(1024 * 1024)), "string"],
  ["fields behind a string with quotes", `{"a\\"":1,${list(10_000, (at) => `"k${at}":1`)}}`, "fields"],
])("too many or too much of %s is", (_, text, word) => {
  expect(of(text)).toContain(word);
});
