import { describe, expect, test } from "bun:test";
import { type DayMail, findSpikes, judgeNewcomer, maySpike, NEWCOMER_SHARE_MIN } from "./alert-rules.ts";

const TODAY = 20_000;
const MEASURE = { today: TODAY, learnsFromDay: TODAY - 30, days: [], shareMin: NEWCOMER_SHARE_MIN };

describe("a newcomer", () => {
  const on = (day: number, messages: number) => [{ day, messages }];
  test.each([
    ["is told of with ten messages on a day", TODAY, on(TODAY, 10), on(TODAY, 90_000), "raise"],
    ["with nine of many waits", TODAY, on(TODAY, 9), on(TODAY, 901), "open"],
    ["with nine of 900 is 1 %", TODAY, on(TODAY, 9), on(TODAY, 900), "raise"],
    ["with one of a hundred is 1 %", TODAY, on(TODAY, 1), on(TODAY, 100), "raise"],
    ["with one of 101 waits", TODAY, on(TODAY, 1), on(TODAY, 101), "open"],
    ["without mail waits", TODAY, on(TODAY, 0), on(TODAY, 0), "open"],
    [
      "with ten messages over two days waits",
      TODAY,
      [...on(TODAY, 5), ...on(TODAY - 1, 5)],
      [...on(TODAY, 9000), ...on(TODAY - 1, 9000)],
      "open",
    ],
    [
      "in a day's first small part is held against the week before",
      TODAY,
      on(TODAY, 1),
      [...on(TODAY, 20), ...on(TODAY - 1, 7000)],
      "open",
    ],
    ["of seven days ago is news", TODAY - 7, on(TODAY - 7, 10), on(TODAY - 7, 10), "raise"],
    ["of eight days ago is history", TODAY - 8, on(TODAY - 7, 10), on(TODAY - 7, 10), "settled"],
  ])("%s", (_, firstDay, days, all, judgement) => {
    expect(judgeNewcomer({ firstDay, days }, { ...MEASURE, days: all })).toBe(judgement as never);
  });

  test.each([
    [TODAY - 7, "raise"],
    [TODAY - 6, "settled"],
  ])("when the first report is about day %p: %s", (learnsFromDay, judgement) => {
    const measure = { ...MEASURE, learnsFromDay };
    expect(judgeNewcomer({ firstDay: TODAY, days: on(TODAY, 500) }, measure)).toBe(judgement as never);
  });

  test("whose share does not count needs ten messages", () => {
    const measure = { ...MEASURE, days: on(TODAY, 9), shareMin: null };
    expect(judgeNewcomer({ firstDay: TODAY, days: on(TODAY, 9) }, measure)).toBe("open");
    expect(judgeNewcomer({ firstDay: TODAY, days: on(TODAY, 10) }, measure)).toBe("raise");
  });
});

describe("a failure spike", () => {
  const mail = (day: number, messages: number, failing: number, forwarded = 0): DayMail => ({
    day,
    messages: messages + forwarded,
    aligned: messages - failing,
    forwarded,
  });
  const week = (messages: number, failing: number) =>
    Array.from({ length: 7 }, (_, n) => mail(TODAY - 7 + n, messages, failing));
  const daysOf = (days: readonly DayMail[]) => findSpikes(days, TODAY).map(({ day }) => day);

  test.each([
    ["15 points is one", [...week(100, 0), mail(TODAY, 100, 15)], [TODAY]],
    ["14 points is none", [...week(100, 0), mail(TODAY, 100, 14)], []],
    ["15 points above a share that was bad before", [...week(100, 20), mail(TODAY, 100, 35)], [TODAY]],
    ["99 messages are too few", [...week(100, 0), mail(TODAY, 99, 99)], []],
    ["99 messages in the seven days before are too few", [mail(TODAY - 1, 99, 0), mail(TODAY, 100, 100)], []],
    ["100 messages on one of the days before are enough", [mail(TODAY - 7, 100, 0), mail(TODAY, 100, 100)], [TODAY]],
    ["eight days before does not count", [mail(TODAY - 8, 100, 0), mail(TODAY, 100, 100)], []],
    ["what was passed on does not count", [...week(100, 0), mail(TODAY, 100, 0, 900)], []],
    ["a day a week ago counts", [mail(TODAY - 8, 100, 0), mail(TODAY - 7, 100, 90)], [TODAY - 7]],
    ["a day before that is history", [mail(TODAY - 9, 100, 0), mail(TODAY - 8, 100, 90)], []],
    ["nothing is none", [], []],
  ])("%s", (_, days, spikes) => {
    expect(daysOf(days)).toEqual(spikes);
    if (spikes.length > 0) expect(maySpike(days)).toBe(true);
  });

  test("is told with both shares", () => {
    expect(findSpikes([...week(100, 1), mail(TODAY, 200, 46)], TODAY)).toEqual([
      { day: TODAY, messages: 200, failing: 46, previousMessages: 700, previousFailing: 7 },
    ]);
  });
});
