import { describe, expect, test } from "bun:test";
import { errorText } from "../../foundation/base/errors.ts";
import { createLog } from "../../foundation/base/log.ts";
import { OPERATOR } from "../../foundation/base/on-behalf-of.ts";
import { nextTurn } from "../../foundation/base/clock.ts";
import { createTestClock } from "../../testing/clock.ts";
import { testEngine } from "../../testing/evidence.ts";
import { type AttemptOrder, type MadeAttempt, OwnAttempts } from "../attempts.ts";
import { PoolClosed } from "../smtp/pool.ts";
import { EngineThread, SILENT_MS_MAX, type ThreadEvents } from "./engine-thread.ts";
import { IDLE_STATE, type NumberedOrder, type ToThread } from "./messages.ts";
import { NetworkTally } from "./network-tally.ts";

const orderOf = (submitted: string): AttemptOrder => ({
  ...{ submitted, isCell: false, before: null, accountId: "a", onBehalfOf: OPERATOR, duringOutage: "conclude" },
});

const MADE: MadeAttempt = { kind: "repeat" };

/** A thread whose life the test plays. */
interface PlayedThread extends ThreadEvents {
  readonly posted: ToThread[];
  isTerminated: boolean;
}

const start = ({ suppressed = [] as readonly string[] } = {}) => {
  const clock = createTestClock();
  const lines: string[] = [];
  const threads: PlayedThread[] = [];
  const tallies: unknown[] = [];
  let isRefused = false;
  let isDeaf = false;
  const engine = new EngineThread({
    start(events) {
      if (isRefused) throw new Error("no thread can be started");
      const played: PlayedThread = { ...events, posted: [], isTerminated: false };
      threads.push(played);
      return {
        post(message) {
          if (isDeaf) throw new Error("the message cannot be copied");
          played.posted.push(message);
        },
        terminate: () => {
          played.isTerminated = true;
        },
      };
    },
    clock,
    log: createLog("info", clock, (line) => lines.push(line)),
    matchSuppression: (email) => (suppressed.includes(email) ? email : null),
    own: new OwnAttempts(testEngine),
    idle: IDLE_STATE,
    noteNetwork: (tally) => tallies.push(tally),
  });
  const ordersOf = (thread: PlayedThread | undefined): NumberedOrder[] =>
    (thread?.posted ?? []).flatMap((message) => (message.kind === "orders" ? message.orders : []));
  /** Plays that the thread made these orders. */
  const answer = (thread: PlayedThread | undefined, orders = ordersOf(thread)) =>
    thread?.message({
      kind: "outcomes",
      delay: null,
      outcomes: orders.map(({ number }) => ({ number, kind: "made", made: MADE })),
    });
  const refuse = (isNow: boolean): void => {
    isRefused = isNow;
  };
  const deafen = (isNow: boolean): void => {
    isDeaf = isNow;
  };
  return { engine, clock, lines, threads, tallies, ordersOf, answer, refuse, deafen };
};

test("orders of one turn travel together; the thread is started for the first", async () => {
  const { engine, threads, ordersOf, answer } = start({ suppressed: ["bob@x.example"] });
  const made = Promise.all(["ada@x.example", "Bob@x.example"].map((text) => engine.make(orderOf(text))));
  expect(threads).toHaveLength(0);
  await nextTurn();
  expect(threads.map(({ posted }) => posted.length)).toEqual([1]);
  expect(ordersOf(threads[0]).map(({ submitted, toxic }) => [submitted, toxic?.entry])).toEqual([
    ["ada@x.example", null],
    ["Bob@x.example", "bob@x.example"],
  ]);
  answer(threads[0]);
  expect(await made).toEqual([MADE, MADE]);
});

test("a text that is no address needs no thread", async () => {
  const { engine, threads } = start();
  expect(await engine.make(orderOf("no address"))).toMatchObject({ result: { sub_status: "invalid_syntax" } });
  await nextTurn();
  expect(threads).toHaveLength(0);
});

test("a bug in the thread rejects its order, and only that", async () => {
  const { engine, threads, ordersOf, answer } = start();
  const [bad, good] = ["ada@x.example", "bob@x.example"].map((text) => engine.make(orderOf(text)));
  bad?.catch(() => undefined);
  await nextTurn();
  const [first, second] = ordersOf(threads[0]);
  const error = new Error("a bug");
  threads[0]?.message({
    kind: "outcomes",
    delay: null,
    outcomes: [{ number: first?.number ?? 0, kind: "bug", error }],
  });
  answer(threads[0], second === undefined ? [] : [second]);
  await expect(bad).rejects.toThrow("a bug");
  expect(await good).toEqual(MADE);
});

