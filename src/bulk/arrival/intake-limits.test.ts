import { describe, expect, test } from "bun:test";
import { settle } from "../../testing/clock.ts";
import { IntakeSlots } from "./intake.ts";

const LARGE = false;
const SMALL = true;

const setUp = () => {
  const slots = new IntakeSlots();
  const running: Array<{ readonly name: string; readonly end: () => void }> = [];
  const refused: string[] = [];
  return {
    refused,
    order(name: string, accountId: string, isSmall: boolean): void {
      const run = async (): Promise<void> => {
        using _slot = await slots.take({ accountId, isSmall });
        await new Promise<void>((resolve) => running.push({ name, end: resolve }));
      };
      run().catch(() => refused.push(name));
    },
    async running(): Promise<string[]> {
      await settle();
      return running.map(({ name }) => name);
    },
    async end(): Promise<void> {
      await settle();
      running.shift()?.end();
    },
  };
};

describe("the slots for receiving lists", () => {
  test("run two large lists at a time, and a small one beside them", async () => {
    const { order, running } = setUp();
    for (const name of ["l1", "l2", "l3"]) order(name, "a", LARGE);
    expect(await running()).toEqual(["l1", "l2"]);
    order("small", "a", SMALL);
    expect(await running()).toEqual(["l1", "l2", "small"]);
  });

  test("always leave one for a large list", async () => {
    const { order, running } = setUp();
    for (const name of ["s1", "s2", "s3"]) order(name, "a", SMALL);
    order("large", "b", LARGE);
    expect(await running()).toEqual(["s1", "s2", "large"]);
  });

  test("serve the accounts in turn, small lists first, and are released by failing tasks", async () => {
    const { order, running, end } = setUp();
    for (const name of ["x1", "x2", "x3", "x4"]) order(name, "x", LARGE);
    order("y1", "y", LARGE);
    for (const name of ["s1", "s2", "s3"]) order(name, "x", SMALL);
    order("t1", "y", SMALL);
    const begun: string[] = [];
    for (let names = await running(); names.length > 0; names = await running()) {
      begun.push(...names.filter((name) => !begun.includes(name)));
      await end();
    }
    expect(begun.indexOf("y1")).toBeLessThan(begun.indexOf("x4"));
    expect(begun.indexOf("t1")).toBeLessThan(begun.indexOf("s3"));
  });

  test("refuse an account with too many waiting lists, without affecting others", async () => {
    const { order, running, refused, end } = setUp();
    for (let n = 0; n < 30; n++) order(`x${n}`, "x", LARGE);
    await running();
    expect(refused).toHaveLength(10);
    order("large of y", "y", LARGE);
    for (let n = 0; n < 40; n++) order("small of y", "y", SMALL);
    await running();
    expect(refused).toHaveLength(10);
    const begun = new Set<string>();
    for (let names = await running(); names.length > 0; names = await running()) {
      for (const name of names) begun.add(name);
      await end();
    }
    expect([...begun].filter((name) => name !== "small of y").slice(0, 4)).toEqual(["x0", "x1", "x2", "large of y"]);
  });

  test("let a large list wait however many small ones do", async () => {
    const { order, running, refused } = setUp();
    for (let n = 0; n < 200; n++) order(`s${n}`, `a${n % 10}`, SMALL);
    await running();
    const before = refused.length;
    for (const name of ["l1", "l2", "l3"]) order(name, "b", LARGE);
    expect(await running()).toContain("l1");
    expect(refused).toHaveLength(before);
  });

  test("let small lists wait however many large ones do", async () => {
    const { order, running, refused } = setUp();
    for (let n = 0; n < 200; n++) order(`l${n}`, `a${n % 10}`, LARGE);
    await running();
    const before = refused.length;
    for (let n = 0; n < 60; n++) order(`s${n}`, "b", SMALL);
    await running();
    expect(refused).toHaveLength(before);
  });
});
