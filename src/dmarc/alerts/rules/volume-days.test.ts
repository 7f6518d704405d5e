import { describe, expect, test } from "bun:test";
import { judgeVolume, type VolumeDay } from "./volume-days.ts";

const TODAY = 200;
const MEASURE = {
  today: TODAY,
  messagesMin: 500,
  factor: 5,
  activeDaysMin: 4,
  reportedDays: new Set(Array.from({ length: 60 }, (_, n) => TODAY - n)),
};
const range = (from: number, to: number, messages: number): readonly VolumeDay[] =>
  Array.from({ length: to - from + 1 }, (_, n) => ({ day: from + n, messages }));
const STEADY = range(TODAY - 50, TODAY - 3, 90);
const FIRST = TODAY - 50;
const DAY = TODAY - 2;
const started = (messages: number, usual = 90) => ({
  ...{ state: "started", startedDay: DAY, day: DAY, messages, usual },
});

describe("the start of an incident", () => {
  test.each<[string, readonly VolumeDay[], number, unknown]>([
    [
      "is a day of 500 messages, five times the most before",
      [...STEADY, { day: DAY, messages: 500 }],
      FIRST,
      started(500),
    ],
    ["not one of 499", [...STEADY, { day: DAY, messages: 499 }], FIRST, null],
    ["not one of less than five times", [...range(FIRST, DAY - 1, 200), { day: DAY, messages: 999 }], FIRST, null],
    [
      "counts all its days",
      [...STEADY, { day: DAY, messages: 900 }, { day: DAY + 1, messages: 10 }, { day: DAY + 2, messages: 600 }],
      FIRST,
      { state: "started", startedDay: DAY, day: DAY + 2, messages: 1_510, usual: 90 },
    ],
    ["is none in the first five weeks", [...STEADY, { day: DAY, messages: 900 }], DAY - 34, null],
    ["is one after five weeks", [...STEADY, { day: DAY, messages: 900 }], DAY - 35, started(900)],
    [
      "is none of a sender with three days of mail before",
      [
        { day: 150, messages: 1 },
        { day: 170, messages: 9 },
        { day: 180, messages: 9 },
        { day: DAY, messages: 900 },
      ],
      FIRST,
      null,
    ],
    [
      "is none of a sender of as much four weeks ago",
      [...STEADY, { day: DAY - 28, messages: 4_000 }, { day: DAY, messages: 9_000 }],
      FIRST,
      null,
    ],
    ["is none when the report came more than a week late", [...STEADY, { day: TODAY - 8, messages: 900 }], FIRST, null],
  ])("%s", (_, days, firstDay, change) => {
    expect(judgeVolume(days, [], firstDay, MEASURE)).toEqual(change as ReturnType<typeof judgeVolume>);
  });

  test("is none while reports cover fewer than 21 of the days before", () => {
    const days = [...STEADY, { day: DAY, messages: 900 }];
    const covered = (count: number) => new Set(Array.from({ length: count }, (_, n) => DAY - 1 - n));
    expect(judgeVolume(days, [], FIRST, { ...MEASURE, reportedDays: covered(20) })).toBeNull();
    expect(judgeVolume(days, [], FIRST, { ...MEASURE, reportedDays: covered(21) })).not.toBeNull();
  });
});

describe("an incident that was alerted", () => {
  const SINCE = TODAY - 5;
  const open = { startedDay: SINCE, day: SINCE, messages: 900, usual: 90, isEnded: false };
  const before = range(FIRST, SINCE - 1, 90);

  test.each<[string, readonly number[], number, unknown]>([
    ["says nothing while nothing changes", [900], TODAY - 3, null],
    ["changes its totals when a late report adds to it", [1_200], TODAY - 3, ["grew", SINCE, 1_200]],
    ["ends after two complete days", [900, 90, 90], TODAY, ["ended", SINCE, 900]],
    ["goes on after a quiet day", [900, 90, 800], TODAY - 2, ["grew", SINCE + 2, 1_790]],
  ])("%s", (_, since, today, change) => {
    const days = [...before, ...since.map((messages, n) => ({ day: SINCE + n, messages }))];
    const found = judgeVolume(days, [open], FIRST, { ...MEASURE, today });
    expect(found && [found.state, found.day, found.messages]).toEqual(change as never);
  });

  test("ends without a word after four weeks, and its days are not usual", () => {
    const old = { ...open, startedDay: TODAY - 29, day: TODAY - 20 };
    expect(judgeVolume(range(FIRST, TODAY, 90), [old], FIRST, MEASURE)).toBeNull();
    const again = [
      ...range(FIRST, TODAY - 31, 90),
      ...range(TODAY - 29, TODAY - 20, 900),
      ...range(TODAY - 19, DAY - 1, 90),
      { day: DAY, messages: 900 },
    ];
    expect(judgeVolume(again, [{ ...old, isEnded: true }], FIRST, MEASURE)).toEqual(
      started(900) as ReturnType<typeof judgeVolume>,
    );
  });
});
