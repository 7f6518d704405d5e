import { expect, test } from "bun:test";
import { createTestClock } from "../../../testing/clock.ts";
import { SAMPLE_DAY_S, sampleReportXml } from "../../../testing/dmarc-reports.ts";
import { createIngestHarness } from "../../../testing/ingest-harness.ts";
import { decidingFinding, ingestionView } from "./ingestion-schemas.ts";

const newHarness = createIngestHarness();

test("a report whose rows cannot all be read is stored, and its ingestion says how many are left out", async () => {
  const harness = newHarness({ clock: createTestClock((SAMPLE_DAY_S + 86_400) * 1000) });
  harness.enrol("example.com");
  const xml = sampleReportXml({ rows: [{ count: 7 }, { count: 11 }, { count: 13 }] });
  const { row } = await harness.upload(
    xml.replace("<count>11<", "<count>-5<").replace("<count>13<", "<count>about 13<"),
  );
  const view = ingestionView(row, () => null);
  const [finding] = view.findings;
  expect(finding).toMatchObject({ outcome: "stored", unread_rows: 2 });
  expect(finding?.message).toBe(
    "The report is stored. 2 of its rows cannot be read and are not counted; `skipped_rows` of the report says why.",
  );
  const whole = view.findings.map((one) => ({ ...one, message: "The report is stored.", unread_rows: 0 }));
  expect(decidingFinding({ ...view, findings: [...whole, ...view.findings] })).toEqual(finding);
  expect(harness.all("SELECT sum(messages) n FROM dmarc_daily")).toEqual([{ n: 7 }]);
});
