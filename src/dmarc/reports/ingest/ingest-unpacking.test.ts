import { expect, test } from "bun:test";
import { sampleReportXml } from "../../../testing/dmarc-reports.ts";
import { createIngestHarness, INGEST_OWNER } from "../../../testing/ingest-harness.ts";

const newHarness = createIngestHarness();
const MB = 1024 * 1024;

const packed = (reportId: string, padding: number) =>
  Bun.gzipSync(new TextEncoder().encode(sampleReportXml({ reportId }) + " ".repeat(padding)));

test("the files of one upload may unpack to a limit in all; the others are kept and can be retried", async () => {
  const harness = newHarness();
  harness.enrol("example.com");
  const files = ["1", "2", "3", "4"].map((id) => harness.incoming(packed(id, 2 * MB)));
  const rows = await harness.ingestions.ingestFiles(files, 5 * MB);
  expect(rows.map(({ outcome, reason }) => [outcome, reason])).toEqual([
    ["stored", null],
    ["stored", null],
    ["rejected", "upload_too_large"],
    ["rejected", "upload_too_large"],
  ]);
  expect(await harness.ingestions.readAgain(INGEST_OWNER, "all")).toBe(2);
  expect(harness.count("dmarc_reports")).toBe(4);
});

test("what is unpacked and dropped counts towards the limit", async () => {
  const harness = newHarness();
  harness.enrol("example.com");
  const bomb = Bun.gzipSync(new Uint8Array(33 * MB));
  const files = [bomb, bomb, bomb, packed("1", 0)].map((bytes) => harness.incoming(bytes));
  const rows = await harness.ingestions.ingestFiles(files, 65 * MB);
  expect(rows.map(({ reason }) => reason)).toEqual([
    "entry_too_large",
    "entry_too_large",
    "upload_too_large",
    "upload_too_large",
  ]);
});
