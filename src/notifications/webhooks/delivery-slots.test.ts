import { describe, expect, test } from "bun:test";
import { createTestClock } from "../../testing/clock.ts";
import {
  DeliverySlots,
  FAST_MAX,
  PER_URL_MAX,
  type DeliverySlot,
  queuedEndpointOf,
  SLOW_AFTER_MS,
  SLOW_MAX,
  UNKNOWN_MAX,
} from "./delivery-slots.ts";

const endpoint = (host: string, path = "/", accountId = "one") =>
  queuedEndpointOf({ accountId, mode: "live", url: `https://${host}${path}` });

const start = () => {
  const clock = createTestClock();
  const slots = new DeliverySlots(clock);
  return {
    clock,
    slots,
    /** Takes up to `count` slots for distinct URLs, until none is left. */
    acquireAll(count: number, accountId: string): DeliverySlot[] {
      return Array.from({ length: count }, (_, n) =>
        slots.acquire(endpoint(`${accountId}${n}.example`, "/", accountId)),
      ).filter((slot) => slot !== null);
    },
    /** A URL gets a standing by a request that ends so. */
    finishOne(url: ReturnType<typeof endpoint>, end: "responds" | "hangs"): void {
      const slot = slots.acquire(url);
      if (slot === null) throw new Error("no slot");
      slots.beginRequest(slot);
      slots.endRequest(slot, { hasResponded: end === "responds", hasTimedOut: end === "hangs" });
      slots.release(slot);
    },
  };
};

describe("a URL", () => {
  test("has one request at a time until it has responded, then several, and one again after a timeout", () => {
    const { slots, finishOne } = start();
    const url = endpoint("a.example");
    const first = slots.acquire(url);
    expect([first === null, slots.hasFree(url)]).toEqual([false, false]);
    if (first !== null) slots.release(first);
    finishOne(url, "responds");
    const held = Array.from({ length: PER_URL_MAX }, () => slots.acquire(url));
    expect([held.every((slot) => slot?.pool === "fast"), slots.acquire(url)]).toEqual([true, null]);
    for (const slot of held) if (slot !== null) slots.release(slot);
    finishOne(url, "hangs");
    expect([slots.acquire(url)?.pool, slots.acquire(url)]).toEqual(["slow", null]);
  });

  test("that was not used while ten thousand others were is unknown again", () => {
    const { slots, finishOne } = start();
    const [oldest, next] = [endpoint("a.example"), endpoint("b.example")];
    for (const url of [oldest, next]) finishOne(url, "responds");
    for (let n = 0; n < 9_999; n++) finishOne(endpoint(`c${n}.example`), "responds");
    expect([oldest, next].map((url) => slots.acquire(url)?.health)).toEqual(["unknown", "responsive"]);
  });

  test("of a chat has one request at a time also when it responds", () => {
    const { slots, finishOne } = start();
    const url = endpoint("hooks.slack.com", "/services/T/B/x");
    finishOne(url, "responds");
    expect([slots.acquire(url) === null, slots.acquire(url)]).toEqual([false, null]);
  });
});

describe("unknown URLs", () => {
  test("leave slots to other accounts and to responsive URLs", () => {
    const { slots, acquireAll, finishOne } = start();
    const known = endpoint("known.example");
    finishOne(known, "responds");
    const one = acquireAll(1_000, "one");
    expect(one.length).toBeLessThan(FAST_MAX / 2 + 10);
    expect(acquireAll(1, "two")).toHaveLength(1);
    expect(acquireAll(1_000, "three").length + one.length + 1).toBe(UNKNOWN_MAX);
    expect(acquireAll(1, "four")).toEqual([]);
    expect(slots.acquire(known)?.pool).toBe("fast");
  });

  test("of one host are limited whatever their accounts", () => {
    const { slots } = start();
    const taken = Array.from({ length: 200 }, (_, n) =>
      slots.acquire(endpoint("same.example", `/${n}`, `account ${n}`)),
    );
    const count = taken.filter((slot) => slot !== null).length;
    expect(count).toBeGreaterThan(20);
    expect(count).toBeLessThan(UNKNOWN_MAX);
    expect(slots.acquire(endpoint("other.example", "/", "another"))?.pool).toBe("fast");
  });
});

describe("a request that hangs", () => {
  test("leaves its fast slot after a second, and is aborted only when no slow slot is free and others wait", async () => {
    const { clock, slots, acquireAll } = start();
    const held: DeliverySlot[] = [];
    // Two accounts fill the slow lane; each has a share of its own.
    for (const account of ["one", "two"]) {
      held.push(...acquireAll(60, account));
      slots.moveSlow(true);
      expect(held.at(-1)?.pool).toBe("fast");
      await clock.advance(SLOW_AFTER_MS);
      slots.moveSlow(true);
    }
    const slow = held.filter(({ pool }) => pool === "slow");
    expect(slow).toHaveLength(SLOW_MAX);
    const stuck = held.filter(({ pool }) => pool === "fast");
    expect(stuck.every(({ abort, isPreempted }) => abort.signal.aborted && isPreempted)).toBe(true);
    expect(slow.every(({ abort }) => !abort.signal.aborted)).toBe(true);
    const late = acquireAll(1, "three");
    await clock.advance(SLOW_AFTER_MS);
    slots.moveSlow(false);
    expect(late[0]?.abort.signal.aborted).toBe(false);
    slots.moveSlow(true);
    expect(late[0]?.abort.signal.aborted).toBe(true);
    for (const slot of [...held, ...late]) slots.release(slot);
    expect([slots.isFull, acquireAll(1, "one").length]).toEqual([false, 1]);
  });
});
