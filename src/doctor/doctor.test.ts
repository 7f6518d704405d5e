import { describe, expect, test } from "bun:test";
import { createLog } from "../foundation/base/log.ts";
import { createTestClock } from "../testing/clock.ts";
import { Doctor, adviceOf } from "./doctor.ts";
// The checks declare their titles.
import "./open.ts";
import type { DoctorFinding } from "./doctor-check.ts";

const FINDINGS: readonly DoctorFinding[] = [
  { area: "Data", check: "database", state: "ok", message: "Writable. Run on." },
  { area: "Data", check: "backup", state: "warn", message: "No scheduled backups. Set POSTWARDEN_BACKUP_DIR to one." },
  { area: "Egress", check: "port", state: "fail", message: "Port 25 is closed." },
];

const start = () => {
  const clock = createTestClock();
  const logged: string[] = [];
  const waiting: Array<PromiseWithResolvers<readonly DoctorFinding[]>> = [];
  const doctor = new Doctor({ clock, log: createLog("warn", clock, (text) => logged.push(text)) }, () => {
    const next = Promise.withResolvers<readonly DoctorFinding[]>();
    waiting.push(next);
    return next.promise;
  });
  return { clock, doctor, waiting, logged };
};

describe("the doctor of the service", () => {
  test("runs once for all who ask at the same time, and keeps what it found, the worst first", async () => {
    const { doctor, waiting, clock } = start();
    expect(doctor.latestFindings()).toBeNull();
    const both = [doctor.run(), doctor.run()];
    expect([doctor.isRunning, waiting.length]).toEqual([true, 1]);
    waiting[0]?.resolve(FINDINGS);
    const [first, second] = await Promise.all(both);
    expect(first).toBe(second ?? null);
    expect(doctor.isRunning).toBe(false);
    const key = expect.stringMatching(/^[0-9a-f]{24}$/);
    expect(doctor.latestFindings()).toEqual({
      atMs: clock.nowMs(),
      findings: [
        {
          key,
          title: "Outgoing port 25",
          area: "Egress",
          severity: "fail",
          detail: "Port 25 is closed.",
          remedy: null,
        },
        {
          ...{ key, title: "Backups", area: "Data", severity: "warn", detail: "No scheduled backups." },
          remedy: "Set POSTWARDEN_BACKUP_DIR to one.",
        },
        { key, title: "Database", area: "Data", severity: "ok", detail: "Writable. Run on.", remedy: null },
      ],
    });
  });

  test("is not run again within 30 seconds, and by its schedule once a day", async () => {
    const { doctor, waiting, clock } = start();
    const runs = async () => {
      const due = doctor.runIfDue();
      waiting.at(-1)?.resolve([]);
      await due;
      return waiting.length;
    };
    expect(await runs()).toBe(1);
    await doctor.run();
    expect(waiting).toHaveLength(1);
    await clock.advance(30_000);
    void doctor.run();
    waiting.at(-1)?.resolve([]);
    await clock.advance(24 * 60 * 60_000 - 1);
    expect(await runs()).toBe(2);
    await clock.advance(1);
    expect(await runs()).toBe(3);
  });

  test("that fails keeps its last findings and says so in the log", async () => {
    const { doctor, waiting, clock, logged } = start();
    const first = doctor.run();
    waiting[0]?.resolve(FINDINGS);
    await first;
    await clock.advance(30_000);
    const second = doctor.run();
    waiting[1]?.reject(new Error("EACCES"));
    expect((await second)?.findings).toHaveLength(3);
    expect(logged.join()).toContain("EACCES");
    expect(doctor.isRunning).toBe(false);
  });
});

test.each([
  [
    "A. Most lists refuse. Set X to a resolver, such as https://a.example. Then run it.",
    "A. Most lists refuse.",
    /^Set X/,
  ],
  ["It is slow (3 s). Check the DNS servers.", "It is slow (3 s).", /^Check/],
  ["Run it.", "Run it.", null],
  ["It does Run away.", "It does Run away.", null],
])("%p is split where it says what to do", (message, detail, remedy) => {
  const advice = adviceOf({ area: "DNS", check: "unknown", state: "warn", message });
  expect(advice).toMatchObject({ title: "DNS", detail });
  if (remedy === null) expect(advice.remedy).toBeNull();
  else expect(advice.remedy).toMatch(remedy);
});
