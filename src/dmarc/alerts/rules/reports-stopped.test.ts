import { describe, expect, test } from "bun:test";
import { createDmarcAlertHarness, expectDocumented, enrolSettled } from "../../../testing/dmarc-alert-harness.ts";

const newHarness = createDmarcAlertHarness();
const HOUR_MS = 60 * 60_000;
const OWN = "dkim:example.com";

describe("reports that stop", () => {
  test("are not alerted in the usual gaps of a quiet domain, but after three of them", async () => {
    const harness = newHarness();
    const { number } = harness.add("example.com");
    for (let n = 0; n < 10; n++) {
      harness.report(number, harness.today + 4 * n, OWN, { messages: 3, aligned: 3 });
      for (let hour = 0; hour < 96; hour += 6) {
        await harness.clock.advance(6 * HOUR_MS);
        await harness.job.run();
      }
    }
    expect(harness.raised()).toEqual([]);
    await harness.clock.advance(8 * 24 * HOUR_MS);
    await harness.job.run();
    expect(harness.raised()).toEqual(["reports_stopped 2026-12-26"]);
  });

  test("are not alerted for a domain without mail of its own: receivers report about it only when it is spoofed", async () => {
    const harness = newHarness();
    const { number } = harness.add("example.com");
    for (let n = 0; n < 10; n++) {
      harness.report(number, harness.today + n, "198.51.100.7 -/- - -", { messages: 3 });
      await harness.clock.advance(24 * HOUR_MS);
      await harness.job.run();
    }
    await harness.clock.advance(30 * 24 * HOUR_MS);
    await harness.job.run();
    expect(harness.raised().filter((what) => what.startsWith("reports_stopped"))).toEqual([]);
  });

  test("are alerted with the last day of reports, whatever a report with a wrong date says", async () => {
    const { harness, number } = await enrolSettled(newHarness());
    harness.report(number, harness.today + 30_000, OWN, { messages: 1, aligned: 1 });
    await harness.clock.advance(72 * HOUR_MS);
    await harness.job.run();
    expect(harness.events()[0]?.data.last_day).toBe("2026-11-20");
  });

  test("are alerted after 72 hours, once until reports arrive again", async () => {
    const { harness, number } = await enrolSettled(newHarness());
    await harness.clock.advance(72 * HOUR_MS - 1);
    await harness.job.run();
    expect(harness.raised()).toEqual([]);
    await harness.clock.advance(1);
    await harness.job.run();
    await harness.clock.advance(72 * HOUR_MS);
    await harness.job.run();
    expect(harness.raised()).toEqual(["reports_stopped 2026-11-20"]);
    expectDocumented(harness);
    harness.arrive(number);
    await harness.job.run();
    await harness.clock.advance(72 * HOUR_MS);
    await harness.job.run();
    expect(harness.raised()).toEqual(["reports_stopped 2026-11-20", "reports_stopped 2026-11-26"]);
  });

  test("are not alerted before reporters had time to retry after this service was down", async () => {
    const { harness } = await enrolSettled(newHarness());
    await harness.clock.advance(100 * HOUR_MS);
    const job = harness.startJob();
    await harness.clock.advance(6 * HOUR_MS - 1);
    await job.run();
    expect(harness.raised()).toEqual([]);
    await harness.clock.advance(1);
    await job.run();
    expect(harness.raised()).toEqual(["reports_stopped 2026-11-20"]);
  });

  test.each([
    ["paused", { monitoringEnabled: false }],
    ["not active", { status: "action_required" }],
    ["of a test key", { mode: "test" }],
    ["deleted", { deletedAtMs: 1 }],
  ] as const)("are not alerted for a domain that is %s", async (_, change) => {
    const { harness, number } = await enrolSettled(newHarness());
    harness.db.transact((tx) => harness.domains.update(tx, number, change as never));
    await harness.clock.advance(200 * HOUR_MS);
    await harness.job.run();
    expect(harness.raised()).toEqual([]);
  });

  test("of one domain are alerted although the review of another one fails", async () => {
    const { harness } = await enrolSettled(newHarness());
    const other = harness.add("example.org").number;
    for (let day = 1; day < 20; day += 1)
      harness.report(other, harness.today - day, OWN, { messages: 10, aligned: 10 });
    await harness.job.run();
    await harness.clock.advance(200 * HOUR_MS);
    const bug = `SELECT RAISE(ABORT, 'bug') WHERE NEW.domain <> ${other}`;
    harness.db.sqlite.run(`CREATE TRIGGER bug BEFORE INSERT ON dmarc_alerts BEGIN ${bug}; END`);
    await harness.job.run();
    expect(harness.raised().map((line) => line.split(" ")[0])).toEqual(["reports_stopped"]);
    expect(harness.logged.join()).toContain("alert rules failed for a domain");
  });

  test("after only two days of reports are not alerted", async () => {
    const harness = newHarness();
    const { number } = harness.add("example.com");
    for (const day of [1, 2]) harness.report(number, harness.today - day, OWN, { messages: 10, aligned: 10 });
    await harness.job.run();
    await harness.clock.advance(200 * HOUR_MS);
    await harness.job.run();
    expect(harness.raised()).toEqual([]);
  });
});
