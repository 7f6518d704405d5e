import { expect, test } from "bun:test";
import { isTimeZone } from "./time-zone.ts";

test.each(["Europe/Berlin", "UTC", "America/Argentina/Ushuaia", "Etc/GMT+5", "asia/kolkata"])(
  "%p is a zone",
  (name) => {
    expect(isTimeZone(name)).toBe(true);
  },
);

test.each(["", "+01:00", "-0530", "Berlin", "Europe/Berlin ", "Mars/Olympus", "x".repeat(10_000)])(
  "%p is none",
  (name) => {
    expect(isTimeZone(name)).toBe(false);
  },
);
