import { expect, test } from "bun:test";
import { SAMPLE_DAY_S } from "../../../testing/dmarc-reports.ts";
import { createReportQueries } from "../../../testing/report-queries.ts";
import { recordsSchema } from "./records.ts";

const start = createReportQueries();
const OLD = "192.0.2.1";
const HIDDEN = 700;

/** A report that counts, and a newer one with many rows that is still being written. */
const startWithHalf = async () => {
  const harness = start();
  const domain = harness.enrol();
  const rows = (ip: string, count: number) => Array.from({ length: count }, (_, n) => ({ ip, count: 1 + n }));
  await harness.give({ reportId: "whole", begin: SAMPLE_DAY_S - 86_400, rows: rows(OLD, 3) });
  await harness.give({ reportId: "half", rows: rows("198.51.100.7", HIDDEN) });
  const half = (column: string) =>
    harness.db.sqlite.query(`SELECT ${column} AS value FROM dmarc_reports WHERE report_id = 'half'`).get() as {
      value: string;
    };
  harness.db.sqlite.run("UPDATE dmarc_reports SET is_complete = 0, sameness = 'staged 1' WHERE report_id = 'half'");
  const get = async (query: string, accept = "application/json") =>
    harness.request("GET", `${domain.id}/records${query}`, { accept });
  const addresses = async (query: string) =>
    recordsSchema.parse((await get(query)).body).records.map(({ source_ip }) => source_ip);
  return { ...harness, get, addresses, id: half("id").value };
};

test("rows of a report that is still being written are never shown, filtered or not", async () => {
  const { get, addresses, id } = await startWithHalf();
  const source = "own";
  for (const query of ["", "?limit=3", "?aligned=true", `?source=${source}`, "?reporter=receiver.example"])
    expect(await addresses(query)).toEqual([OLD, OLD, OLD]);
  expect(await addresses("?source_ip=198.51.100.7")).toEqual([]);
  expect((await get(`?report=${id}`)).text).not.toContain("198.51.100.7");
});

test("they are not among the pages and not in the export", async () => {
  const { get, addresses } = await startWithHalf();
  const { next_cursor } = recordsSchema.parse((await get("?limit=2")).body);
  expect(await addresses(`?limit=2&cursor=${next_cursor}`)).toEqual([OLD]);
  const { text } = await get("", "text/csv");
  expect([text.includes(OLD), text.includes("198.51.100.7")]).toEqual([true, false]);
});

test("they are shown once the report counts", async () => {
  const { db, addresses } = await startWithHalf();
  db.sqlite.run("UPDATE dmarc_reports SET is_complete = 1");
  expect(await addresses("?limit=1")).toEqual(["198.51.100.7"]);
});
