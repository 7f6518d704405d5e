import { describe, expect, test } from "bun:test";
import { AppError } from "../../foundation/base/errors.ts";
import { UploadBudget } from "./intake.ts";

const budgetOf = () => new UploadBudget({ filesPerAccountMax: 2, bytesPerAccountMax: 100, bytesMax: 150 });

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
  test("of an account are limited in number, independently of others", () => {
    const budget = budgetOf();
    const first = budget.reserve("a", 1);
    budget.reserve("a", 1);
    expect(refusal(() => budget.reserve("a", 1))).toContain("2 lists at a time");
    expect(refusal(() => budget.reserve("b", 1))).toBeNull();
    first.release();
    expect(refusal(() => budget.reserve("a", 1))).toBeNull();
    expect(refusal(() => budget.reserve("a", 1))).toContain("2 lists at a time");
  });

  test("reserve disk space, limited for an account and in total, until they are deleted", () => {
    const budget = budgetOf();
    const one = budget.reserve("a", 60);
    expect(refusal(() => budget.reserve("a", 41))).toBe("Concurrent uploads exceed 100 bytes for this account.");
    const large = (bytes: number) =>
      new UploadBudget({ filesPerAccountMax: 1, bytesPerAccountMax: bytes, bytesMax: 0 });
    expect(refusal(() => large(1024 ** 3).reserve("a", 1024 ** 3 + 1))).toContain("exceed 1 GiB");
    expect(refusal(() => large(512 * 1024 ** 2).reserve("a", 1024 ** 3))).toContain("exceed 512 MiB");
    const two = budget.reserve("a", 40);
    expect(refusal(() => budget.reserve("b", 51))).toContain("Too many lists");
    const other = budget.reserve("b", 50);
    expect(budget.bytes).toBe(150);
    one.release();
    expect(refusal(() => budget.reserve("b", 50))).toBeNull();
    two.release();
    other.release();
    expect(budget.bytes).toBe(50);
  });

  test("release unused space and never reserve more", () => {
    const budget = budgetOf();
    const pass = budget.reserve("a", 100);
    pass.shrink(30);
    expect(budget.bytes).toBe(30);
    pass.shrink(80);
    expect(budget.bytes).toBe(30);
    expect(refusal(() => budget.reserve("a", 70))).toBeNull();
  });
});
