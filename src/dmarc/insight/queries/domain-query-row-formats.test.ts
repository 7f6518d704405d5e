import { rowFormatOf, wantsCsv } from "../../../foundation/http/row-format.ts";
import { CSV_ROWS_MAX, csvResponse } from "./domain-query.ts";
import { type Cell, csvLine } from "../../../foundation/http/csv.ts";
import { parse } from "csv-parse/sync";
import { describe, expect, test } from "bun:test";

test.each<[readonly Cell[], string]>([
  [["a", 1, true, null, 0.5], "a,1,true,,0.5\r\n"],
  [['say "no"', "a,b", "x\r\ny", "a;b"], '"say ""no""","a,b","x\r\ny","a;b"\r\n'],
  [["=1+1", "+49", "-5", "@x", " =x", "\tx", "＝x"], "'=1+1,+49,-5,'@x,' =x,\"'\tx\",'＝x\r\n"],
  [[-5, "a=b", ""], "-5,a=b,\r\n"],
  [[" edge "], '" edge "\r\n'],
])("%p is written as it can be read", (cells, line) => {
  expect(csvLine(cells)).toBe(line);
});

test.each([
  ["text/csv", true],
  ["TEXT/CSV; charset=utf-8", true],
  ["text/csv, */*;q=0.1", true],
  ["application/json;q=0.5, text/csv", true],
  ["text/csv;q=0.5, application/json", false],
  ["text/csv;q=0", false],
  ["*/*", false],
  ["application/json", false],
  ["", false],
])("Accept: %s asks for CSV: %p", (accept, isCsv) => {
  expect(wantsCsv(new Request("http://localhost/", { headers: { accept } }))).toBe(isCsv);
});

test.each([
  ["application/x-ndjson", "ndjson"],
  ["application/ndjson", "ndjson"],
  ["application/x-ndjson, application/json;q=0.9", "ndjson"],
  ["application/x-ndjson;q=0.8, application/json", "json"],
  ["application/x-ndjson;q=0.5, text/csv", "csv"],
  ["application/x-ndjson, text/csv;q=0.5", "ndjson"],
  ["*/*", "json"],
] as const)("Accept: %s asks for %s", (accept, format) => {
  expect(rowFormatOf(new Request("http://localhost/", { headers: { accept } }))).toBe(format);
});

const REQUEST = new Request("http://localhost/");

describe("a file", () => {
  const batchesOf = (batches: number, rows: number) => {
    const state = { read: 0, isEnded: false };
    async function* generate(): AsyncGenerator<readonly Cell[][], void> {
      try {
        for (; state.read < batches; state.read += 1) yield Array.from({ length: rows }, () => [state.read]);
      } finally {
        state.isEnded = true;
      }
    }
    return { state, batches: generate() };
  };

  test("has its header row even when there is nothing else", async () => {
    const answer = csvResponse(REQUEST, "x.csv", { columns: ["a", "b"], batches: batchesOf(0, 0).batches });
    expect(await answer.text()).toBe("a,b\r\n");
    expect(answer.headers.get("content-disposition")).toBe('attachment; filename="x.csv"');
  });

  test("is cut behind the ceiling of rows, and no more is read", async () => {
    const { state, batches } = batchesOf(100, 30_000);
    const rows: string[][] = parse(await csvResponse(REQUEST, "x.csv", { columns: ["a"], batches }).text());
    expect(rows).toHaveLength(1 + CSV_ROWS_MAX);
    expect(state).toEqual({ read: 3, isEnded: true });
  });

  test("whose reader goes away is not read on", async () => {
    const { state, batches } = batchesOf(100, 10);
    const reader = csvResponse(REQUEST, "x.csv", { columns: ["a"], batches }).body?.getReader();
    await reader?.read();
    await reader?.read();
    await reader?.cancel();
    expect(state.isEnded).toBe(true);
    expect(state.read).toBeLessThan(5);
  });
});
