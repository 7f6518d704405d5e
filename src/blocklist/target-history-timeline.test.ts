import { describe, expect, test } from "bun:test";
import { DAY_MS } from "../foundation/base/days.ts";
import type { Blocklist } from "./lists/blocklist.ts";
import { readEmbeddedCatalogue } from "./lists/catalogue.ts";
import type { CheckHead } from "./listing-store.ts";
import { buildTimelines, sampleOf, timelineStartMs } from "./target-history.ts";

const HOUR_MS = 60 * 60_000;
const NOW_MS = Date.parse("2026-04-01T00:00:00Z");
const LISTS = ["spamhaus-zen", "spamcop", "spamhaus-dbl"].flatMap((id): Blocklist[] =>
  readEmbeddedCatalogue().lists.filter((list) => list.id === id),
);

interface Stored {
  /** Hours before now. */
  readonly ago: number;
  readonly listed?: readonly string[];
  readonly clean?: readonly string[];
  readonly added?: readonly string[];
  readonly results?: ReadonlyArray<{ readonly list: string; readonly outcome: string; readonly reason?: string }>;
  readonly isOld?: true;
  readonly isChange?: true;
}

/** A history, oldest first, as it is stored. */
const historyOf = (stored: readonly Stored[]) => {
  const heads = stored
    .map(({ ago, isChange }, at): CheckHead => ({
      id: `c${at}`,
      finishedAtMs: NOW_MS - ago * HOUR_MS,
      isChange: isChange === true ? 1 : 0,
    }))
    .toReversed();
  const bodies = new Map(
    stored.map(({ listed = [], clean = ["spamhaus-zen", "spamcop"], added = [], results = [], isOld }, at) => [
      `c${at}`,
      JSON.stringify({
        ...{ listed_on: listed, added, counts: { not_listed: clean.length } },
        ...(isOld === true ? {} : { not_listed: clean }),
        results: results.map((one) => ({ reason: null, remedy: null, ...one })),
      }),
    ]),
  );
  return { heads, bodies };
};

const timelinesOf = (stored: readonly Stored[], mutedLists: readonly string[] = []) =>
  buildTimelines({ target: { kind: "ipv4", mutedLists }, lists: LISTS, nowMs: NOW_MS, ...historyOf(stored) });

const spansOf = (list: string, stored: readonly Stored[]) =>
  timelinesOf(stored)
    .find((timeline) => timeline.list === list)
    ?.spans.map(({ state, fromMs, toMs }) => [state, (NOW_MS - fromMs) / HOUR_MS, (NOW_MS - toMs) / HOUR_MS]);

