import { expect, test } from "bun:test";
import { SUB_STATUSES, VERDICT_OF } from "../../verify/result.ts";
import { REASON_WORDS, VERDICT_WORDS, wordsOfReason, wordsOfVerdict } from "./verification.tsx";

test("every result has one short label and one sentence; a deliverable address has one result", () => {
  const words = [...new Set([...Object.values(REASON_WORDS), ...Object.values(VERDICT_WORDS)])];
  for (const { label, sentence } of words) {
    expect(label).toMatch(/^[A-Z][\w -]{2,21}$/);
    expect(sentence).toMatch(/^[A-Z][^.!]+\.$/);
  }
  expect(new Set(words.map(({ label }) => label)).size).toBe(words.length);
});

test.each(SUB_STATUSES)("%s is never shown as better or worse than its verdict", (subStatus) => {
  const kinds = { deliverable: ["ok"], risky: ["warn", "unknown"], undeliverable: ["bad"] };
  expect(kinds[VERDICT_OF[subStatus]]).toContain(wordsOfReason(subStatus).kind);
});

test("what this version does not know is shown by its name, as unknown", () => {
  expect(wordsOfReason("toString")).toMatchObject({ kind: "unknown", label: "toString" });
  expect(wordsOfReason("from_the_future")).toMatchObject({ kind: "unknown", label: "from_the_future" });
  expect(wordsOfVerdict("constructor")).toMatchObject({ kind: "unknown", label: "constructor" });
});
