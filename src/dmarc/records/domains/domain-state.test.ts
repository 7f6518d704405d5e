import { describe, expect, test } from "bun:test";
import type { DomainStatus } from "./domain-store.ts";
import { enforcedCheckMs, nextStatus, nextDnsCheckMs, type Trigger, type CheckOutcome } from "./domain-state.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const NOW_MS = Date.UTC(2026, 0, 20);
const LONG_AGO_MS = NOW_MS - 100 * DAY_MS;
const MIDDLE = "019aa0d6-5b7e-7c31-9f4c-0d9a7fffffff";

const standing = (status: DomainStatus, badMinutesAgo: number | null) => ({
  id: MIDDLE,
  mode: "live" as const,
  status,
  badSinceMs: badMinutesAgo === null ? null : NOW_MS - badMinutesAgo * MINUTE_MS,
  createdAtMs: LONG_AGO_MS,
});

describe("a status", () => {
  type Row = readonly [DomainStatus, number | null, CheckOutcome, Trigger, DomainStatus, number | null];
  const rows: readonly Row[] = [
    // status, bad for minutes, verdict, trigger → status, bad for minutes
    ["pending", null, "good", "scheduled", "active", null],
    ["pending", null, "good", "manual", "active", null],
    ["pending", null, "good", "enrolled", "pending", null],
    ["pending", null, "bad", "enrolled", "pending", null],
    ["pending", null, "bad", "scheduled", "pending", null],
    ["pending", null, "bad", "manual", "action_required", null],
    ["active", null, "good", "scheduled", "active", null],
    ["active", null, "bad", "manual", "action_required", null],
    ["active", null, "bad", "scheduled", "active", 0],
    ["active", 29, "bad", "scheduled", "active", 29],
    ["active", 30, "bad", "scheduled", "action_required", null],
    ["active", 35, "good", "scheduled", "active", null],
    ["active", 35, "good", "manual", "active", null],
    ["active", 35, "indefinite", "scheduled", "active", 35],
    ["active", 35, "indefinite", "manual", "active", 35],
    ["action_required", null, "good", "scheduled", "active", null],
    ["action_required", null, "good", "manual", "active", null],
    ["action_required", null, "bad", "scheduled", "action_required", null],
    ["action_required", null, "bad", "manual", "action_required", null],
    ["pending", null, "indefinite", "manual", "pending", null],
    ["action_required", null, "indefinite", "manual", "action_required", null],
  ];
  test.each(rows)("%s, bad for %p minutes, %s by a %s check", (status, badFor, verdict, trigger, next, nextBadFor) => {
    expect(nextStatus(standing(status, badFor), verdict, { trigger, nowMs: NOW_MS })).toEqual({
      status: next,
      badSinceMs: nextBadFor === null ? null : NOW_MS - nextBadFor * MINUTE_MS,
    });
  });
});

describe("the next check comes", () => {
  const outlook = { ...standing("active", null), isIndefinite: false, unconfirmedSinceMs: null, enforcedEveryMs: null };
  const enforced = { ...outlook, enforcedEveryMs: HOUR_MS };
  test.each([
    ["in a day for an active domain", outlook, DAY_MS],
    ["in a day when action is required", { ...outlook, status: "action_required" as const }, DAY_MS],
    [
      "in an hour while it is new",
      { ...outlook, status: "pending" as const, createdAtMs: NOW_MS - 13 * DAY_MS },
      HOUR_MS,
    ],
    ["in a day when nobody publishes anything", { ...outlook, status: "pending" as const }, DAY_MS],
    ["in an hour when its policy is enforced", enforced, HOUR_MS],
    [
      "in an hour when its policy is enforced and no reports come",
      { ...enforced, status: "action_required" as const },
      HOUR_MS,
    ],
    ["in a day when somebody else's policy is enforced", { ...enforced, status: "pending" as const }, DAY_MS],
    [
      "in 35 minutes after a first bad answer, enforced or not",
      { ...enforced, unconfirmedSinceMs: NOW_MS },
      35 * MINUTE_MS,
    ],
    ["in half an hour when the DNS is silent", { ...outlook, isIndefinite: true }, 30 * MINUTE_MS],
    ["in 35 minutes after a first bad answer", { ...outlook, unconfirmedSinceMs: NOW_MS }, 35 * MINUTE_MS],
    ["35 minutes after the first one", { ...outlook, unconfirmedSinceMs: NOW_MS - 20 * MINUTE_MS }, 15 * MINUTE_MS],
    ["at once when that is over", { ...outlook, unconfirmedSinceMs: NOW_MS - DAY_MS }, MINUTE_MS],
  ])("%s", (_, given, waitMs) => {
    expect(Math.abs(nextDnsCheckMs(given, NOW_MS) - NOW_MS - waitMs)).toBeLessThan(5);
  });

  test("not for all domains at the same time, but within five percent", () => {
    const first = nextDnsCheckMs({ ...outlook, id: MIDDLE.replace("7fffffff", "00000000") }, NOW_MS);
    const last = nextDnsCheckMs({ ...outlook, id: MIDDLE.replace("7fffffff", "ffffffff") }, NOW_MS);
    expect([first - NOW_MS, last - NOW_MS]).toEqual([0.95 * DAY_MS, 1.05 * DAY_MS]);
  });
});

describe("domains with an enforced policy are checked", () => {
  test.each([
    [1, HOUR_MS],
    [6_000, HOUR_MS],
    [12_000, 2 * HOUR_MS],
    [1_000_000, DAY_MS],
  ])("of %d domains each one every %d ms", (domains, everyMs) => {
    expect(enforcedCheckMs(domains)).toBe(everyMs);
  });
});
