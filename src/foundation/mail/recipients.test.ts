import { expect, test } from "bun:test";
import { recipientsProblem } from "./recipients.ts";

test.each<[readonly string[], readonly string[], string | null]>([
  [["a@example.com"], [], null],
  [["a@example.com", "b@example.org"], ["example.com", "example.org"], null],
  [
    ["a@example.com", "b@sub.example.com"],
    ["example.com"],
    "b@sub.example.com: this service sends alert mail to addresses at example.com only",
  ],
  [
    ["a@notexample.com"],
    ["example.com", "example.org"],
    "a@notexample.com: this service sends alert mail to addresses at example.com, example.org only",
  ],
])("%p, of %p: %s", (addresses, domains, problem) => {
  expect(recipientsProblem(addresses, domains)).toBe(problem);
});
