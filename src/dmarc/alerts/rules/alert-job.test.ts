import { describe, expect, test } from "bun:test";
import { createDmarcAlertHarness, expectDocumented, enrolSettled } from "../../../testing/dmarc-alert-harness.ts";

const newHarness = createDmarcAlertHarness();
const HOUR_MS = 60 * 60_000;
const OWN = "192.0.2.1 example.com/mail example.com -";
/** The clock of a harness at its start. */
const START_MS = Date.UTC(2026, 10, 20, 12);
const MANY = 2_000;
const MAILER = "198.51.100.1 -/- mailer.example.net -";

describe("the first week of a domain", () => {
  test("is not ended by a report with a wrong date or an old file", async () => {
    const harness = newHarness();
    const { number } = harness.add("example.com");
    for (const day of [3_500, harness.today - 200, harness.today - 1])
      harness.report(number, day, OWN, { messages: MANY, aligned: MANY });
    harness.report(number, harness.today, MAILER, { messages: 400, authenticated: 400 });
    await harness.job.run();
    expect(harness.raised()).toEqual([]);
  });
});

describe("a new subdomain", () => {
  test("is alerted when its mail passes DMARC, once", async () => {
    const { harness, number } = await enrolSettled(newHarness());
    harness.name(number, harness.today, "example.com", { messages: 500, aligned: 500 });
    harness.name(number, harness.today, "", { messages: 500, aligned: 500 });
    harness.name(number, harness.today, "few.example.com", { messages: 900, aligned: 2 });
    harness.name(number, harness.today, "forged.example.com", { messages: 900 });
    harness.name(number, harness.today, "news.example.com", { messages: 3, aligned: 3 });
    await harness.job.run();
    harness.arrive(number);
    await harness.job.run();
    expect(harness.raised()).toEqual(["new_subdomain news.example.com"]);
    expectDocumented(harness);
  });
});

describe("mail that fails", () => {
  test("is alerted when it starts, when it doubles and when it ends, and says who failed", async () => {
    const { harness, number } = await enrolSettled(newHarness());
    for (const aligned of [1_400, 1_400, 600, 600, 1_990, 1_990]) {
      await harness.clock.advance(24 * HOUR_MS);
      harness.report(number, harness.today + Math.round((harness.clock.nowMs() - START_MS) / (24 * HOUR_MS)), OWN, {
        messages: MANY,
        aligned,
      });
      for (let n = 0; n < 2; n++) await harness.job.run();
    }
    const told = harness
      .events()
      .map(({ type, data }) => [type, data.state, data.failing_share, data.usual_failing_share]);
    expect(told).toEqual([
      ["dmarc.failure_spike", "started", 0.3, 0],
      ["dmarc.failure_spike", "grew", 0.7, 0],
      ["dmarc.failure_spike", "ended", 0.005, 0],
    ]);
    expect(harness.events()[0]?.data).toMatchObject({ sources: [{ key: "own", failing: 600, causes: [] }] });
    expectDocumented(harness);
  });

  test("is alerted once although more sources fail at once than a mail lists", async () => {
    const harness = newHarness();
    const { number } = harness.add("example.com");
    const keys = Array.from({ length: 12 }, (_, n) => `198.51.100.${n} -/- m${n}.example -`);
    for (let n = 0; n < 12; n++) harness.reverse(`198.51.100.${n}`, null);
    for (let day = harness.today - 14; day <= harness.today; day++)
      for (const key of keys)
        harness.report(number, day, key, { messages: 100, aligned: day === harness.today ? 0 : 100 });
    for (let n = 0; n < 3; n++) {
      await harness.job.run();
      harness.arrive(number);
    }
    expect(harness.events().map(({ data }) => (data.sources as unknown[]).length)).toEqual([12]);
    expectDocumented(harness);
  });

  test("is judged as the domain's thresholds say", async () => {
    for (const [thresholds, isNews] of [
      [{}, true],
      [{ failure_spike_percent: 31 }, false],
      [{ failure_spike_messages: 601 }, false],
    ] as const) {
      const { harness, number } = await enrolSettled(newHarness(), { alertThresholds: thresholds });
      await harness.clock.advance(24 * HOUR_MS);
      harness.report(number, harness.today + 1, OWN, { messages: MANY, aligned: 1_400 });
      await harness.job.run();
      expect([thresholds, harness.raised().length > 0]).toEqual([thresholds, isNews]);
    }
  });

  test("is judged when half of the usual mail of its day is in, or two days later", async () => {
    for (const [messages, daysAgo, isNews] of [
      [MANY / 2, 1, true],
      [MANY / 2 - 1, 1, false],
      [MANY / 2 - 1, 2, true],
    ] as const) {
      const { harness, number } = await enrolSettled(newHarness());
      await harness.clock.advance((daysAgo + 1) * 24 * HOUR_MS);
      harness.report(number, harness.today + 1, OWN, { messages });
      await harness.job.run();
      expect([messages, daysAgo, harness.raised().length > 0]).toEqual([messages, daysAgo, isNews]);
    }
  });

  test("is not judged on the next day when it is not known how much mail is usual on that weekday", async () => {
    const { harness, number } = await enrolSettled(newHarness());
    for (const table of ["dmarc_daily", "dmarc_daily_reporters"])
      harness.db.sqlite.run(`DELETE FROM ${table} WHERE day = ?`, [harness.today - 6]);
    await harness.clock.advance(2 * 24 * HOUR_MS);
    harness.report(number, harness.today + 1, OWN, { messages: MANY });
    await harness.job.run();
    expect(harness.raised()).toEqual([]);
  });

  test("is none of the domain's when it is forwarded or forged", async () => {
    const { harness, number } = await enrolSettled(newHarness());
    for (const ip of ["198.51.100.1", "198.51.100.2"]) harness.reverse(ip, null);
    for (let day = harness.today - 14; day < harness.today; day++) {
      harness.report(number, day, "198.51.100.1 -/- lists.example.net -", {
        messages: 100,
        aligned: 60,
        forwarded: 40,
      });
      harness.report(number, day, "198.51.100.2 -/- - -", { messages: 90 });
    }
    await harness.job.run();
    harness.report(number, harness.today, "198.51.100.1 -/- lists.example.net -", { messages: 900, forwarded: 400 });
    harness.report(number, harness.today, "198.51.100.2 -/- - -", { messages: 95 });
    await harness.job.run();
    expect(harness.raised().filter((what) => what.startsWith("failure"))).toEqual([]);
  });
});

describe("a run", () => {
  test("continues when a domain fails, and reviews that one again in the next run", async () => {
    const { harness, number } = await enrolSettled(newHarness());
    const other = harness.add("example.org").number;
    harness.report(number, harness.today, MAILER, { messages: 400, authenticated: 400 });
    harness.reverse("198.51.100.1", null);
    harness.report(other, harness.today, OWN, { messages: 40, aligned: 40 });
    harness.db.sqlite.run("CREATE TRIGGER bug BEFORE INSERT ON dmarc_alerts BEGIN SELECT RAISE(ABORT, 'bug'); END");
    await harness.job.run();
    expect(harness.stores.all.rules.unreviewedDomains(0, 9)).toEqual([number]);
    expect(harness.logged.join()).toContain("alert rules failed");
    harness.db.sqlite.run("DROP TRIGGER bug");
    await harness.job.run();
    expect(harness.raised()).toEqual(["new_source org:example.net"]);
  });
});
