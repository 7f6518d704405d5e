import { describe, expect, test } from "bun:test";
import { DAY_MS } from "../../../foundation/base/days.ts";
import { SAMPLE_DAY_S, type SampleRow, sampleReportMail, sampleReportXml } from "../../../testing/dmarc-reports.ts";
import { createIngestHarness, INGEST_OWNER } from "../../../testing/ingest-harness.ts";
import { LARGE_ROWS_MIN } from "./ingest-write.ts";

const newHarness = createIngestHarness();

describe("the period of a report", () => {
  const DAY_S = 86_400;

  test("in the future is quarantined, and counts when it has come", async () => {
    const harness = newHarness();
    harness.enrol("example.com");
    const [soon, never] = [SAMPLE_DAY_S + 10 * DAY_S, Date.UTC(2098, 0, 1) / 1000].map((begin, n) =>
      sampleReportMail({ reportId: String(n), begin }),
    );
    const early = await harness.upload(soon ?? "");
    const forged = await harness.upload(never ?? "");
    for (const { row, findings } of [early, forged]) {
      expect(row).toMatchObject({ outcome: "quarantined", reason: "period_in_future", hasRaw: true });
      expect(findings).toMatchObject([{ domain: "example.com", report_id: null }]);
    }
    expect(harness.count("dmarc_reports")).toBe(0);
    expect(harness.count("dmarc_sources")).toBe(0);
    await harness.clock.advance(10 * DAY_MS);
    expect(await harness.ingestions.readAgain(INGEST_OWNER, "all")).toBe(2);
    expect(harness.find(early.row.id).outcome).toBe("stored");
    expect(harness.find(forged.row.id).reason).toBe("period_in_future");
  });

  test("of years is quarantined, also when the report is large", async () => {
    const harness = newHarness();
    harness.enrol("example.com");
    const period = { begin: SAMPLE_DAY_S - 500 * DAY_S, end: SAMPLE_DAY_S };
    const rows = Array.from({ length: LARGE_ROWS_MIN + 1 }, (): SampleRow => ({}));
    for (const made of [period, { ...period, rows }]) {
      const { row } = await harness.upload(sampleReportXml(made));
      expect(row).toMatchObject({ outcome: "quarantined", reason: "period_too_long" });
    }
    expect(harness.count("dmarc_sources")).toBe(0);
  });

  test("of long ago is counted, and the finding says that retention will remove it", async () => {
    const harness = newHarness();
    harness.enrol("example.com", { retentionDays: 30 });
    const old = await harness.upload(sampleReportXml({ begin: SAMPLE_DAY_S - 40 * DAY_S }));
    expect(old.row).toMatchObject({ outcome: "stored", reason: "older_than_retention" });
    const kept = await harness.upload(sampleReportXml({ begin: SAMPLE_DAY_S - 20 * DAY_S }));
    expect(kept.row).toMatchObject({ outcome: "stored", reason: null });
    expect(harness.count("dmarc_reports")).toBe(2);
  });
});
