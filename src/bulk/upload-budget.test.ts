import { describe, expect, test } from "bun:test";
import { AppError } from "../base/errors.ts";
import { createUploadBudget } from "./upload-budget.ts";

const budgetOf = () => createUploadBudget({ filesPerAccountMax: 2, bytesPerAccountMax: 100, bytesMax: 150 });

const refusal = (act: () => unknown): string | null => {
  try {
    act();
    return null;
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    expect([error.code, error.details.headers]).toEqual(["unavailable", { "retry-after": "30" }]);
    return error.details.message ?? "";
  }
};

describe("uploads", () => {
  test("of an account are so many at a time, whoever else uploads", () => {
    const budget = budgetOf();
    const first = budget.enter("a");
    budget.enter("a");
    expect(refusal(() => budget.enter("a"))).toContain("2 lists at a time");
    expect(refusal(() => budget.enter("b"))).toBeNull();
    first.leave();
    expect(refusal(() => budget.enter("a"))).toBeNull();
  });

  test("of an account, and of all, take so much of the disk until they are gone from it", () => {
    const budget = budgetOf();
    const [one, two, other] = [budget.enter("a"), budget.enter("a"), budget.enter("b")];
    one.add(60);
    expect(refusal(() => two.add(41))).toContain("this account");
    two.add(40);
    expect(refusal(() => other.add(51))).toContain("Too much");
    other.add(50);
    expect(budget.bytes()).toBe(150);
    one.leave();
    expect(refusal(() => other.add(50))).toBeNull();
    two.leave();
    other.leave();
    expect(budget.bytes()).toBe(0);
  });
});