describe("a thread that ends by itself", () => {
  test("is started again after a wait, gets its open orders again, and is a finding meanwhile", async () => {
    const { engine, clock, lines, threads, ordersOf, answer } = start();
    const made = Promise.all([engine.make(orderOf("ada@x.example")), engine.make(orderOf("bob@x.example"))]);
    await nextTurn();
    answer(threads[0], ordersOf(threads[0]).slice(0, 1));
    threads[0]?.ended(new Error("out of memory"));
    threads[0]?.ended(new Error("exit status 1"));
    expect(engine.smtp.outages.findings()).toEqual([expect.stringContaining("is started again")]);
    expect(lines.join("\n")).toContain('"message":"out of memory"');
    const late = engine.make(orderOf("eve@x.example"));
    await nextTurn();
    expect(threads).toHaveLength(1);
    await clock.advance(1_000);
    expect(ordersOf(threads[1]).map(({ submitted }) => submitted)).toEqual(["bob@x.example", "eve@x.example"]);
    threads[1]?.message({ kind: "state", state: IDLE_STATE, mayTry: false, tally: new NetworkTally().take() });
    expect(engine.smtp.outages.findings()).toEqual([]);
    answer(threads[1]);
    expect(await made).toEqual([MADE, MADE]);
    expect(await late).toEqual(MADE);
  });

  test("again and again: the waits double up to a minute, and an order that was lost too often ended in a bug", async () => {
    const { engine, clock, threads } = start();
    const made = engine.make(orderOf("ada@x.example"));
    const failed = made.catch(errorText);
    await nextTurn();
    for (const waitMs of [1_000, 2_000, 4_000, 8_000, 16_000]) {
      threads.at(-1)?.ended(new Error("again"));
      const before = threads.length;
      await clock.advance(waitMs - 1);
      expect(threads).toHaveLength(before);
      await clock.advance(1);
      expect(threads).toHaveLength(before + 1);
    }
    threads.at(-1)?.ended(new Error("again"));
    expect(await failed).toContain("thread for mail servers");
  });

  test("again and again with other orders: the longest wait is a minute, and after five good minutes it is short", async () => {
    const { engine, clock, threads } = start();
    const order = async (): Promise<void> => {
      engine.make(orderOf("ada@x.example")).catch(() => undefined);
      await nextTurn();
    };
    await order();
    for (const waitMs of [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]) {
      threads.at(-1)?.ended(new Error("again"));
      const before = threads.length;
      await order();
      await clock.advance(waitMs - 1);
      expect(threads).toHaveLength(before);
      await clock.advance(1);
      expect(threads).toHaveLength(before + 1);
    }
    for (let times = 0; times < 20; times++) {
      await clock.advance(15_000);
      threads.at(-1)?.message({ kind: "state", state: IDLE_STATE, mayTry: false, tally: new NetworkTally().take() });
    }
    const before = threads.length;
    threads.at(-1)?.ended(new Error("again"));
    await clock.advance(1_000);
    expect(threads).toHaveLength(before + 1);
  });

  test("when nothing was ordered is started after the wait, too", async () => {
    const { engine, clock, threads, answer } = start();
    const made = engine.make(orderOf("ada@x.example"));
    await nextTurn();
    answer(threads[0]);
    await made;
    threads[0]?.ended(new Error("gone"));
    engine.make(orderOf("bob@x.example")).catch(() => undefined);
    await nextTurn();
    expect(threads).toHaveLength(1);
    await clock.advance(1_000);
    expect(threads).toHaveLength(2);
  });

  test("one that cannot be started is tried again", async () => {
    const { engine, clock, threads, answer, refuse } = start();
    refuse(true);
    const made = engine.make(orderOf("ada@x.example"));
    await nextTurn();
    expect(engine.smtp.outages.findings()).toHaveLength(1);
    refuse(false);
    await clock.advance(1_000);
    answer(threads[0]);
    expect(await made).toEqual(MADE);
  });

  test("one that takes no orders is ended, and another one gets them", async () => {
    const { engine, clock, threads, answer, deafen } = start();
    deafen(true);
    const made = engine.make(orderOf("ada@x.example"));
    await nextTurn();
    expect(threads.map(({ isTerminated }) => isTerminated)).toEqual([true]);
    deafen(false);
    await clock.advance(1_000);
    answer(threads[1]);
    expect(await made).toEqual(MADE);
  });

  test("what an ended thread still says is not heard", async () => {
    const { engine, clock, threads, ordersOf, answer } = start();
    const made = engine.make(orderOf("ada@x.example"));
    await nextTurn();
    const number = ordersOf(threads[0])[0]?.number ?? 0;
    threads[0]?.ended(new Error("gone"));
    threads[0]?.message({ kind: "outcomes", delay: null, outcomes: [{ number, kind: "closed" }] });
    await clock.advance(1_000);
    expect(ordersOf(threads[1])).toHaveLength(1);
    threads[0]?.ended(new Error("exit status 1"));
    answer(threads[1]);
    expect(await made).toEqual(MADE);
    expect(threads.map(({ isTerminated }) => isTerminated)).toEqual([true, false]);
  });
});

