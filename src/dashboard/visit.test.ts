import { expect, test } from "bun:test";
import { nextTurn, systemClock } from "../foundation/base/clock.ts";
import { AppError } from "../foundation/base/errors.ts";
import { createTestClock } from "../testing/clock.ts";
import { PageTurns } from "./visit.ts";

const requestOf = (signal?: AbortSignal): Request =>
  new Request("http://localhost/", signal === undefined ? {} : { signal });

/** Pages that note the turn of the event loop in which they begin. */
const pagesOf = (turns: PageTurns) => {
  const begun: { caller: string; turn: number }[] = [];
  let turn = 0;
  return {
    begun,
    serve: async (caller: string, request = requestOf()): Promise<void> => {
      await turns.enter(request, caller);
      begun.push({ caller, turn });
    },
    pass: async (count: number): Promise<void> => {
      for (; count > 0; count--) {
        await nextTurn();
        turn++;
      }
    },
  };
};

test("a page begins at once while no other has its turn", async () => {
  const { begun, serve, pass } = pagesOf(new PageTurns(createTestClock()));
  await serve("a");
  await pass(2);
  await serve("a");
  expect(begun).toHaveLength(2);
});

test("of pages that are requested at the same time, one begins in each turn, and none is lost", async () => {
  const { begun, serve, pass } = pagesOf(new PageTurns(createTestClock()));
  const all = Array.from({ length: 30 }, () => serve("a"));
  await pass(60);
  await Promise.all(all);
  expect(begun).toHaveLength(30);
  // The first begins at once, the second one turn later, which ends before this test counts it.
  expect(new Set(begun.map(({ turn }) => turn)).size).toBe(29);
});

test("callers take turns: one page does not wait behind the flood of somebody else", async () => {
  const { begun, serve, pass } = pagesOf(new PageTurns(createTestClock()));
  const many = Array.from({ length: 30 }, () => serve("many"));
  const one = serve("one");
  await pass(60);
  await Promise.all([...many, one]);
  expect(begun.findIndex(({ caller }) => caller === "one")).toBeLessThan(3);
});

test("while others wait, a page is followed by a rest of the same length", async () => {
  const clock = createTestClock();
  let tookMs = 0;
  const { begun, serve } = pagesOf(new PageTurns({ ...clock, monotonicMs: () => clock.monotonicMs() + tookMs }));
  await serve("a");
  const second = serve("a");
  tookMs = 20;
  await clock.advance(19);
  expect(begun).toHaveLength(1);
  await clock.advance(1);
  expect(begun).toHaveLength(2);
  await second;
});

test("a page goes on in its turn, and waits for another one when it has lost it", async () => {
  const turns = new PageTurns(createTestClock());
  const { serve, pass } = pagesOf(turns);
  const request = requestOf();
  await turns.enter(request, "a");
  const other = serve("b");
  await turns.enter(request, "a");
  await pass(1);
  let isResumed = false;
  const resumed = turns.enter(request, "a").then(() => (isResumed = true));
  await Promise.resolve();
  expect(isResumed).toBe(false);
  await Promise.all([other, resumed]);
});

test("too many of one caller are refused, another one is not, nor is a page that had a turn", async () => {
  const turns = new PageTurns(systemClock);
  const begun = requestOf();
  await turns.enter(begun, "many");
  const outcomes = Promise.allSettled(Array.from({ length: 1_200 }, () => turns.enter(requestOf(), "many")));
  const other = turns.enter(requestOf(), "other");
  await nextTurn();
  const again = turns.enter(begun, "many");
  await Promise.all([other, again]);
  const refused = (await outcomes).filter(({ status }) => status === "rejected");
  expect(refused).toHaveLength(400);
  await expect(Promise.reject((refused[0] as PromiseRejectedResult).reason)).rejects.toBeInstanceOf(AppError);
});

test("a page whose client has disconnected is not begun", async () => {
  const turns = new PageTurns(createTestClock());
  const gone = new AbortController();
  await turns.enter(requestOf(), "a");
  const waiting = turns.enter(requestOf(gone.signal), "a");
  const next = turns.enter(requestOf(), "a");
  gone.abort();
  await expect(waiting).rejects.toMatchObject({ name: "AbortError" });
  await next;
});
