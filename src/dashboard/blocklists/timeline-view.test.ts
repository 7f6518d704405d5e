import { expect, test } from "bun:test";
import { DAY_MS } from "../../foundation/base/days.ts";
import type { ListSpan } from "../../blocklist/target-history.ts";
import { slotsOf } from "./timeline-view.tsx";

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
