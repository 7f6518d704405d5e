import { expect, test } from "bun:test";
import { readReport } from "./read-report.ts";
import { REPORT_ROW_BYTES_MAX, shortenRow, type ReportRow } from "./report-row.ts";

const rowWith = (more: Partial<ReportRow>): ReportRow => ({
  sourceIp: "192.0.2.1",
  count: 7,
  disposition: "none",
  dkim: "pass",
  spf: "fail",
  reasons: [],
  headerFrom: "example.com",
  envelopeFrom: null,
  envelopeTo: null,
  dkimResults: [],
  spfResults: [],
  ...more,
});

const dkim = (text: string, domain = "example.com") =>
  ({ domain, selector: text, result: "pass", humanResult: text }) as const;

const bytesOf = ({ envelopeFrom, envelopeTo, reasons, dkimResults, spfResults }: ReportRow): number =>
  Buffer.byteLength(JSON.stringify({ envelopeFrom, envelopeTo, reasons, dkimResults, spfResults }));

test("a record as reporters write them is kept as it is", () => {
  const row = rowWith({ dkimResults: Array.from({ length: 12 }, () => dkim("a text of a sentence or so")) });
  expect(shortenRow(row)).toBe(row);
});

test("a long record loses as little as it must", () => {
  const long = shortenRow(rowWith({ dkimResults: Array.from({ length: 20 }, () => dkim("x".repeat(1_000))) }));
  expect(long.dkimResults).toHaveLength(20);
  expect(long.dkimResults[0]?.humanResult).toHaveLength(200);
});

test.each([
  ["letters", "x"],
  ["characters that JSON escapes", "\u0001"],
  ["characters of three bytes", "\u20ac"],
])("a record of %s alone stays below its ceiling, with its counts", (_what, letter) => {
  const text = letter.repeat(1_024);
  // Characters that a domain may consist of, and that JSON doubles.
  const domain = "\\".repeat(253);
  const row = rowWith({
    reasons: Array.from({ length: 100 }, () => ({ type: "other", comment: text })),
    dkimResults: Array.from({ length: 100 }, () => dkim(text, domain)),
    spfResults: Array.from({ length: 100 }, () => ({ domain, scope: "mfrom", result: "pass", humanResult: text })),
    envelopeFrom: domain,
    envelopeTo: domain,
  });
  const short = shortenRow(row);
  expect(bytesOf(short)).toBeLessThanOrEqual(REPORT_ROW_BYTES_MAX);
  expect(short).toMatchObject({ count: 7, dkim: "pass", headerFrom: "example.com" });
  expect(short.dkimResults.length).toBeGreaterThan(0);
});

test("a report says that records were shortened, and counts them in full", async () => {
  const reason = `<reason><type>other</type><comment>${"c".repeat(4_096)}</comment></reason>`;
  const record = `<record><row><source_ip>192.0.2.1</source_ip><count>5</count><policy_evaluated>${reason.repeat(100)}</policy_evaluated></row></record>`;
  const xml = `<feedback><report_metadata><org_name>o</org_name><report_id>1</report_id><date_range><begin>1763510400</begin><end>1763596799</end></date_range></report_metadata><policy_published><domain>example.com</domain></policy_published>${record.repeat(3)}</feedback>`;
  const report = await readReport(new TextEncoder().encode(xml));
  if (!report.ok) throw new Error(report.error.problem);
  expect(report.value.notices).toEqual(["records_shortened"]);
  expect(report.value.rows.map(({ count }) => count)).toEqual([5, 5, 5]);
  for (const row of report.value.rows) expect(bytesOf(row)).toBeLessThanOrEqual(REPORT_ROW_BYTES_MAX);
});
