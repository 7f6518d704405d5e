import { describe, expect, test } from "bun:test";
import { findCampaign, type ForgedDay } from "./spoofing-campaign.ts";

/** Forged messages of successive days, the first one on day 100. */
const days = (...forged: readonly number[]): readonly ForgedDay[] =>
  forged.map((count, n) => ({ day: 100 + n, forged: count }));

describe("a campaign", () => {
  test.each<[string, readonly ForgedDay[], ReturnType<typeof findCampaign>]>([
    ["starts with a hundred messages", days(5, 5, 100), { startedDay: 102, day: 102, forged: 100 }],
    ["not with 99", days(5, 5, 99), null],
    ["holds all its days", days(5, 300, 0, 400), { startedDay: 101, day: 103, forged: 700 }],
    ["is none where as much is usual", days(...Array(30).fill(90), 400), null],
    [
      "is another one after two quiet weeks",
      days(300, ...Array(14).fill(0), 300),
      { startedDay: 115, day: 115, forged: 300 },
    ],
    [
      "is the same one after a pause of thirteen days",
      days(300, ...Array(13).fill(0), 300),
      { startedDay: 100, day: 114, forged: 600 },
    ],
  ])("%s", (_, forged, campaign) => {
    expect(findCampaign(forged, { fromDay: 90, messagesMin: 100 })).toEqual(campaign);
  });

  test("is none while fewer than seven days before it are known", () => {
    expect(findCampaign(days(300), { fromDay: 94, messagesMin: 100 })).toBeNull();
    expect(findCampaign(days(300), { fromDay: 93, messagesMin: 100 })).not.toBeNull();
  });
});
