import { describe, expect, test } from "bun:test";
import type { DayMail } from "./alert-rules.ts";
import { findSpikes, maySpike, type ReporterDay } from "./alert-spikes.ts";

const TODAY = 20_000;

describe("a failure spike", () => {
  const mail = (day: number, messages: number, failing: number, forwarded = 0): DayMail => ({
    day,
    messages: messages + forwarded,
    aligned: messages - failing,
    forwarded,
  });
  const week = (messages: number, failing: number) =>
    Array.from({ length: 7 }, (_, n) => mail(TODAY - 7 + n, messages, failing));
  /** All of it told by one reporter. */
  const toldBy = (reporter: string, days: readonly DayMail[]): ReporterDay[] =>
    days.map(({ day, messages, aligned }) => ({ reporter, day, messages, aligned }));
  const find = (days: readonly DayMail[]) => findSpikes(days, toldBy("a", days), TODAY);
  const daysOf = (days: readonly DayMail[]) => find(days).spikes.map(({ day }) => day);

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
    expect(find([...week(100, 1), mail(TODAY, 200, 46)]).spikes).toEqual([
      { day: TODAY, messages: 200, failing: 46, previousMessages: 700, previousFailing: 7 },
    ]);
  });
});

describe("like is compared with like", () => {
  /** Messages and failing ones of each reporter. */
  type Told = Readonly<Record<string, readonly [messages: number, failing: number]>>;
  const LARGE = [10_000, 100] as const;
  const SMALL = [150, 150] as const;
  const find = (day: number, today: Told, usual: Told = { large: LARGE, small: SMALL }) => {
    const told = Array.from({ length: 8 }, (_, n) => day - 7 + n).flatMap((at) =>
      Object.entries(at === day ? today : usual).map(([reporter, [messages, failing]]) => ({
        ...{ reporter, day: at, messages },
        aligned: messages - failing,
      })),
    );
    const days = [...Map.groupBy(told, (row) => row.day)].map(([at, rows]) => ({
      day: at,
      messages: rows.reduce((sum, { messages }) => sum + messages, 0),
      aligned: rows.reduce((sum, { aligned }) => sum + aligned, 0),
      forwarded: 0,
    }));
    const { spikes, isOpen } = findSpikes(days, told, TODAY);
    return spikes.length > 0 ? "spike" : isOpen ? "open" : "none";
  };

  test.each<[string, Told, today: string, later: string]>([
    ["a small reporter that always fails comes first", { small: SMALL }, "open", "none"],
    ["and the large one after it", { small: SMALL, large: LARGE }, "none", "none"],
    ["it has ten times its usual mail", { small: [1_500, 1_500] }, "open", "none"],
    ["a reporter that is new comes first", { fresh: [150, 150] }, "open", "none"],
    ["one that is new beside the others", { fresh: [150, 150], small: SMALL, large: LARGE }, "none", "none"],
    ["the large one falls from 99 % to 70 %", { large: [10_000, 3_000] }, "spike", "spike"],
    ["with the small one", { small: SMALL, large: [10_000, 3_000] }, "spike", "spike"],
    ["it told of a third of its mail", { large: [3_000, 900] }, "open", "spike"],
    ["much fails at one that is new", { fresh: [6_000, 6_000], small: SMALL, large: LARGE }, "spike", "spike"],
  ])("when %s", (_, told, today, later) => {
    expect([find(TODAY, told), find(TODAY - 1, told), find(TODAY - 2, told)]).toEqual([today, today, later]);
  });

  test("a reporter that hardly told anything before is measured by all", () => {
    expect(find(TODAY, { large: LARGE, tiny: [9_000, 9_000] }, { large: LARGE, tiny: [1, 1] })).toBe("spike");
  });

  test("half of a usual day is enough, whatever one day of the week was like", () => {
    expect(find(TODAY, { large: [5_000, 2_000] }, { large: LARGE })).toBe("spike");
    expect(find(TODAY, { large: [4_999, 2_000] }, { large: LARGE })).toBe("open");
  });
});
