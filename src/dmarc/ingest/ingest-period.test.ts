import { describe, expect, test } from "bun:test";
import { DAY_MS } from "../../base/days.ts";
import { MADE_DAY_S, type MadeRow, madeReportMail, madeReportXml } from "../../testing/dmarc-reports.ts";
import { createIngestWorlds, INGEST_OWNER } from "../../testing/ingest-world.ts";
import { LARGE_ROWS_MIN } from "./ingest-large.ts";

const newWorld = createIngestWorlds();

describe("the period of a report", () => {
  const DAY_S = 86_400;

  test("that is still to come is kept apart, and counts when it has come", async () => {
    const world = newWorld();
    world.enrol("example.com");
    const [soon, never] = [MADE_DAY_S + 10 * DAY_S, Date.UTC(2098, 0, 1) / 1000].map((begin, n) =>
      madeReportMail({ reportId: String(n), begin }),
    );
    const early = await world.upload(soon ?? "");
    const forged = await world.upload(never ?? "");
    for (const { row, findings } of [early, forged]) {
      expect(row).toMatchObject({ outcome: "quarantined", reason: "period_in_future", hasRaw: true });
      expect(findings).toMatchObject([{ domain: "example.com", report_id: null }]);
    }
    expect(world.count("dmarc_reports")).toBe(0);
    expect(world.count("dmarc_sources")).toBe(0);
    await world.clock.advance(10 * DAY_MS);
    expect(await world.ingestions.readAgain(INGEST_OWNER, "all")).toBe(2);
    expect(world.find(early.row.id).outcome).toBe("stored");
    expect(world.find(forged.row.id).reason).toBe("period_in_future");
  });

  test("of years is kept apart, also when the report is large", async () => {
    const world = newWorld();
    world.enrol("example.com");
    const period = { begin: MADE_DAY_S - 500 * DAY_S, end: MADE_DAY_S };
    const rows = Array.from({ length: LARGE_ROWS_MIN + 1 }, (): MadeRow => ({}));
    for (const made of [period, { ...period, rows }]) {
      const { row } = await world.upload(madeReportXml(made));
      expect(row).toMatchObject({ outcome: "quarantined", reason: "period_too_long" });
    }
    expect(world.count("dmarc_sources")).toBe(0);
  });

  test("of long ago is counted, and the finding says that the retention will remove it", async () => {
    const world = newWorld();
    world.enrol("example.com", { retentionDays: 30 });
    const old = await world.upload(madeReportXml({ begin: MADE_DAY_S - 40 * DAY_S }));
    expect(old.row).toMatchObject({ outcome: "stored", reason: "older_than_retention" });
    const kept = await world.upload(madeReportXml({ begin: MADE_DAY_S - 20 * DAY_S }));
    expect(kept.row).toMatchObject({ outcome: "stored", reason: null });
    expect(world.count("dmarc_reports")).toBe(2);
  });
});
