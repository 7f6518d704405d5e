import { describe, expect, test } from "bun:test";
import { SAMPLE_DAY_S } from "../../../testing/dmarc-reports.ts";
import { fillReportQueries, OWN, STRANGER } from "../../../testing/report-queries-filled.ts";
import { createReportQueries } from "../../../testing/report-queries.ts";
import { exportedRecordSchema, recordSchema, recordsSchema } from "./records.ts";

const newHarness = createReportQueries();
const startFilled = () => fillReportQueries(newHarness());
const DAY_S = 86_400;
const NDJSON = "application/x-ndjson";

const linesOf = (text: string): string[] => {
  const lines = text.split("\n");
  expect(lines.pop()).toBe("");
  return lines;
};

describe("records of a domain as NDJSON", () => {
  test("are those of the list, whatever the limit", async () => {
    const { get } = await startFilled();
    for (const filter of ["", "?aligned=false", "?source_ip=8.8.8.8&limit=1", "?from=2026-01-01&to=2026-01-01"]) {
      const answer = await get(`records${filter}`, { accept: NDJSON });
      expect([answer.status, answer.headers.get("content-type")]).toEqual([200, NDJSON]);
      const { records } = recordsSchema.parse((await get(`records${filter.replace("limit=1", "")}`)).body);
      expect(linesOf(answer.text).map((line) => recordSchema.parse(JSON.parse(line)))).toEqual(records);
      expect(records.length).toBeGreaterThan(0);
    }
  });

  test("go on behind a cursor, and have a name of their own", async () => {
    const { get } = await startFilled();
    const first = recordsSchema.parse((await get("records?limit=2")).body);
    const rest = await get(`records?cursor=${first.next_cursor}`, { accept: NDJSON });
    expect(linesOf(rest.text)).toHaveLength(3);
    expect(rest.headers.get("content-disposition")).toMatch(/filename="records-example\.com-.*\.ndjson"/);
  });

  test("are of nobody else", async () => {
    const { get } = await startFilled();
    expect((await get("records", { accept: NDJSON, key: "other" })).status).toBe(404);
  });
});

describe("the export of all domains", () => {
  const start = async () => {
    const harness = await startFilled();
    harness.enrol("second.example");
    await harness.give({ domain: "second.example", rows: [OWN, STRANGER] });
    const pull = async (query = "", key = "own") => {
      const answer = await harness.request("GET", `../records${query}`, { key });
      const lines = answer.status === 200 ? linesOf(answer.text) : [];
      return { ...answer, lines: lines.map((line) => exportedRecordSchema.parse(JSON.parse(line))) };
    };
    return { ...harness, pull };
  };

  test("has every record once, in the order in which reports came", async () => {
    const { pull } = await start();
    const { lines, headers } = await pull();
    expect(headers.get("content-type")).toBe(NDJSON);
    expect(lines.map(({ domain, source_ip, date }) => `${domain} ${source_ip} ${date}`)).toEqual([
      "example.com 8.8.8.8 2026-01-01",
      "example.com 9.9.9.9 2026-01-01",
      "example.com 5.5.5.5 2026-01-01",
      "example.com 6.6.6.6 2026-01-01",
      "example.com 8.8.8.8 2025-12-31",
      "second.example 8.8.8.8 2026-01-01",
      "second.example 5.5.5.5 2026-01-01",
    ]);
  });

  test("resumes behind any of its records", async () => {
    const { pull } = await start();
    const { lines } = await pull();
    for (const [at, { cursor }] of lines.entries()) {
      expect((await pull(`?cursor=${cursor}`)).lines).toEqual(lines.slice(at + 1));
    }
  });

  test("has what came later behind what was read, whatever day it is about", async () => {
    const { pull, give } = await start();
    const cursor = (await pull()).lines.at(-1)?.cursor ?? "";
    expect((await pull(`?cursor=${cursor}`)).text).toBe("");
    await give({ begin: SAMPLE_DAY_S - 20 * DAY_S, rows: [{ ...OWN, count: 7 }] });
    expect((await pull(`?cursor=${cursor}`)).lines.map(({ date, count }) => [date, count])).toEqual([
      ["2025-12-12", 7],
    ]);
  });

  test("does not pass a report that is still being written", async () => {
    const { pull, db } = await start();
    const complete = (is: 0 | 1) => db.sqlite.run("UPDATE dmarc_reports SET is_complete = ? WHERE number = 2", [is]);
    complete(0);
    const { lines } = await pull();
    expect(lines).toHaveLength(4);
    complete(1);
    expect((await pull(`?cursor=${lines.at(-1)?.cursor}`)).lines).toHaveLength(3);
    // A report behind the cursor that is being removed does not stop the export.
    db.sqlite.run("UPDATE dmarc_reports SET is_complete = 0 WHERE number = 1");
    expect((await pull(`?cursor=${lines.at(-1)?.cursor}`)).lines).toHaveLength(3);
  });

  test("keeps to the days that are asked for", async () => {
    const { pull } = await start();
    expect((await pull("?from=2025-12-31&to=2025-12-31")).lines.map(({ count }) => count)).toEqual([10]);
  });

  test("is of the caller's domains that are still there", async () => {
    const { pull, db } = await start();
    expect((await pull("", "other")).text).toBe("");
    expect((await pull("", "blind")).status).toBe(403);
    db.sqlite.run("UPDATE dmarc_domains SET deleted_at_ms = 1 WHERE domain = 'example.com'");
    expect(new Set((await pull()).lines.map(({ domain }) => domain))).toEqual(new Set(["second.example"]));
  });

  test.each(["?cursor=x", "?cursor=MQ", "?limit=1", "?from=tomorrow", "?aligned=true"])("refuses %s", async (query) => {
    const { pull } = await start();
    expect((await pull(query)).status).toBe(400);
  });
});
