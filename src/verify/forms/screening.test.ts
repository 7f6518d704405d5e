import { expect, test } from "bun:test";
import { createTestClock } from "../../testing/clock.ts";
import type { AttemptOrder, Attempts, MadeAttempt } from "../attempts.ts";
import { VerificationEngine } from "../engine.ts";
import { PoolClosed } from "../smtp/pool.ts";
import { TEST_PLATFORM } from "../test-platform.ts";
import { Screening } from "./screening.ts";

const CALLER = { accountId: "account", mode: "live" } as const;

const open = (make: Attempts["make"]) => {
  const clock = createTestClock();
  const engine = new VerificationEngine(TEST_PLATFORM, clock);
  const attempts: Attempts = { make, fail: () => ({ kind: "repeat" }) };
  return {
    clock,
    screening: new Screening(clock, {
      engines: { live: engine, test: engine },
      attempts: { live: attempts, test: attempts },
    }),
  };
};

const limits = { timeoutMs: 2_000, signal: new AbortController().signal };

test.each([
  ["someone@slow.example", null],
  ["disposable@slow.example", "disposable"],
] as const)("DNS that does not respond in time says nothing against %s", async (email, reason) => {
  const { clock, screening } = open(() => Promise.withResolvers<MadeAttempt>().promise);
  const screened = screening.screen(CALLER, email, limits);
  await clock.advance(2_000);
  expect(await screened).toMatchObject({ sub_status: reason });
});

test("an address is looked up at its domain only", async () => {
  const orders: AttemptOrder[] = [];
  const { screening } = open(async (order) => {
    orders.push(order);
    return { kind: "repeat" };
  });
  await screening.screen(CALLER, "someone@any.example", limits);
  expect(orders).toMatchObject([{ submitted: "someone@any.example", onlyDomain: true, accountId: "account" }]);
});

test("a service that stops says so", async () => {
  const { screening } = open(() => Promise.reject(new PoolClosed()));
  expect(screening.screen(CALLER, "someone@any.example", limits)).rejects.toMatchObject({ code: "unavailable" });
});

test("a bug is not hidden", async () => {
  const { screening } = open(() => Promise.reject(new Error("a bug")));
  expect(screening.screen(CALLER, "someone@any.example", limits)).rejects.toThrow("a bug");
});
