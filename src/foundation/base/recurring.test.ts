import { expect, test } from "bun:test";
import { createTestClock, settle } from "../../testing/clock.ts";
import { createLog } from "./log.ts";
import { Recurring, type RecurringWork } from "./recurring.ts";

const start = (run: RecurringWork["run"], retryMs: RecurringWork["retryMs"] = 1_000) => {
  const clock = createTestClock();
  const logged: Array<Record<string, unknown>> = [];
  const log = createLog("info", clock, (line) => logged.push(JSON.parse(line)));
  const times: number[] = [];
  const recurring = new Recurring(
    { clock, log },
    {
      ...{ name: "work", fields: { of: "test" }, retryMs },
      run: (signal, succeeded) => {
        times.push(clock.monotonicMs());
        return run(signal, succeeded);
      },
    },
  );
  return { clock, logged, recurring, times };
};

const failing = (message = "disk I/O error") => {
  throw new Error(message);
};

test("work runs when it says; a request brings it forward and never puts it off", async () => {
  const { clock, recurring, times } = start(() => 500);
  recurring.within(100);
  recurring.within(300);
  recurring.within(50);
  await clock.advance(600);
  expect(times).toEqual([50, 550]);
  await recurring.stop();
  recurring.within(0);
  await recurring.run();
  await clock.advance(2_000);
  expect(times).toEqual([50, 550]);
  expect(clock.pending()).toBe(0);
});

test("work that returns null runs when it is requested", async () => {
  const { clock, recurring, times } = start(async () => null);
  recurring.within(10);
  await clock.advance(5_000);
  await recurring.run();
  expect([times, clock.pending()]).toEqual([[10, 5_000], 0]);
});

test.each([
  ["synchronous", () => failing()],
  ["asynchronous", async () => failing()],
])("%s work that fails runs again; a failing period and its end have a line each", async (_, fail) => {
  let failures = 3;
  const { clock, logged, recurring, times } = start(() => (failures-- > 0 ? fail() : 60_000));
  recurring.within(0);
  await clock.advance(10_000);
  expect(times).toEqual([0, 1_000, 2_000, 3_000]);
  expect(logged).toMatchObject([
    { level: "error", message: "work failed", of: "test", error: { message: "disk I/O error" }, retry_in_ms: 1_000 },
    { level: "info", message: "work works again", of: "test", failed_for_s: 3 },
  ]);
  failures = 1;
  await clock.advance(60_000);
  expect(logged.map(({ message }) => message)).toEqual([
    ...["work failed", "work works again", "work failed", "work works again"],
  ]);
});

test("a run that lasts ends a failing period when something has succeeded, and may fail anew", async () => {
  let runs = 0;
  const { clock, logged, recurring } = start(async (_, succeeded) => {
    if (runs++ > 0) succeeded();
    return failing();
  });
  recurring.within(0);
  await clock.advance(1_000);
  expect(logged.map(({ message }) => message)).toEqual(["work failed", "work works again", "work failed"]);
});

test("another error of the same period is logged, too, but not without end", async () => {
  let n = 0;
  const { clock, logged, recurring } = start(() => failing(`error ${n++ % 20}`));
  recurring.within(0);
  await clock.advance(60_000);
  expect(logged).toHaveLength(8);
});

test("the wait after a failure depends on the error and grows as the work says; success resets it", async () => {
  let failures = 3;
  const run = () => (failures-- > 0 ? failing() : 10_000);
  const { clock, recurring, times } = start(run, (_, count) => 1_000 * 2 ** (count - 1));
  recurring.within(0);
  await clock.advance(8_000);
  failures = 1;
  await clock.advance(11_000);
  expect(times).toEqual([0, 1_000, 3_000, 7_000, 17_000, 18_000]);
});

test("after a failure a plan waits for the retry, and a request does not", async () => {
  let failures = 1;
  const { clock, recurring, times } = start(() => (failures-- > 0 ? failing() : null));
  await recurring.run();
  recurring.within(0);
  await clock.advance(999);
  expect([times, recurring.isFailing]).toEqual([[0], true]);
  await recurring.run();
  await clock.advance(5_000);
  expect([times, recurring.isFailing]).toEqual([[0, 999], false]);
});

test("work never runs twice at once: requests meanwhile make one more run, after which they resolve", async () => {
  const ends: Array<() => void> = [];
  const { clock, recurring, times } = start(() => new Promise((resolve) => ends.push(() => resolve(null))));
  const done: string[] = [];
  void recurring.run().then(() => done.push("first"));
  void recurring.run().then(() => done.push("second"));
  void recurring.run().then(() => done.push("third"));
  recurring.within(0);
  void recurring.idle().then(() => done.push("idle"));
  await clock.advance(1_000);
  expect([times.length, done]).toEqual([1, []]);
  ends[0]?.();
  await settle();
  expect([times.length, done]).toEqual([2, ["first"]]);
  ends[1]?.();
  await clock.advance(1_000);
  expect([times.length, done]).toEqual([2, ["first", "second", "third", "idle"]]);
});

test("a stop fires the signal, waits for the run under way, and ends the requests that wait", async () => {
  const ended = Promise.withResolvers<number>();
  let isAborted = false;
  const { clock, logged, recurring, times } = start((signal) => {
    signal.addEventListener("abort", () => {
      isAborted = true;
    });
    return ended.promise;
  });
  void recurring.run();
  const again = recurring.run();
  let isStopped = false;
  const stopping = recurring.stop().then(() => {
    isStopped = true;
  });
  await settle();
  expect([isAborted, isStopped]).toEqual([true, false]);
  ended.reject(new Error("aborted"));
  await Promise.all([stopping, again]);
  await clock.advance(60_000);
  expect([times.length, clock.pending(), logged]).toEqual([1, 0, []]);
});
