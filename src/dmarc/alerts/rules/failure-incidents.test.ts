import { describe, expect, test } from "bun:test";
import {
  type FailureChange,
  type FailureMeasure,
  isSeenByReporters,
  judgeFailures,
  type AlertedIncident,
} from "./failure-incidents.ts";
import type { DayMail } from "./alert-rule-store.ts";

const TODAY = 20_000;
const MEASURE: FailureMeasure = { today: TODAY, messagesMin: 20, riseMin: 0.15, isComplete: () => true };

const mail = (day: number, messages: number, failing: number): DayMail => ({
  day,
  messages,
  aligned: messages - failing,
  forwarded: 0,
});
/** The four weeks before `days` with the `usual` counts on each day; `change` has other counts for single days. */
const history = (
  usual: readonly [messages: number, failing: number],
  change: Readonly<Record<number, readonly [messages: number, failing: number]>> = {},
  from = 28,
): readonly DayMail[] =>
  Array.from({ length: from + 1 }, (_, n) => {
    const ago = from - n;
    const [messages, failing] = change[ago] ?? usual;
    return mail(TODAY - ago, messages, failing);
  }).filter(({ messages }) => messages > 0);
const judge = (days: readonly DayMail[], open?: AlertedIncident, more: Partial<typeof MEASURE> = {}) =>
  judgeFailures({ key: "own", days }, open, { ...MEASURE, ...more });

describe("an incident starts", () => {
  test.each<[string, readonly DayMail[], number | null]>([
    ["when the share of failing mail rises by 15 points", history([100, 1], { 0: [100, 20] }), TODAY],
    ["not below that", history([100, 1], { 0: [100, 15] }), null],
    ["not with fewer than 20 failing messages", history([50, 0], { 0: [50, 19] }), null],
    ["with 20 failing messages over two days", history([50, 0], { 1: [50, 10], 0: [50, 10] }), TODAY - 1],
    [
      "on its first day, when it is found later",
      history([100, 1], { 3: [100, 90], 2: [100, 90], 1: [100, 90], 0: [100, 90] }),
      TODAY - 3,
    ],
    [
      "on its first day, when its reports arrive more than a week later",
      history([100, 1], Object.fromEntries(Array.from({ length: 12 }, (_, ago) => [ago, [100, 90]] as const))),
      TODAY - 11,
    ],
    [
      "on its first day, although it had hardly any mail on one",
      history([100, 1], Object.fromEntries(Array.from({ length: 12 }, (_, n) => [n, n === 9 ? [1, 0] : [100, 90]]))),
      TODAY - 11,
    ],
    ["and is found when it has ended already", history([100, 1], { 3: [100, 90] }), TODAY - 3],
    ["not when the source always failed", history([100, 100]), null],
    [
      "not when it fails on each of its days, once a week",
      history([0, 0], { 28: [90, 90], 21: [90, 90], 14: [90, 90], 7: [90, 90], 0: [90, 90] }),
      null,
    ],
    [
      "not on the weekday on which it usually does",
      history([100, 0], { 28: [100, 60], 21: [100, 60], 14: [100, 60], 7: [100, 60], 0: [100, 60] }),
      null,
    ],
    ["on another weekday", history([100, 0], { 22: [100, 60], 15: [100, 60], 8: [100, 60], 0: [100, 60] }), TODAY],
    ["not when it is new", history([100, 50], {}, 3), null],
    ["not by chance: small numbers vary", history([60, 18], { 0: [60, 28] }), null],
    ["by more than chance", history([60, 18], { 0: [60, 31] }), TODAY],
    ["not when it was longer ago than a week", history([100, 1], { 9: [100, 90], 8: [100, 90] }), null],
    ["when the source sends once a month", history([0, 0], { 31: [90, 0], 0: [90, 90] }, 31), TODAY],
    ["not when it sent too little before", history([0, 0], { 31: [19, 0], 0: [90, 90] }, 31), null],
    ["not by days with hardly any mail", history([100, 1], { 1: [2, 2], 0: [2, 2] }), null],
  ])("%s", (_, days, startedDay) => {
    expect(judge(days)?.startedDay ?? null).toBe(startedDay);
  });

  test("with what it holds so far, and what is usual", () => {
    expect(judge(history([100, 1], { 1: [100, 80], 0: [100, 90] }))).toEqual({
      key: "own",
      state: "started",
      day: TODAY,
      startedDay: TODAY - 1,
      messages: 200,
      failing: 170,
      share: 0.85,
      usualShare: 0.01,
    });
  });

  test("not before enough reports about its day are in", () => {
    const days = history([100, 1], { 0: [100, 90] });
    expect(judge(days, undefined, { isComplete: (day) => day < TODAY })).toBeNull();
  });

  test("without what was forwarded", () => {
    const forwarded = history([100, 0]).map((day) =>
      day.day === TODAY ? { ...day, aligned: 10, forwarded: 90 } : day,
    );
    expect(judge(forwarded)).toBeNull();
  });
});

