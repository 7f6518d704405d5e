import { describe, expect, test } from "bun:test";
import { testEngine, testKeyEvidence } from "../testing/evidence.ts";
import { evidenceSchema } from "./evidence.ts";
import { resultSchema, SUB_STATUSES, VERDICT_OF } from "./result.ts";
import { simulatedResult } from "./test-platform.ts";

const resultOf = async (email: string) => testEngine.conclude(await testKeyEvidence(email)).result;

describe("every sub_status is a trigger", () => {
  test.each(SUB_STATUSES)("%s", async (subStatus) => {
    const spellings = [subStatus, subStatus.replaceAll("_", "-"), `${subStatus}+tag`, subStatus.toUpperCase()];
    for (const spelling of spellings) {
      const email = `${spelling}@any.example`;
      const result = await resultOf(email);
      expect([spelling, result.sub_status, result.verdict]).toEqual([spelling, subStatus, VERDICT_OF[subStatus]]);
      expect(resultSchema.parse(result)).toEqual(result);
      expect(result.email).toBe(email);
      expect(testEngine.firstDelayMs(testEngine.begin(email))).toBe(0);
    }
  });

  test.each(SUB_STATUSES)("the evidence of %s is well-formed, and the same at every call", async (subStatus) => {
    const evidence = await testKeyEvidence(`${subStatus}@any.example`);
    expect(evidenceSchema.parse(evidence)).toEqual(evidence);
    expect(await testKeyEvidence(`${subStatus}@any.example`)).toEqual(evidence);
  });
});

test("mailbox_exists has ten pass, and full marks", async () => {
  const { signals, quality_score, confidence, verified_at } = await resultOf("mailbox_exists@any.example");
  expect(Object.values(signals)).toEqual(Array.from({ length: 10 }, () => "pass"));
  expect([quality_score, confidence, verified_at]).toEqual([100, 98, "2026-01-01T00:00:00.000Z"]);
});

test.each([
  ["ada@any.example", "mailbox_exists"],
  ["info@any.example", "mailbox_exists"],
  ["ada@mailinator.com", "mailbox_exists"],
  ["constructor@any.example", "mailbox_exists"],
  ["__proto__@any.example", "mailbox_exists"],
  ["tostring@any.example", "mailbox_exists"],
  ["toString@any.example", "mailbox_exists"],
  ["no address", "invalid_syntax"],
  ["@", "invalid_syntax"],
  ["", "invalid_syntax"],
] as const)("%p is %s", async (email, subStatus) => {
  expect((await resultOf(email)).sub_status).toBe(subStatus);
});

test.each([
  ["pending@any.example", "mailbox_exists", 8_000],
  ["never_answers@any.example", "smtp_timeout", 3_000],
  ["never-answers+1@any.example", "smtp_timeout", 3_000],
] as const)("%s ends as %s after %d ms", async (email, subStatus, afterMs) => {
  expect(simulatedResult(email)).toEqual({ subStatus, afterMs });
  expect(testEngine.firstDelayMs(testEngine.begin(email))).toBe(afterMs);
  expect((await resultOf(email)).sub_status).toBe(subStatus);
});
