import { expect, test } from "bun:test";
import { findingReason, HEALTH_CODES } from "./health-schema.ts";

test.each(HEALTH_CODES.map((code) => [code] as const))("%s has a reason in whole sentences", (code) => {
  expect(findingReason(code)).toMatch(/^[A-Z].{20,200}\.$/);
});