describe("a timeline", () => {
  test.each<[string, readonly Stored[], unknown]>([
    ["nothing was checked", [], []],
    ["is clean from the first check until now", [{ ago: 12 }, { ago: 6 }], [["clean", 12, 0]]],
    [
      "is listed from the check that found it",
      [{ ago: 12 }, { ago: 7, listed: ["spamcop"], clean: [], isChange: true }, { ago: 1 }],
      [
        ["clean", 12, 7],
        ["listed", 7, 1],
        ["clean", 1, 0],
      ],
    ],
    [
      "is unknown while the list refuses us",
      [{ ago: 12 }, { ago: 6, clean: [], results: [{ list: "spamcop", outcome: "refused" }] }],
      [
        ["clean", 12, 6],
        ["unknown", 6, 0],
      ],
    ],
    [
      "stays listed while the list does not respond",
      [
        { ago: 12, listed: ["spamcop"], clean: [] },
        { ago: 6, listed: ["spamcop"], clean: [], results: [{ list: "spamcop", outcome: "failed" }] },
      ],
      [["listed", 12, 0]],
    ],
    [
      "has a gap where nothing was checked, and none from the last check on when that is long ago",
      [{ ago: 60 }, { ago: 54 }, { ago: 26 }, { ago: 20 }],
      [
        ["clean", 60, 54],
        ["clean", 26, 20],
      ],
    ],
    [
      "has a gap where the list was muted or not in use",
      [{ ago: 12 }, { ago: 8, clean: ["spamhaus-zen"] }, { ago: 2 }],
      [
        ["clean", 12, 8],
        ["clean", 2, 0],
      ],
    ],
    [
      "is one listing through a pause in checking",
      [
        { ago: 70, listed: ["spamcop"], added: ["spamcop"], clean: [], isChange: true },
        { ago: 64, listed: ["spamcop"], clean: [] },
        { ago: 10, listed: ["spamcop"], clean: [] },
      ],
      [
        ["listed", 70, 64],
        ["bridged", 64, 10],
        ["listed", 10, 0],
      ],
    ],
    [
      "is not one listing when the check after the pause found a new one",
      [
        { ago: 64, listed: ["spamcop"], clean: [] },
        { ago: 10, listed: ["spamcop"], added: ["spamcop"], clean: [] },
      ],
      [
        ["listed", 64, 64],
        ["listed", 10, 0],
      ],
    ],
    [
      "is not bridged where it was not listed before or after the pause",
      [{ ago: 64 }, { ago: 10, listed: ["spamcop"], added: ["spamcop"], clean: [] }],
      [
        ["clean", 64, 64],
        ["listed", 10, 0],
      ],
    ],
    ["a muted listing is nothing", [{ ago: 2, clean: [], results: [{ list: "spamcop", outcome: "listed" }] }], []],
    ["believes checks of older versions", [{ ago: 6, isOld: true }], [["clean", 6, 0]]],
    ["older checks without a response say nothing", [{ ago: 6, isOld: true, clean: [] }], []],
  ])("%s", (_, stored, expected) => {
    expect(spansOf("spamcop", stored)).toEqual(expected as never);
  });

  test.each<[string, readonly Stored[], number]>([
    ["never", [{ ago: 6 }], 0],
    [
      "once, through two pauses",
      [
        { ago: 100, listed: ["spamcop"], added: ["spamcop"], clean: [], isChange: true },
        { ago: 60, listed: ["spamcop"], clean: [] },
        { ago: 10, listed: ["spamcop"], clean: [] },
      ],
      1,
    ],
    ["once, since before the first check", [{ ago: 6, listed: ["spamcop"], clean: [] }], 1],
    [
      "twice, with a delisting between",
      [
        { ago: 9, listed: ["spamcop"], added: ["spamcop"], clean: [], isChange: true },
        { ago: 8, isChange: true },
        { ago: 7, listed: ["spamcop"], added: ["spamcop"], clean: [], isChange: true },
      ],
      2,
    ],
  ])("counts listings by their changes: %s", (_, stored, expected) => {
    const [timeline] = timelinesOf(stored).filter(({ list }) => list === "spamcop");
    expect(timeline?.listings).toBe(expected);
  });

  test("names the lists of this kind of target, listed ones first, unknown ones with the reason", () => {
    const refused = { list: "spamhaus-zen", outcome: "refused", reason: "It refuses public resolvers." };
    const timelines = timelinesOf([{ ago: 1, listed: ["spamcop"], clean: [], results: [refused] }], ["spamcop"]);
    expect(timelines).toMatchObject([
      { list: "spamcop", name: "SpamCop Blocking List", now: "listed", isMuted: true, reason: null },
      {
        list: "spamhaus-zen",
        now: "unknown",
        isMuted: false,
        reason: "It refuses public resolvers.",
        severity: "critical",
      },
    ]);
    expect(timelinesOf([]).map(({ now }) => now)).toEqual(["none", "none"]);
  });

  test.each([
    ["spamcop", "spamhaus-sbl", ["spamcop", "spamhaus-zen"]],
    ["spamhaus-sbl", "spamcop", ["spamhaus-zen", "spamcop"]],
  ])("of two clean lists begins with the one that listed longer: %s", (longer, shorter, order) => {
    const stored = [{ ago: 12, listed: [longer], clean: [] }, { ago: 6, listed: [shorter], clean: [] }, { ago: 5 }];
    expect(timelinesOf(stored).map(({ list, now }) => [list, now])).toEqual(order.map((list) => [list, "clean"]));
  });
});

describe("the checks that are read", () => {
  const hourly = (days: number, isChange: (hour: number) => boolean = () => false): CheckHead[] =>
    Array.from({ length: days * 24 }, (_, hour) => ({
      id: `c${hour}`,
      finishedAtMs: NOW_MS - hour * HOUR_MS,
      isChange: isChange(hour) ? 1 : 0,
    }));

  test("are the last of each six hours (of twelve after two weeks) and every change", () => {
    expect(sampleOf(hourly(1), NOW_MS)).toEqual(["c0", "c1", "c7", "c13", "c19"]);
    expect(
      sampleOf(
        hourly(1, (hour) => hour === 3),
        NOW_MS,
      ),
    ).toEqual(["c0", "c1", "c3", "c7", "c13", "c19"]);
  });

  test("are bounded, whatever a listing does", () => {
    expect(sampleOf(hourly(90), NOW_MS).length).toBe(209);
    expect(
      sampleOf(
        hourly(90, () => true),
        NOW_MS,
      ).length,
    ).toBeLessThanOrEqual(710);
    expect(timelineStartMs(NOW_MS)).toBe(NOW_MS - 90 * DAY_MS);
  });
});
