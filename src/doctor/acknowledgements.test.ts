import { describe, expect, test } from "bun:test";
import { DAY_MS } from "../foundation/base/days.ts";
import { openDb } from "../foundation/db/open.ts";
import { createTestClock } from "../testing/clock.ts";
import { MachineAcknowledgementStore } from "./acknowledgement-store.ts";
import { MachineAcknowledgements } from "./acknowledgements.ts";
import type { DoctorAdvice } from "./doctor.ts";
import { warningKey } from "./doctor-check.ts";

const keyOf = (message: string, check = "backup") => warningKey({ check, message });

test.each([
  [
    "7 in /b, the last from 2026-11-26T03:00:00.000Z, 5 hours ago.",
    "8 in /b, the last from 2026-11-27T03:00:00Z, 29 hours ago.",
    true,
  ],
  ["It needs 12.5 MB (of 3 GB).", "It needs 13 MB (of 4 GB).", true],
  ["192.0.2.1 has no reverse name.", "192.0.2.2 has no reverse name.", false],
  ["2001:db8::1 is listed.", "2001:db8::2 is listed.", false],
  ["/disk1 is almost full.", "/disk2 is almost full.", false],
  ["They are on one file system.", "One is due every day.", false],
])("%p and %p are the same warning: %p", (one, other, isSame) => {
  expect(keyOf(one) === keyOf(other)).toBe(isSame);
});

test("two checks with the same words are two warnings", () => {
  expect(keyOf("It is slow.", "dns")).not.toBe(keyOf("It is slow.", "clock"));
});

const open = () => {
  const clock = createTestClock();
  const opened = openDb(":memory:");
  if (!opened.ok) throw new Error("no database");
  const db = opened.value;
  const advice = (key: string, severity: "warn" | "fail"): DoctorAdvice => ({
    ...{ key, severity, title: key, area: "Data", detail: "", remedy: null },
  });
  const findings = [advice("broken", "fail"), advice("a", "warn"), advice("b", "warn")];
  const doctor = { isRunning: false, latestFindings: () => ({ atMs: 5, findings }) };
  const store = new MachineAcknowledgementStore(db);
  const acknowledgements = new MachineAcknowledgements({ db, clock }, { store, doctor });
  const acknowledge = (warning: string, days: 7 | 30 = 7) =>
    acknowledgements.acknowledge({ warning, days, reason: "The provider copies the disk.", by: "user:u" });
  return { clock, db, acknowledgements, acknowledge };
};

describe("a warning about this machine", () => {
  test("is acknowledged for a reason until a time, and again for longer", async () => {
    const { clock, acknowledgements, acknowledge } = open();
    await acknowledge("a");
    await acknowledge("a", 30);
    const { warnings, acknowledged } = acknowledgements.state();
    expect(warnings.map(({ key }) => key)).toEqual(["b"]);
    expect(acknowledged.map(({ acknowledgement }) => acknowledgement)).toEqual([
      {
        ...{ warning: "a", reason: "The provider copies the disk.", acknowledgedBy: "user:u" },
        ...{ acknowledgedAtMs: clock.nowMs(), untilMs: clock.nowMs() + 30 * DAY_MS },
      },
    ]);
  });

  test("shows again when the time is over or somebody withdraws", async () => {
    const { clock, db, acknowledgements, acknowledge } = open();
    const openKeys = () => acknowledgements.state().warnings.map(({ key }) => key);
    await acknowledge("a");
    await acknowledge("b", 30);
    await clock.advance(7 * DAY_MS);
    expect(openKeys()).toEqual(["a"]);
    await acknowledgements.withdraw("b");
    expect(openKeys()).toEqual(["a", "b"]);
    await expect(acknowledgements.withdraw("b")).rejects.toMatchObject({ code: "not_found" });
    await acknowledge("b");
    expect(db.sqlite.query("SELECT warning FROM machine_acknowledgements").all()).toEqual([{ warning: "b" }]);
  });

  test.each(["c", "broken"])(
    "that the last check did not find, or that is a failure, cannot be acknowledged: %p",
    async (key) => {
      const { acknowledgements, acknowledge } = open();
      await expect(acknowledge(key)).rejects.toMatchObject({ code: "not_found" });
      const { failures, acknowledged } = acknowledgements.state();
      expect([failures.map((failure) => failure.key), acknowledged]).toEqual([["broken"], []]);
    },
  );
});
