import { afterAll, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createCommandLine } from "../../../testing/command-line.ts";
import { sampleReportMail } from "../../../testing/dmarc-reports.ts";
import { UNPACK_LIMITS } from "./unpack.ts";

const FIXTURES = new URL("../../../../fixtures/dmarc/reports", import.meta.url).pathname;
const GOOGLE = `${FIXTURES}/reporters/google.xml`;

const { run } = createCommandLine();
const directory = mkdtempSync(join(tmpdir(), "postwarden-reports-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const objectsOf = (out: string): Array<Record<string, unknown>> => out.split("\n").map((line) => JSON.parse(line));

describe("inspect report", () => {
  test("has the fixed shape, names in this order", async () => {
    const { status, json, err } = await run(["inspect", "report", GOOGLE]);
    expect({ status, err }).toEqual({ status: 0, err: "" });
    expect(JSON.stringify(json)).toBe(
      JSON.stringify({
        input: GOOGLE,
        outcome: "stored",
        reason: null,
        report: {
          org_name: "google.com",
          report_id: "10254889437263546184",
          begin: "2025-11-19T00:00:00.000Z",
          end: "2025-11-19T23:59:59.000Z",
          domain: "example.com",
          rows: 2,
          messages: 5,
        },
      }),
    );
  });

  test("reads files from arguments or from lines of standard input, with --json or without", async () => {
    const paths = [GOOGLE, `${FIXTURES}/mails/attachment.eml`, `${FIXTURES}/hostile/doctype.xml`];
    const given = await run(["inspect", "report", ...paths]);
    expect(await run(["inspect", "report", "--json"], { stdin: paths })).toMatchObject({ status: 0, out: given.out });
    expect(objectsOf(given.out).map(({ outcome, reason }) => [outcome, reason])).toEqual([
      ["stored", null],
      ["stored", null],
      ["rejected", "doctype"],
    ]);
    expect(objectsOf(given.out)[2]).toEqual({ input: paths[2], outcome: "rejected", reason: "doctype", report: null });
  });

  test("reads a directory file by file in the order of names, and what lies below; links are not followed", async () => {
    mkdirSync(join(directory, "tree", "b"), { recursive: true });
    for (const name of ["2.xml", "1.xml", "b/0.xml"]) writeFileSync(join(directory, "tree", name), "<feedback/>");
    symlinkSync(directory, join(directory, "tree", "round"));
    symlinkSync(GOOGLE, join(directory, "tree", "linked.xml"));
    const { out } = await run(["inspect", "report", join(directory, "tree")]);
    const inputs = objectsOf(out).map(({ input }) => input);
    expect(inputs).toEqual(["1.xml", "2.xml", "b/0.xml"].map((name) => join(directory, "tree", name)));
  });

  test("gives a line for each report of a file", async () => {
    const { out } = await run(["inspect", "report", `${FIXTURES}/archives/zip-several-entries.zip`]);
    expect(objectsOf(out).map(({ report }) => report)).toMatchObject([{ messages: 5 }, { messages: 9 }]);
  });

  test("shows a report without a usable row as empty, with nothing counted", async () => {
    const { json } = await run(["inspect", "report", `${FIXTURES}/values/no-usable-rows.xml`]);
    expect(json).toMatchObject({
      ...{ outcome: "empty", reason: "no_usable_rows" },
      report: {
        rows: 0,
        messages: 0,
        skipped_rows: expect.arrayContaining([{ reason: expect.any(String), rows: expect.any(Number) }]),
      },
    });
  });

  test("names the line at which a report is found to be incomplete", async () => {
    const path = `${FIXTURES}/xml/middle-missing.xml`;
    const { json } = await run(["inspect", "report", path]);
    expect(json).toEqual({ input: path, outcome: "rejected", reason: "truncated", line: 8, report: null });
  });

  test("shows what a TLS report and a failure report say", async () => {
    const tls = await run(["inspect", "report", `${FIXTURES}/archives/tls-report.json`]);
    expect(tls.json).toMatchObject({
      reason: "tls_report",
      tls_report: { org_name: "Google Inc.", policies: [{ policy_type: expect.any(String) }] },
    });
    const failure = await run(["inspect", "report", `${FIXTURES}/mails/failure-report.eml`]);
    expect(failure.json).toMatchObject({
      reason: "failure_report",
      failure_report: { feedback_type: "auth-failure", source_ip: expect.any(String) },
    });
    expect(JSON.stringify(failure.json)).not.toContain("@");
  });

  test("refuses a file that is too large without reading it", async () => {
    const path = join(directory, "large.xml");
    writeFileSync(path, "");
    truncateSync(path, UNPACK_LIMITS.entryBytesMax + 1);
    const { json } = await run(["inspect", "report", path]);
    expect(json).toEqual({ input: path, outcome: "rejected", reason: "entry_too_large", report: null });
  });

  test("reads a mailbox mail by mail", async () => {
    const path = join(directory, "mailbox");
    const mails = ["1", "2"].map(
      (reportId) => `From a@b Thu Jan  1 00:00:00 2026\n${sampleReportMail({ reportId })}\n`,
    );
    writeFileSync(path, mails.join(""));
    const { out } = await run(["inspect", "report", path]);
    expect(objectsOf(out)).toMatchObject(
      ["1", "2"].map((report_id) => ({
        input: report_id === "1" ? path : `${path}#2`,
        outcome: "stored",
        report: { report_id },
      })),
    );
  });

  test("names what cannot be read on standard error, reads the others, and fails", async () => {
    const missing = join(directory, "missing.xml");
    const { status, out, err } = await run(["inspect", "report", missing, GOOGLE]);
    expect(status).toBe(1);
    expect(objectsOf(out)).toMatchObject([{ input: GOOGLE, outcome: "stored" }]);
    expect(err).toContain(`${missing}: no such file`);
    expect(err).not.toContain("ENOENT");
  });

  test("reads of a Maildir its mails alone", async () => {
    const maildir = join(directory, "maildir");
    for (const name of ["cur", "new", "tmp"]) mkdirSync(join(maildir, name), { recursive: true });
    for (const name of ["cur/1", "new/2", "tmp/3"]) writeFileSync(join(maildir, name), sampleReportMail());
    for (const name of ["dovecot.index", ".hidden"]) writeFileSync(join(maildir, name), "index");
    const { status, out } = await run(["inspect", "report", maildir]);
    const inputs = objectsOf(out).map(({ input }) => input);
    expect({ status, inputs }).toEqual({ status: 0, inputs: ["cur/1", "new/2"].map((name) => join(maildir, name)) });
  });
});
