import { afterAll, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { Glob } from "bun";
import { systemClock } from "../../../foundation/base/clock.ts";
import { err } from "../../../foundation/base/errors.ts";
import { createLog } from "../../../foundation/base/log.ts";
import { sampleReportMail } from "../../../testing/dmarc-reports.ts";
import { createIngestHarness, INGEST_OWNER, type IngestHarness } from "../../../testing/ingest-harness.ts";
import { type FileReader, readingHere } from "../report/file-reader.ts";
import { ReadingThread } from "../report/reading-thread.ts";
import { findingViews } from "./ingestion-schemas.ts";

const MAIN = new URL("../../../main.ts", import.meta.url).pathname;
const FIXTURES = new URL("../../../../fixtures/dmarc/reports/", import.meta.url).pathname;
const newHarness = createIngestHarness();
const log = createLog("error", systemClock, () => undefined);
const thread = new ReadingThread({ clock: systemClock, log }, { program: MAIN });
afterAll(() => thread.stop());

const rowsOf = (n: number) =>
  Array.from({ length: n % 20 === 0 ? 400 : 3 }, (_, row) => ({
    ip: `192.0.2.${(n + row) % 250}`,
    count: 1 + (n % 9),
  }));
const mailOf = (n: number) => new Uint8Array(sampleReportMail({ reportId: `r${n % 90}`, rows: rowsOf(n) }));
const MAILS = Array.from({ length: 100 }, (_, n) => mailOf(n));
const FILES = [...new Glob("*/**/*").scanSync(FIXTURES)].toSorted().map((path) => readFileSync(FIXTURES + path));

/** Everything that was stored, without what is random. */
const storedIn = (harness: IngestHarness) => ({
  rollups: harness.rollups(),
  reports: harness.all(
    "SELECT number, org, report_id, rows, messages, aligned, sameness, content, body FROM dmarc_reports ORDER BY 1",
  ),
  records: harness.all(
    "SELECT report, position, source, source_ip, count, rank, body FROM dmarc_records ORDER BY 1, 2",
  ),
  sources: harness.all("SELECT number, key, first_day, last_day FROM dmarc_sources ORDER BY 1"),
});

const store = async (reader: FileReader) => {
  const harness = newHarness({ reader });
  harness.enrol("example.com");
  const rows = await harness.ingestions.ingestFiles([...MAILS, ...FILES].map((bytes) => harness.incoming(bytes)));
  const outcomes = rows.map(({ outcome, reason }) => [outcome, reason]);
  expect(harness.rollups()).toEqual(harness.recount());
  return { ...storedIn(harness), outcomes };
};

test("reports that another thread reads are stored as those that are read in this one", async () => {
  const here = await store(readingHere());
  expect(here.outcomes.filter(([outcome]) => outcome === "stored").length).toBeGreaterThan(90);
  expect(await store(thread)).toEqual(here);
});

test("a file whose reading does not end says so, is kept, and can be read again", async () => {
  let isStuck: boolean = true;
  const reading = readingHere();
  const reader: FileReader = {
    ...reading,
    read: async (files, allowance) =>
      isStuck ? [err({ reason: "took_too_long", error: null })] : reading.read(files, allowance),
  };
  const harness = newHarness({ reader });
  harness.enrol("example.com");
  const { row } = await harness.upload(mailOf(1));
  expect(row).toMatchObject({ outcome: "rejected", reason: "took_too_long" });
  expect(findingViews(row)[0]?.message).toStartWith("Reading did not end within a minute.");
  isStuck = false;
  expect(await harness.ingestions.readAgain(INGEST_OWNER, "all")).toBe(1);
  expect(harness.find(row.id)).toMatchObject({ outcome: "stored" });
});
