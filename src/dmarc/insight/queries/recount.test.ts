import fc from "fast-check";
import { atOnce } from "../../../foundation/base/in-steps.ts";
import { DAY_MS, isoDay } from "../../../foundation/base/days.ts";
import { expect, test } from "bun:test";
import { createReportQueries, MADE_DAY, summaryNow } from "../../../testing/report-queries.ts";
import { SAMPLE_DAY_S, type SampleRow } from "../../../testing/dmarc-reports.ts";
import { readRecords, type ShownRecord } from "./records.ts";
import { timeseriesOf } from "./summary.ts";

const start = createReportQueries();
const DAY_S = DAY_MS / 1000;
const DAYS = 4;

const result = fc.constantFrom("pass", "fail");
const row: fc.Arbitrary<SampleRow> = fc.record({
  ip: fc.constantFrom("8.8.8.8", "8.8.8.9", "9.9.9.9", "5.5.5.5", "2606:4700::1", "10.0.0.1"),
  count: fc.integer({ min: 1, max: 50 }),
  disposition: fc.constantFrom("none", "quarantine", "reject", "pass"),
  dkim: result as fc.Arbitrary<"pass" | "fail">,
  spf: result as fc.Arbitrary<"pass" | "fail">,
  headerFrom: fc.constantFrom("example.com", "a.example.com", "other.example"),
  dkimResults: fc.subarray(["example.com pass s1", "sendgrid.net pass s1", "example.com fail s2"]),
  spfResults: fc.subarray(["em.sendgrid.net pass", "example.com fail"]),
  reasons: fc.subarray(["forwarded", "local_policy arc=pass", "other x"]),
});
const report = fc.record({
  org: fc.constantFrom("One", "ONE", "two"),
  day: fc.integer({ min: 0, max: DAYS - 1 }),
  rows: fc.array(row, { minLength: 1, maxLength: 6 }),
});
const NAMES = fc.subarray([
  ["8.8.8.8", "a.host.example", true],
  ["9.9.9.9", "b.host.example", true],
  ["5.5.5.5", "forged.example", false],
] as const);

const sumOf = (records: readonly ShownRecord[]) => {
  const count = (isCounted: (record: ShownRecord) => boolean): number =>
    records.reduce((sum, record) => sum + (isCounted(record) ? record.count : 0), 0);
  return {
    messages: count(() => true),
    aligned: count(({ aligned }) => aligned),
    failing: count(({ aligned }) => !aligned),
    dkim_aligned: count(({ dkim }) => dkim === "pass"),
    spf_aligned: count(({ spf }) => spf === "pass"),
    forwarded: count(({ forwarded }) => forwarded),
    quarantined: count(({ disposition }) => disposition === "quarantine"),
    rejected: count(({ disposition }) => disposition === "reject"),
  };
};

const NOTHING_PASSED = { count: 1, disposition: "none", dkimResults: [], spfResults: [], reasons: [] };
/** Two senders in one network: aligned mail without a proof, and unauthenticated mail. */
const SHARED_NETWORK: SampleRow[] = [
  { ...NOTHING_PASSED, ip: "8.8.8.8", dkim: "pass", spf: "fail", headerFrom: "example.com" },
  { ...NOTHING_PASSED, ip: "8.8.8.9", dkim: "fail", spf: "fail", headerFrom: "example.com" },
];

