import { describe, expect, test } from "bun:test";
import { inListOrder, type RecordRow, type RecordStore } from "../queries/record-store.ts";
import { judgeHistory, type MailDay, readCauseRecords } from "./failure-history.ts";

const day = (on: number, messages: number, failing = 0): MailDay => ({
  day: on,
  messages,
  aligned: messages - failing,
  forwarded: 0,
});
const days = (from: number, to: number, messages: number, failing = 0): MailDay[] =>
  Array.from({ length: to - from }, (_, at) => day(from + at, messages, failing));

describe("failures of a sender", () => {
  test("are none where all passes, or failing mail was forwarded", () => {
    expect(judgeHistory(days(0, 30, 10))).toBeNull();
    expect(judgeHistory([{ day: 1, messages: 10, aligned: 4, forwarded: 6 }])).toBeNull();
  });

  test("begin on the day on which a sender that used to pass broke", () => {
    expect(judgeHistory([...days(0, 20, 30), ...days(20, 25, 30, 30)])).toEqual({
      ...{ sinceDay: 20, lastDay: 24, messages: 150, failing: 150 },
      ...{ hasPassedBefore: true, hasRecovered: false },
    });
  });

  test("are old where the sender never passed", () => {
    expect(judgeHistory(days(0, 30, 30, 30))).toMatchObject({
      sinceDay: 0,
      hasPassedBefore: false,
      hasRecovered: false,
    });
  });

  test("of single messages do not hide a new incident, nor an earlier one that was fixed", () => {
    const noise = days(0, 60, 200).map((one) => (one.day % 3 === 0 ? day(one.day, 200, 1) : one));
    const broken = noise.map((one) => (one.day >= 50 ? day(one.day, 200, 150) : one));
    expect(judgeHistory(broken)).toMatchObject({ sinceDay: 50, hasPassedBefore: true });
    const twice = broken.map((one) => (one.day >= 10 && one.day < 20 ? day(one.day, 200, 150) : one));
    expect(judgeHistory(twice)).toMatchObject({ sinceDay: 50 });
  });

  test.each<[string, MailDay[], boolean]>([
    ["mail of two days passes", [...days(0, 20, 30, 30), ...days(20, 22, 30)], true],
    ["mail of a day passes, whose reports may still arrive", [...days(0, 20, 30, 30), day(20, 90)], false],
    ["it stopped sending", days(0, 20, 30, 30), false],
    ["a few messages passed", [...days(0, 20, 30, 30), ...days(20, 24, 2)], false],
    ["ten messages passed", [...days(0, 20, 30, 30), ...days(20, 25, 2)], true],
    ["a tenth failed, and too few passed to tell", [...days(0, 20, 30, 3), ...days(20, 22, 12)], false],
    ["a tenth failed, and enough passed", [...days(0, 20, 30, 3), ...days(20, 23, 12)], true],
    ["one message fails now and then", [...days(0, 20, 30, 30), ...days(20, 29, 100), day(29, 100, 1)], true],
    [
      "it fails every Monday, and it was not Monday again",
      days(0, 26, 100).map((one) => (one.day % 7 === 0 ? day(one.day, 100, 50) : one)),
      false,
    ],
    [
      "it failed every Monday, and passed on this one",
      days(0, 29, 100).map((one) => (one.day % 7 === 0 && one.day < 28 ? day(one.day, 100, 50) : one)),
      true,
    ],
  ])("are over or not: %s", (_, mail, hasRecovered) => {
    expect(judgeHistory(mail)?.hasRecovered).toBe(hasRecovered);
  });
});

const row = (source: number, key: Pick<RecordRow, "day" | "rank" | "count">): RecordRow => ({
  ...key,
  ...{ source, report: source, position: 0, reportRef: `r${source}`, reportId: null, beginMs: 0, endMs: 0 },
  ...{
    sourceIp: "192.0.2.1",
    disposition: null,
    dkim: null,
    spf: null,
    isAligned: 0,
    isForwarded: 0,
    headerFrom: null,
  },
  ...{
    body: '{"reasons":[],"dkimResults":[],"spfResults":[]}',
    reverseName: null,
    isConfirmed: null,
    asn: null,
    asName: null,
    country: null,
  },
  ...{ org: null, author: "", authenticatedFrom: null },
});

test("the records of 12,000 sources are read in steps, and the first ones of all are taken", () => {
  const rows = Array.from({ length: 12_000 }, (_, n) => row(n, { day: 100 + ((n * 7) % 30), rank: n % 11, count: n }));
  const asked: number[] = [];
  const records: RecordStore["records"] = (scope, _window, _conditions, limit) => {
    const sources = new Set("sources" in scope ? scope.sources : []);
    asked.push(sources.size);
    return rows
      .filter(({ source }) => sources.has(source))
      .toSorted(inListOrder)
      .slice(0, limit);
  };
  const numbers = rows.map(({ source }) => source);
  const work = readCauseRecords({ records }, numbers, { fromDay: 100, toDay: 130 }, { aligned: false, limit: 50 });
  let turns = 0;
  let step = work.next();
  for (; step.done !== true; step = work.next()) turns += 1;
  const expected = rows.toSorted(inListOrder).slice(0, 50);
  expect(step.value.map(({ count }) => count)).toEqual(expected.map(({ count }) => count));
  expect([asked, turns]).toEqual([[5_000, 5_000, 2_000], 2]);
});
