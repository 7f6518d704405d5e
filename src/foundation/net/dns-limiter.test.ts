import { describe, expect, test } from "bun:test";
import { type OnBehalfOf, OPERATOR } from "../base/on-behalf-of.ts";
import { createTestClock, settle } from "../../testing/clock.ts";
import { DnsLimiter, type DnsTicket } from "./dns-limiter.ts";

const of = (account: string, priority: OnBehalfOf["priority"] = "realtime"): OnBehalfOf => ({ account, priority });

const setUp = (underWayMax: number, waitingMax: number) => {
  const clock = createTestClock();
  const limiter = new DnsLimiter({ clock, underWayMax, waitingMax });
  const inside: Array<{ readonly name: string; readonly ticket: DnsTicket }> = [];
  const enter = (name: string, who = OPERATOR, deadlineMs = 1_000): DnsTicket => {
    const ticket = limiter.enter(who, deadlineMs);
    void ticket.entered.then((isIn) => isIn && inside.push({ name, ticket }));
    return ticket;
  };
  return {
    clock,
    enter,
    /** Who is under way, in the order in which they came in. */
    async inside() {
      await settle();
      return inside.map(({ name }) => name);
    },
    async leave() {
      await settle();
      inside.shift()?.ticket.leave();
    },
  };
};

test("those who wait come in one by one, in their order", async () => {
  const { enter, leave, inside } = setUp(1, 10);
  for (const name of ["a", "b", "c"]) enter(name);
  for (const name of ["a", "b", "c"]) {
    expect(await inside()).toEqual([name]);
    await leave();
  }
});

test("a full queue turns away at once", async () => {
  const { clock, enter, leave, inside } = setUp(1, 1);
  enter("a");
  enter("b");
  expect(await enter("c").entered).toBe(false);
  await leave();
  expect(await inside()).toEqual(["b"]);
  expect(clock.pending()).toBe(0);
});

test("nobody waits past the deadline, and who left the queue takes no place", async () => {
  const { clock, enter, leave, inside } = setUp(1, 10);
  enter("a");
  const late = enter("late");
  await clock.advance(1_000);
  expect(await late.entered).toBe(false);
  await leave();
  enter("next", OPERATOR, 2_000);
  expect(await inside()).toEqual(["next"]);
});

describe("accounts", () => {
  test("that wait come in by turns, single checks before lists", async () => {
    const { enter, leave, inside } = setUp(1, 100);
    enter("first");
    for (const name of ["x1", "x2", "x3"]) enter(name, of("x", "bulk"));
    enter("y1", of("y", "bulk"));
    for (const name of ["p1", "p2"]) enter(name, of("p"));
    enter("q1", of("q"));
    const order: string[] = [];
    for (let names = await inside(); names.length > 0; names = await inside()) {
      order.push(...names);
      await leave();
    }
    expect(order).toEqual(["first", "p1", "q1", "p2", "x1", "y1", "x2", "x3"]);
  });

  test("never have all places, not with lists and checks together: another one's check is asked at once", async () => {
    const { enter, inside } = setUp(32, 1_000);
    for (let n = 0; n < 100; n++) enter("list", of("x", "bulk"));
    const lists = (await inside()).length;
    for (let n = 0; n < 100; n++) enter("check", of("x"));
    const all = (await inside()).length;
    expect([lists, all]).toEqual([26, 31]);
    enter("another's check", of("y"));
    expect((await inside()).at(-1)).toBe("another's check");
  });

  test("with nothing but a list under way leave room for another one's list", async () => {
    const { enter, inside } = setUp(32, 1_000);
    for (let n = 0; n < 100; n++) enter("list", of("x", "bulk"));
    enter("another's list", of("y", "bulk"));
    expect((await inside()).at(-1)).toBe("another's list");
  });

  test("share the queue too: one that fills it does not turn others away", async () => {
    const { enter, leave, inside } = setUp(1, 20);
    enter("first");
    const flood = Array.from({ length: 100 }, () => enter("flood", of("x")));
    expect((await Promise.all(flood.slice(50).map(({ entered }) => entered))).some(Boolean)).toBe(false);
    enter("other", of("y"));
    await leave();
    await leave();
    expect(await inside()).toEqual(["other"]);
  });
});

describe("a question that several wait for", () => {
  test("comes at the turn of the first of them who has one, and only once", async () => {
    const { enter, leave, inside } = setUp(1, 100);
    enter("first");
    for (const name of ["x1", "x2"]) enter(name, of("x", "bulk"));
    const shared = enter("shared", of("x", "bulk"));
    enter("p1", of("p"));
    shared.join(of("q"), 1_000);
    shared.join(of("q"), 1_000);
    const order: string[] = [];
    for (let names = await inside(); names.length > 0; names = await inside()) {
      order.push(...names);
      await leave();
    }
    expect(order).toEqual(["first", "p1", "shared", "x1", "x2"]);
  });

  test("comes in at once when the one who joins has a place", async () => {
    const { enter, inside } = setUp(32, 100);
    for (let n = 0; n < 40; n++) enter("list", of("x", "bulk"));
    const shared = enter("shared", of("x", "bulk"));
    shared.join(of("y"), 1_000);
    expect((await inside()).at(-1)).toBe("shared");
  });

  test("is worth asking for as long as the last of them waits", async () => {
    const { clock, enter, leave, inside } = setUp(1, 100);
    enter("first");
    const shared = enter("shared", of("x", "bulk"), 1_000);
    shared.join(of("y"), 5_000);
    await clock.advance(2_000);
    await leave();
    expect(await inside()).toEqual(["shared"]);
    expect(shared.deadlineMs()).toBe(5_000);
  });
});
