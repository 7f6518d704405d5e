import { describe, expect, test } from "bun:test";
import { createTestClock } from "../testing/clock.ts";
import {
  createDeliverySlots,
  FAST_MAX,
  PER_URL_MAX,
  type DeliverySlot,
  queuedEndpointOf,
  SLOW_AFTER_MS,
  SLOW_MAX,
  UNKNOWN_MAX,
} from "./delivery-slots.ts";

const seeker = (host: string, path = "/", accountId = "one") =>
  queuedEndpointOf({ accountId, mode: "live", url: `https://${host}${path}` });

const start = () => {
  const clock = createTestClock();
  const places = createDeliverySlots({ clock });
  return {
    clock,
    places,
    /** Takes places for distinct URLs until there is none left, at most so many. */
    takeAll(count: number, accountId: string): DeliverySlot[] {
      return Array.from({ length: count }, (_, n) =>
        places.take(seeker(`${accountId}${n}.example`, "/", accountId)),
      ).filter((place) => place !== null);
    },
    /** A URL gets a standing by a request that ends so. */
    teach(url: ReturnType<typeof seeker>, end: "answers" | "hangs"): void {
      const place = places.take(url);
      if (place === null) throw new Error("no place");
      places.begin(place);
      places.ended(place, end === "answers", end === "hangs");
      places.giveBack(place);
    },
  };
};

describe("a URL", () => {
  test("has one request at a time until it has answered, then several, and one again when it hangs", () => {
    const { places, teach } = start();
    const url = seeker("a.example");
    const first = places.take(url);
    expect([first === null, places.hasRoom(url)]).toEqual([false, false]);
    if (first !== null) places.giveBack(first);
    teach(url, "answers");
    const held = Array.from({ length: PER_URL_MAX }, () => places.take(url));
    expect([held.every((place) => place?.lane === "fast"), places.take(url)]).toEqual([true, null]);
    for (const place of held) if (place !== null) places.giveBack(place);
    teach(url, "hangs");
    expect([places.take(url)?.lane, places.take(url)]).toEqual(["slow", null]);
  });

  test("of a chat has one request at a time also when it answers", () => {
    const { places, teach } = start();
    const url = seeker("hooks.slack.com", "/services/T/B/x");
    teach(url, "answers");
    expect([places.take(url) === null, places.take(url)]).toEqual([false, null]);
  });
});

describe("URLs that nothing is known of", () => {
  test("leave room to other accounts, and to URLs that answer", () => {
    const { places, takeAll, teach } = start();
    const known = seeker("known.example");
    teach(known, "answers");
    const one = takeAll(1_000, "one");
    expect(one.length).toBeLessThan(FAST_MAX / 2 + 10);
    expect(takeAll(1, "two")).toHaveLength(1);
    expect(takeAll(1_000, "three").length + one.length + 1).toBe(UNKNOWN_MAX);
    expect(takeAll(1, "four")).toEqual([]);
    expect(places.take(known)?.lane).toBe("fast");
  });

  test("of one host are limited whatever their accounts", () => {
    const { places } = start();
    const taken = Array.from({ length: 200 }, (_, n) => places.take(seeker("same.example", `/${n}`, `account ${n}`)));
    const count = taken.filter((place) => place !== null).length;
    expect(count).toBeGreaterThan(20);
    expect(count).toBeLessThan(UNKNOWN_MAX);
    expect(places.take(seeker("other.example", "/", "another"))?.lane).toBe("fast");
  });
});

describe("a request that hangs", () => {
  test("leaves its fast place after a second, and is given up only when there is no slow place and others wait", async () => {
    const { clock, places, takeAll } = start();
    const held: DeliverySlot[] = [];
    // Two accounts fill the slow lane; each has a share of its own.
    for (const account of ["one", "two"]) {
      held.push(...takeAll(60, account));
      places.review(true);
      expect(held.at(-1)?.lane).toBe("fast");
      await clock.advance(SLOW_AFTER_MS);
      places.review(true);
    }
    const slow = held.filter(({ lane }) => lane === "slow");
    expect(slow).toHaveLength(SLOW_MAX);
    const stuck = held.filter(({ lane }) => lane === "fast");
    expect(stuck.every(({ abort, isGivenUp }) => abort.signal.aborted && isGivenUp)).toBe(true);
    expect(slow.every(({ abort }) => !abort.signal.aborted)).toBe(true);
    const late = takeAll(1, "three");
    await clock.advance(SLOW_AFTER_MS);
    places.review(false);
    expect(late[0]?.abort.signal.aborted).toBe(false);
    places.review(true);
    expect(late[0]?.abort.signal.aborted).toBe(true);
    for (const place of [...held, ...late]) places.giveBack(place);
    expect([places.isFull(), takeAll(1, "one").length]).toEqual([false, 1]);
  });
});