test("summary, time series and sources say what a recount of the records says", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(report, { minLength: 1, maxLength: 6 }),
      NAMES,
      fc.integer({ min: -1, max: DAYS }),
      fc.integer({ min: 0, max: DAYS }),
      async (reports, reverse, first, length) => {
        const { enrol, give, nameAddress, store, records: recordStore, sourcesOf } = start();
        const domain = enrol();
        for (const { org, day, rows } of reports) await give({ org, begin: SAMPLE_DAY_S + day * DAY_S, rows });
        for (const [ip, name, isConfirmed] of reverse) nameAddress(ip, name, isConfirmed);
        const range = { fromDay: MADE_DAY + first, toDay: MADE_DAY + first + length };
        const scope = { domain: domain.number };
        const names = sourcesOf(domain).names(range);
        const all = { scope, range, filters: {}, names };
        const { records } = await readRecords(recordStore, all, { after: null, limit: 1000 });
        const told = reports.filter(({ day }) => day >= first && day <= first + length);
        expect(records).toHaveLength(told.reduce((sum, { rows }) => sum + rows.length, 0));

        const summary = summaryNow(store, domain, range);
        const { quarantined, rejected, ...sums } = sumOf(records);
        expect(summary).toMatchObject(sums);
        const none = sums.messages - quarantined - rejected;
        expect(summary.dispositions).toEqual({ none, quarantine: quarantined, reject: rejected });
        expect(summary.reports).toBe(told.length);
        expect(summary.reporters).toBe(new Set(told.map(({ org }) => org.toLowerCase())).size);
        expect(summary.classes.reduce((sum, { messages }) => sum + messages, 0)).toBe(sums.messages);
        for (const { header_from, messages } of summary.names) {
          const of = records.filter(
            (record) => (record.header_from === "other.example" ? null : record.header_from) === header_from,
          );
          expect(sumOf(of).messages).toBe(messages);
        }

        for (const { date, ...point } of atOnce(timeseriesOf(store, domain, range)).points) {
          const day = records.filter((record) => record.date === date);
          expect(point).toMatchObject(sumOf(day));
          expect(point.reports).toBe(told.filter((one) => isoDay(MADE_DAY + one.day) === date).length);
        }

        const sources = sourcesOf(domain).sources(range);
        expect(new Set(sources.map(({ key }) => key))).toEqual(new Set(records.map(({ source }) => source)));
        for (const source of sources) {
          const of = records.filter((record) => record.source === source.key);
          expect(source).toMatchObject(sumOf(of));
          const sourcePlace = { sources: sourcesOf(domain).numbersOf([source.key], range) };
          const question = { scope: sourcePlace, range, filters: {}, names };
          const own = await readRecords(recordStore, question, { after: null, limit: 1000 });
          expect(own.records).toEqual(of);
        }
      },
    ),
    { numRuns: 40, examples: [[[{ org: "One", day: 0, rows: SHARED_NETWORK }], [], 0, 0]] },
  );
});

test("every record stands on exactly one page, whatever the page size and the filter", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(report, { minLength: 1, maxLength: 5 }),
      fc.integer({ min: 1, max: 4 }),
      fc.constantFrom({}, { aligned: false }, { aligned: true }, { disposition: "none" as const }, { reporter: "one" }),
      async (reports, limit, filters) => {
        const { enrol, give, records: store } = start();
        const domain = enrol();
        for (const { org, day, rows } of reports) await give({ org, begin: SAMPLE_DAY_S + day * DAY_S, rows });
        const question = {
          scope: { domain: domain.number },
          range: { fromDay: MADE_DAY, toDay: MADE_DAY + DAYS },
          filters,
          names: new Map(),
        };
        const whole = await readRecords(store, question, { after: null, limit: 1000 });
        const found: ShownRecord[] = [];
        for (let after: string | null = null; ;) {
          const page: Awaited<ReturnType<typeof readRecords>> = await readRecords(store, question, { after, limit });
          expect(page.records.length).toBeLessThanOrEqual(limit);
          found.push(...page.records);
          if (page.next === null) break;
          after = page.next;
        }
        expect(found).toEqual([...whole.records]);
        const all = await readRecords(store, { ...question, filters: {} }, { after: null, limit: 1000 });
        const { aligned, disposition, reporter } = {
          aligned: undefined,
          disposition: undefined,
          reporter: undefined,
          ...filters,
        };
        expect(found).toEqual(
          all.records.filter(
            (record) =>
              (aligned === undefined || record.aligned === aligned) &&
              (disposition === undefined || record.disposition === disposition) &&
              (reporter === undefined || record.report.org_name?.toLowerCase() === reporter),
          ),
        );
      },
    ),
    { numRuns: 40 },
  );
});

test("of a day what fails comes first, then what was passed on, then what is aligned; of each the most first", async () => {
  const { enrol, give, records: store } = start();
  const { number } = enrol();
  const fails = { dkim: "fail", spf: "fail" } as const;
  await give({
    rows: [
      { count: 7 },
      { ...fails, count: 2 },
      { ...fails, count: 9, reasons: ["forwarded"] },
      { ...fails, count: 3 },
      { count: 8 },
    ],
  });
  const question = { scope: { domain: number }, range: { fromDay: 0, toDay: 99_999 }, filters: {}, names: new Map() };
  const { records } = await readRecords(store, question, { after: null, limit: 9 });
  expect(records.map(({ count }) => count)).toEqual([3, 2, 9, 8, 7]);
});