describe("a thread that hangs", () => {
  test("is ended and replaced when it has said nothing for half a minute", async () => {
    const { engine, clock, threads, answer } = start();
    const made = engine.make(orderOf("ada@x.example"));
    await nextTurn();
    await clock.advance(SILENT_MS_MAX);
    expect(threads[0]?.isTerminated).toBe(true);
    await clock.advance(1_000);
    answer(threads[1]);
    expect(await made).toEqual(MADE);
  });

  test("is ended also while orders go on arriving", async () => {
    const { engine, clock, threads } = start();
    for (let times = 0; times < 3; times++) {
      engine.make(orderOf("ada@x.example")).catch(() => undefined);
      await nextTurn();
      expect(clock.pending()).toBe(1);
      await clock.advance(SILENT_MS_MAX / 3);
    }
    expect(threads[0]?.isTerminated).toBe(true);
  });

  test("a pause of the whole process is no silence of the thread", async () => {
    const { engine, clock, threads, answer } = start();
    const made = engine.make(orderOf("ada@x.example"));
    await nextTurn();
    threads[0]?.message({ kind: "state", state: IDLE_STATE, mayTry: false, tally: new NetworkTally().take() });
    await clock.advance(SILENT_MS_MAX);
    expect(threads[0]?.isTerminated).toBe(false);
    answer(threads[0]);
    expect(await made).toEqual(MADE);
  });

  test("one that posts its state does not hang, and one without orders need not speak", async () => {
    const { engine, clock, threads, answer } = start();
    const made = engine.make(orderOf("ada@x.example"));
    await nextTurn();
    for (let times = 0; times < 3; times++) {
      await clock.advance(SILENT_MS_MAX / 2);
      threads[0]?.message({ kind: "state", state: IDLE_STATE, mayTry: false, tally: new NetworkTally().take() });
    }
    answer(threads[0]);
    await made;
    await clock.advance(10 * SILENT_MS_MAX);
    expect(threads.map(({ isTerminated }) => isTerminated)).toEqual([false]);
  });
});

describe("draining", () => {
  test("ends at once where nothing was ordered", async () => {
    const { engine, threads } = start();
    await engine.drain();
    expect(threads).toHaveLength(0);
    await expect(engine.make(orderOf("ada@x.example"))).rejects.toBeInstanceOf(PoolClosed);
  });

  test("waits for the thread; what it does not make any more rejects as with a closed pool", async () => {
    const { engine, threads, ordersOf } = start();
    const sent = engine.make(orderOf("ada@x.example"));
    await nextTurn();
    const unsent = engine.make(orderOf("bob@x.example"));
    const drained = engine.drain();
    await expect(unsent).rejects.toBeInstanceOf(PoolClosed);
    expect(threads[0]?.posted.at(-1)).toEqual({ kind: "drain" });
    const number = ordersOf(threads[0])[0]?.number ?? 0;
    threads[0]?.message({ kind: "outcomes", delay: null, outcomes: [{ number, kind: "closed" }] });
    await expect(sent).rejects.toBeInstanceOf(PoolClosed);
    threads[0]?.message({ kind: "drained" });
    await drained;
    engine.close();
    expect(threads[0]?.isTerminated).toBe(true);
  });

  test("ends with a thread that ends meanwhile", async () => {
    const { engine, threads } = start();
    const sent = engine.make(orderOf("ada@x.example"));
    await nextTurn();
    const drained = engine.drain();
    threads[0]?.ended(new Error("exit status 1"));
    await expect(sent).rejects.toBeInstanceOf(PoolClosed);
    await drained;
  });
});

test("what the thread counts and logs arrives", async () => {
  const { engine, threads, tallies, lines } = start();
  void engine.make(orderOf("ada@x.example"));
  await nextTurn();
  threads[0]?.message({ kind: "log", level: "warn", message: "an egress is not usable", fields: { egress: "direct" } });
  expect(lines.join("\n")).toContain('"egress":"direct"');
  threads[0]?.message({ kind: "state", state: IDLE_STATE, mayTry: false, tally: new NetworkTally().take() });
  expect(tallies).toEqual([new NetworkTally().take()]);
});
