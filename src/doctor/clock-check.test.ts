import { expect, test } from "bun:test";
import { createTestClock } from "../testing/clock.ts";
import { createZoneResolver, type Zone } from "../testing/dns-zone.ts";
import { checkClock, type ClockSync, readClockSync, rootZoneDay } from "./clock-check.ts";

const rootOf = (serial: number): Zone => ({
  ".": {
    SOA: [
      {
        ...{ primary: "a.root-servers.net", mailbox: "nstld.verisign-grs.com", serial },
        ...{ refreshS: 1800, retryS: 900, expireS: 604_800, minimumS: 86_400 },
      },
    ],
  },
});

/** The test clock says 2026-01-01. */
const look = (zone: Zone, sync: ClockSync = "synchronized") =>
  checkClock({ clock: createTestClock(), resolver: createZoneResolver(zone), sync });

test.each<[string, Zone, ClockSync, string, RegExp]>([
  ["of today", rootOf(2026010101), "synchronized", "ok", /reports it as synchronized/],
  ["of four days ago, from a cache", rootOf(2025122800), "synchronized", "ok", /synchronized/],
  ["of five days ago", rootOf(2025122700), "synchronized", "fail", /root zone is of 2025-12-27.*about 5 days/],
  ["of tomorrow, beyond the date line", rootOf(2026010200), "synchronized", "ok", /synchronized/],
  ["of the day after tomorrow", rootOf(2026010300), "synchronized", "fail", /about 2 days.*timedatectl/],
  ["that is no date", rootOf(12345), "synchronized", "ok", /synchronized/],
  ["that is not known", { ".": "timeout" }, "synchronized", "ok", /synchronized/],
  [
    "of today, and nothing keeps the clock",
    rootOf(2026010100),
    "unsynchronized",
    "warn",
    /nothing synchronizes.*timesyncd/,
  ],
  ["of today, and the kernel does not say", rootOf(2026010100), null, "warn", /not known.*timedatectl/],
])("clock: a root zone %s", async (_, zone, sync, state, message) => {
  const found = await look(zone, sync);
  expect([found.check, found.state]).toEqual(["clock", state as "ok"]);
  expect(found.message).toMatch(message);
});

test.each([
  [2026010100, 20454],
  [2026139900, null],
  [0, null],
])("the serial %p is of day %p", (serial, day) => {
  expect(rootZoneDay(serial)).toBe(day);
});

test.if(process.platform === "linux")("the kernel says whether the clock is synchronized", () => {
  expect(["synchronized", "unsynchronized"]).toContain(readClockSync() ?? "not known");
});
