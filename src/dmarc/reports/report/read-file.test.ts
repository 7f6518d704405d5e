import { describe, expect, test } from "bun:test";
import { Glob } from "bun";
import expected from "../../../../fixtures/dmarc/reports/expected.json" with { type: "json" };
import { type ReportReading, countMessages } from "./report.ts";
import { readReportFile } from "./read-file.ts";
import { isForwarded } from "./report-row.ts";

const FIXTURES = new URL("../../../../fixtures/dmarc/reports/", import.meta.url).pathname;

interface Expectation {
  readonly outcome: string;
  readonly reason: string | null;
  /** How many readings; one where it is not said. */
  readonly readings?: number;
  readonly line?: number;
  readonly rows?: number;
  readonly messages?: number;
  readonly name?: string;
  readonly report?: object;
  readonly tlsReport?: object;
  readonly failureReport?: object | null;
}

const EXPECTED = Object.entries<Expectation>(expected as Record<string, Expectation>);

/** The reading with what fixtures also speak of: row and message counts, and whether a row was forwarded. */
const described = ({ report, ...reading }: ReportReading) => ({
  ...reading,
  ...(report === null ? {} : { rows: report.rows.length, messages: countMessages(report) }),
  report:
    report === null ? null : { ...report, rows: report.rows.map((row) => ({ ...row, isForwarded: isForwarded(row) })) },
});

describe("every fixture is read as it is said to be", () => {
  test.each(EXPECTED)("%s", async (path, { readings = 1, report, ...wanted }) => {
    const bytes = await Bun.file(FIXTURES + path).bytes();
    const found = await readReportFile(bytes);
    expect(found).toHaveLength(readings);
    const first = found.map(described).find(({ outcome }) => outcome === wanted.outcome);
    expect(first).toMatchObject({ ...wanted });
    // Rows are told in part only where the fixture is about a row.
    if (report !== undefined) expect(first?.report).toMatchObject({ ...report });
  });

  test("no file is without an expectation", async () => {
    const files = [...new Glob("**/*").scanSync(FIXTURES)].filter((path) => path !== "expected.json");
    expect(files.toSorted()).toEqual(EXPECTED.map(([path]) => path).toSorted());
  });
});

describe("a mail with a report that is damaged and one that is not", () => {
  test("gives both, each with its outcome", async () => {
    const bytes = await Bun.file(`${FIXTURES}mails/good-and-damaged.eml`).bytes();
    const outcomes = (await readReportFile(bytes)).map(({ outcome, reason }) => [outcome, reason]);
    expect(outcomes).toEqual([
      ["rejected", "gzip_damaged"],
      ["stored", null],
    ]);
  });
});
