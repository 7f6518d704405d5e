import { describe, expect, test } from "bun:test";
import { reporterBehind } from "../../reports/ingest/report-trust.ts";
import { countReporters } from "./advisor.ts";

describe("a reporter", () => {
  test.each([
    [
      "microsoft",
      ["enterprise outlook", "outlook.com", "protection.outlook.com", "microsoft corporation", "hotmail.com"],
    ],
    ["google", ["google.com", "google inc.", "google, inc.", "google llc"]],
    ["yahoo", ["yahoo", "yahoo! inc.", "yahoo!", "yahoo inc", "yahoo.com", "aol", "aol.com"]],
    ["fastmail", ["fastmail pty ltd", "fastmail pty, ltd.", "fastmaildmarc.com"]],
    ["mail.ru", ["mail.ru"]],
    ["", [""]],
  ])("is %p under all its names", (reporter, names) => {
    expect(names.map(reporterBehind)).toEqual(names.map(() => reporter));
  });

  test("counts when it reported about two days", () => {
    const days = [["google.com", "aol", "yahoo"], ["google inc."], ["gmx.net"]];
    expect([countReporters(days), countReporters([...days, ["yahoo! inc.", "gmx.net"]]), countReporters([])]).toEqual([
      1, 3, 0,
    ]);
  });
});
