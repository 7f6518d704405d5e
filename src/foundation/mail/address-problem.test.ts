import { expect, test } from "bun:test";
import rows from "../../../fixtures/addresses.json" with { type: "json" };
import { parseAddress } from "./address.ts";
import { describeProblem } from "./address-problem.ts";

test("every problem has a sentence of its own", () => {
  const sentences = new Map<string, string>();
  for (const row of rows) {
    const address = parseAddress(row.input);
    if (!address.ok) sentences.set(address.error, describeProblem(address.error));
  }
  for (const sentence of sentences.values()) expect(sentence).toMatch(/^[A-Z][^\n]+\.$/);
  expect(new Set(sentences.values()).size).toBe(sentences.size);
  // Every code but those that only quoted or rarer forms reach is in the table of addresses.
  expect(sentences.size).toBeGreaterThanOrEqual(30);
});
