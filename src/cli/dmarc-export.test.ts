import { expect, test } from "bun:test";
import { parse } from "csv-parse/sync";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { recordSchema } from "../dmarc/insight/queries/records.ts";
import { createCommandLine } from "../testing/command-line.ts";
import { sampleReportXml } from "../testing/dmarc-reports.ts";
import { insertDomain } from "../testing/ingest-harness.ts";
import { openDatabaseAt } from "./data-directory.ts";

const RANGE = ["--from", "2025-12-01", "--to", "2026-01-31"];

const start = async () => {
  const { dataDir, run } = createCommandLine();
  await run(["migrate"]);
  await run(["accounts", "create", "main"]);
  const db = openDatabaseAt(join(dataDir, "postwarden.db"));
  const account = db.sqlite.query<{ id: string }, []>("SELECT id FROM accounts").get();
  insertDomain(db, "example.com", { accountId: account?.id ?? "" });
  db.close();
  const report = join(dataDir, "..", "report.xml");
  writeFileSync(
    report,
    sampleReportXml({
      rows: [
        { ip: "8.8.8.8", count: 9 },
        { ip: "9.9.9.9", count: 2 },
      ],
    }),
  );
  await run(["dmarc", "import", report]);
  return run;
};

test("records are written as NDJSON or CSV, all of a range", async () => {
  const run = await start();
  const ndjson = await run(["dmarc", "export", "Example.com.", ...RANGE]);
  expect([ndjson.status, ndjson.err]).toEqual([0, ""]);
  const lines = ndjson.out.trim().split("\n");
  expect(lines.map((line) => recordSchema.parse(JSON.parse(line)).source_ip)).toEqual(["8.8.8.8", "9.9.9.9"]);
  const csv = await run(["dmarc", "export", "example.com", ...RANGE, "--format", "csv"]);
  const rows: Record<string, string>[] = parse(csv.out, { columns: true, skip_empty_lines: true });
  expect(rows.map(({ source_ip, count }) => [source_ip, count])).toEqual([
    ["8.8.8.8", "9"],
    ["9.9.9.9", "2"],
  ]);
  expect((await run(["dmarc", "export", "example.com", "--from", "2026-01-03", "--to", "2026-01-31"])).out).toBe("");
});

test.each([
  [["other.com"], 1, "other.com is not enrolled in this account."],
  [["com"], 2, "com"],
  [["example.com", "--from", "yesterday"], 2, '--from: "yesterday" is not a date such as 2026-01-31.'],
  [["example.com", "--from", "2026-01-02", "--to", "2026-01-01"], 2, "--from must not be after --to"],
  [["example.com", "--format", "xml"], 2, "Allowed choices are ndjson, csv"],
  [
    ["example.com", "--account", "nobody"],
    1,
    'There is no account "nobody". `postwarden accounts list` lists all accounts.',
  ],
])("%p fails with status %d and says why", async (args, status, said) => {
  const run = await start();
  const end = await run(["dmarc", "export", ...args]);
  expect([end.status, end.out]).toEqual([status, ""]);
  expect(end.err).toContain(said);
});