describe("an incident that is open", () => {
  const open = { startedDay: TODAY - 4, endedDay: null, share: 0.3, usualShare: 0.01 };
  const since = (share: number): readonly DayMail[] =>
    history([100, 1], { 4: [100, 30], 3: [100, 30], 2: [100, 30], 1: [100, 30], 0: [100, 100 * share] });
  test.each<[string, number, FailureChange["state"] | null]>([
    ["goes on", 0.3, null],
    ["grows a little", 0.59, null],
    ["doubles", 0.6, "grew"],
    ["shrinks", 0.07, null],
    ["ends", 0.06, "ended"],
  ])("%s", (_, share, state) => {
    expect(judge(since(share), open)?.state ?? null).toBe(state);
  });

  test("has not doubled by a few messages", () => {
    const days = (many: number) =>
      history([100, 1], { 4: [100, 30], 3: [0, 0], 2: [0, 0], 1: [0, 0], 0: [many, many] });
    expect(judge(days(19), open)).toBeNull();
    expect(judge(days(20), open)).toMatchObject({ state: "grew" });
  });

  test("and has doubled is alerted with the new share", () => {
    expect(judge(since(0.6), open)).toMatchObject({
      state: "grew",
      share: 0.6,
      startedDay: TODAY - 4,
      usualShare: 0.01,
    });
  });

  test("has not ended while there is no mail", () => {
    expect(judge(history([100, 1], { 3: [0, 0], 2: [0, 0], 1: [0, 0], 0: [0, 0] }), open)).toBeNull();
  });

  test("does not start again when it has ended, but another one does", () => {
    const ended = { ...open, endedDay: TODAY - 2 };
    const days = (last: number) =>
      history([100, 1], { 4: [100, 30], 3: [100, 30], 2: [100, 0], 1: [100, 0], 0: [100, last] });
    expect(judge(days(0), ended)).toBeNull();
    expect(judge(days(30), ended)).toMatchObject({ state: "started", startedDay: TODAY, usualShare: 0.01 });
  });

  test("does not count as usual when it has ended", () => {
    const days = history([100, 1], { 7: [100, 60], 0: [100, 30] });
    const ended = { ...open, startedDay: TODAY - 7, endedDay: TODAY - 6 };
    expect(judge(days, ended)).toMatchObject({ state: "started", usualShare: 0.01 });
  });

  test("is what is usual after two months", () => {
    expect(judge(history([100, 30], { 0: [100, 0] }), { ...open, startedDay: TODAY - 61 })).toBeNull();
    expect(judge(since(0), { ...open, startedDay: TODAY - 60 })).toMatchObject({ state: "ended" });
  });

  test("and was never seen to end does not hide another one after two months", () => {
    const long = { ...open, startedDay: TODAY - 61 };
    expect(judge(history([100, 1], { 0: [100, 90] }), long)).toMatchObject({ state: "started", startedDay: TODAY });
  });

  test("does not end by a day with hardly any mail, but by several of them", () => {
    const broken = { ...open, share: 1 };
    const days = (few: number) =>
      history([100, 1], { 4: [100, 100], 3: [100, 100], 2: [100, 100], 1: [few, 0], 0: [few, 0] });
    expect(judge(days(9), broken)).toBeNull();
    expect(judge(days(10), broken)).toMatchObject({ state: "ended", day: TODAY });
  });
});

describe("a rise", () => {
  const change: FailureChange = {
    ...{ key: "own", state: "started", startedDay: TODAY, day: TODAY, share: 1, usualShare: 0.02 },
    ...{ messages: 150, failing: 150 },
  };
  const always = Array.from({ length: 20 }, (_, n) => ({ ...mail(TODAY - n, 150, 150), reporter: "small" }));
  const large = Array.from({ length: 19 }, (_, n) => ({ ...mail(TODAY - 1 - n, 10_000, 100), reporter: "large" }));

  test("is none when the only reporter so far always sees so much", () => {
    expect(isSeenByReporters(change, [...always, ...large])).toBe(false);
  });
  test("is one when a reporter sees more than it did", () => {
    const now = { ...mail(TODAY, 10_000, 4_000), reporter: "large" };
    const risen = { ...change, messages: 10_150, failing: 4_150 };
    expect(isSeenByReporters(risen, [...always, ...large, now])).toBe(true);
  });
  test("is one when a new reporter sees it, and when no reporter is known", () => {
    expect(isSeenByReporters(change, [{ ...mail(TODAY, 150, 150), reporter: "new" }])).toBe(true);
    expect(isSeenByReporters(change, [])).toBe(true);
  });
});
