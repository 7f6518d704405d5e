import { describe, expect, test } from "bun:test";
import { judgeNewcomer, NEWCOMER_SHARE_MIN } from "./alert-rules.ts";

const TODAY = 20_000;
const KNOWN = {
  enrolledDay: TODAY - 30,
  reportedDays: Array.from({ length: 30 }, (_, n) => TODAY - 30 + n),
};
const MEASURE = { today: TODAY, learning: KNOWN, days: [], shareMin: NEWCOMER_SHARE_MIN };

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

  test("on whose first day the domain was not learnt yet is settled", () => {
    const learning = { ...KNOWN, reportedDays: [TODAY - 3, TODAY - 2, TODAY - 1] };
    expect(judgeNewcomer({ firstDay: TODAY, days: on(TODAY, 500) }, { ...MEASURE, learning })).toBe("settled");
  });

  test("whose share does not count needs ten messages", () => {
    const measure = { ...MEASURE, days: on(TODAY, 9), shareMin: null };
    expect(judgeNewcomer({ firstDay: TODAY, days: on(TODAY, 9) }, measure)).toBe("open");
    expect(judgeNewcomer({ firstDay: TODAY, days: on(TODAY, 10) }, measure)).toBe("raise");
  });
});
