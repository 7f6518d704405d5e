import { expect, test } from "bun:test";
import { DAY_MS } from "../../foundation/base/days.ts";
import type { ListSpan } from "../../blocklist/target-history.ts";
import { slotsOf, troublesIn } from "./timeline-view.tsx";

const NOW_MS = Date.parse("2026-04-01T00:00:00Z");
const HOUR_MS = DAY_MS / 24;
const span = (state: ListSpan["state"], fromHours: number, toHours: number): ListSpan => ({
  state,
  fromMs: NOW_MS - fromHours * HOUR_MS,
  toMs: NOW_MS - toHours * HOUR_MS,
});
const drawn = (...spans: readonly ListSpan[]) =>
  slotsOf(spans, NOW_MS).map(({ state, from, width }) => [state, from, width]);

test.each<[string, readonly ListSpan[], unknown]>([
  ["nothing", [], []],
  ["the last day", [span("clean", 24, 0)], [["clean", 356, 4]]],
  ["what began before the 90 days from their first slot on", [span("clean", 3_000, 0)], [["clean", 0, 360]]],
  [
    "a listing of minutes as one slot, above what is clean",
    [span("clean", 24, 12.5), span("listed", 12.5, 12.3), span("clean", 12.3, 0)],
    [
      ["clean", 356, 1],
      ["listed", 357, 1],
      ["clean", 358, 2],
    ],
  ],
  [
    "listed above unknown in the same slot, and gaps as gaps",
    [span("unknown", 48, 42), span("unknown", 5, 4), span("listed", 4, 3)],
    [
      ["unknown", 352, 1],
      ["listed", 359, 1],
    ],
  ],
])("draws %s", (_, spans, expected) => {
  expect(drawn(...spans)).toEqual(expected as never);
});

test("a listing with pauses in checking is one trouble, and what is unknown another", () => {
  const spans = [
    span("clean", 100, 90),
    span("listed", 90, 80),
    span("bridged", 80, 50),
    span("listed", 50, 40),
    span("clean", 40, 30),
    span("unknown", 30, 20),
    span("listed", 20, 10),
  ];
  const shown = troublesIn(spans).map(({ state, fromMs, toMs, uncheckedMs }) => [
    state,
    (NOW_MS - fromMs) / HOUR_MS,
    (NOW_MS - toMs) / HOUR_MS,
    uncheckedMs / HOUR_MS,
  ]);
  expect(shown).toEqual([
    ["listed", 90, 40, 30],
    ["unknown", 30, 20, 0],
    ["listed", 20, 10, 0],
  ]);
});
