import { describe, expect, test } from "bun:test";
import { judgeNewcomer } from "./alert-rules.ts";

const TODAY = 20_000;
const learning = {
  enrolledDay: TODAY - 30,
  reportedDays: Array.from({ length: 30 }, (_, n) => TODAY - 30 + n),
};
const MEASURE = { today: TODAY, learning };

describe("a newcomer", () => {
  test.each([
    ["with enough mail is alerted", TODAY, true, "raise"],
    ["with too little mail waits", TODAY, false, "open"],
    ["of seven days ago is news", TODAY - 7, true, "raise"],
    ["of eight days ago is history", TODAY - 8, true, "settled"],
  ] as const)("%s", (_, firstDay, hasWeight, judgement) => {
    expect(judgeNewcomer({ firstDay, hasWeight }, MEASURE)).toBe(judgement);
  });

  test("on whose first day the domain was not learnt yet is settled", () => {
    const few = { ...learning, reportedDays: [TODAY - 3, TODAY - 2, TODAY - 1] };
    expect(judgeNewcomer({ firstDay: TODAY, hasWeight: true }, { ...MEASURE, learning: few })).toBe("settled");
  });
});
