import { describe, expect, test } from "bun:test";
import { isLearned, judgeNewcomer } from "./review-facts.ts";

const DAY = 20_000;
/** The days from `from` to `to` before the day in question, every `step` of them. */
const ago = (from: number, to = 1, step = 1): number[] => {
  const days: number[] = [];
  for (let n = from; n >= to; n -= step) days.push(DAY - n);
  return days;
};

describe("a domain is learned", () => {
  test.each<[string, enrolledAgo: number, reportedDays: number[], boolean]>([
    ["with seven days of reports in the week since its enrolment", 7, ago(7), true],
    ["not with six", 7, ago(6), false],
    ["not by the day itself and those after it", 7, [...ago(6), DAY, DAY + 1], false],
    ["not by seven reports about one day", 7, [...ago(6), DAY - 1, DAY - 1], false],
    ["not by a report about 1979", 3, [3_500, ...ago(3)], false],
    ["not by an old file", 3, [DAY - 200, ...ago(3)], false],
    ["not by many old files", 3, [...ago(400, 200), ...ago(3)], false],
    ["not by a few files of the last weeks before its week is over", 3, [...ago(3), ...ago(20, 15)], false],
    ["by the history that was imported when it was enrolled", 0, ago(14), true],
    ["when reports are rare, by seven of them since the enrolment", 60, ago(56, 8, 8), true],
    ["still, after a pause of months", 200, ago(200, 150), true],
    ["not while its record was not published", 60, ago(3), false],
  ])("%s", (_, enrolledAgo, reportedDays, expected) => {
    expect(isLearned({ enrolledDay: DAY - enrolledAgo, reportedDays }, DAY)).toBe(expected);
  });
});

const learning = {
  enrolledDay: DAY - 30,
  reportedDays: Array.from({ length: 30 }, (_, n) => DAY - 30 + n),
};
const NOW = { today: DAY, learning };

describe("a newcomer", () => {
  test.each([
    ["with enough mail is alerted", DAY, true, "alert"],
    ["with too little mail waits", DAY, false, "wait"],
    ["of seven days ago is alerted", DAY - 7, true, "alert"],
    ["of eight days ago is not alerted", DAY - 8, true, "reviewed"],
  ] as const)("%s", (_, firstDay, hasWeight, judgement) => {
    expect(judgeNewcomer({ firstDay, hasWeight }, NOW)).toBe(judgement);
  });

  test("on whose first day the domain was not learned yet is never alerted", () => {
    const few = { ...learning, reportedDays: [DAY - 3, DAY - 2, DAY - 1] };
    expect(judgeNewcomer({ firstDay: DAY, hasWeight: true }, { ...NOW, learning: few })).toBe("reviewed");
  });
});
