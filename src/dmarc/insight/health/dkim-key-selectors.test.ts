import { findSeenSelectors, SELECTOR_DAYS } from "./dkim-key.ts";
import { HealthStore } from "./health-store.ts";
import { ReporterStore } from "../../records/domains/reporter-store.ts";
import { createIngestHarness } from "../../../testing/ingest-harness.ts";
import { SAMPLE_DAY_S, sampleReportXml, type SampleRow } from "../../../testing/dmarc-reports.ts";
import { createTestClock } from "../../../testing/clock.ts";
import { DAY_MS, dayOfTime } from "../../../foundation/base/days.ts";
import { expect, test } from "bun:test";

const failed = (selector: string) => ({ domain: "example.com", selector, result: "fail", humanResult: null }) as const;

const newWorld = createIngestHarness();
const TODAY = dayOfTime(SAMPLE_DAY_S * 1000);

const seenIn = async (
  reports: ReadonlyArray<{ readonly back: number; readonly rows: readonly SampleRow[] }>,
  today = TODAY,
) => {
  const world = newWorld({ clock: createTestClock(SAMPLE_DAY_S * 1000 + 2 * DAY_MS) });
  const domain = world.enrol("example.com");
  for (const [at, { back, rows }] of reports.entries()) {
    const begin = SAMPLE_DAY_S - back * 86_400;
    await world.upload(
      sampleReportXml({ domain: "example.com", reportId: `r${at}`, begin, end: begin + 86_399, rows }),
    );
  }
  return findSeenSelectors(new HealthStore(world.db), domain, today);
};

test("selectors are summed over days, with the last day that they were seen and that they passed", async () => {
  const seen = await seenIn([
    { back: 0, rows: [{ count: 7, dkim: "fail", spf: "fail", dkimResults: ["example.com fail mail"] }] },
    { back: 3, rows: [{ count: 5, dkimResults: ["example.com pass mail", "esp.example pass k1"] }] },
    { back: 5, rows: [{ count: 90, dkimResults: ["news.example.com pass S2"] }] },
  ]);
  expect(seen).toEqual([
    {
      signer: "news.example.com",
      selector: "s2",
      origin: "reports",
      seen: { passed: 90, failed: 0, lastDay: TODAY - 5, lastPassedDay: TODAY - 5, vouched: 0, lastVouchedDay: null },
    },
    {
      signer: "example.com",
      selector: "mail",
      origin: "reports",
      seen: { passed: 5, failed: 7, lastDay: TODAY, lastPassedDay: TODAY - 3, vouched: 0, lastVouchedDay: null },
    },
  ]);
});

test("a signature that fails in mail which passes by SPF alone is of a sender of the domain", async () => {
  const failing = { dkim: "fail", dkimResults: ["example.com permerror late"] } as const;
  const seen = await seenIn([
    { back: 1, rows: [{ ...failing, count: 30 }] },
    { back: 0, rows: [{ ...failing, count: 4, spf: "fail" }] },
    { back: 2, rows: [{ count: 90, dkimResults: ["example.com pass mail", "example.com fail added"] }] },
  ]);
  expect(seen.map(({ selector }) => selector)).toEqual(["mail", "late", "added"]);
  expect(seen.map((one) => [one.seen?.vouched, one.seen?.lastVouchedDay])).toEqual([
    [0, null],
    [30, TODAY - 1],
    [0, null],
  ]);
});

test("a report on which nothing relies proves no signature", async () => {
  const forged = { count: 30, isAligned: true, dkimResults: [failed("late")] };
  const days = new Map([[TODAY, [1, 0, 7].map((voucher) => ({ ...forged, voucher }))]]);
  const store = {
    signedRecords: (_: number, day: number) => days.get(day) ?? [],
    decidingVouchers: () => new Set([1, 9]),
  };
  const [late] = await findSeenSelectors(store, { number: 1, domain: "example.com" }, TODAY);
  expect(late?.seen).toMatchObject({ failed: 90, vouched: 30 });
});

test("reports that are not authenticated, or excessive, are none on which decisions rely", () => {
  const world = newWorld();
  const domain = world.enrol("example.com");
  const { sqlite } = world.db;
  const reporters = new ReporterStore(world.db);
  world.db.transact((tx) => {
    const [first, second] = ["a.example", "b.example"].map((author) =>
      reporters.vouch(tx, domain.number, { author, isKnown: false, day: TODAY }),
    );
    reporters.setExcessive(tx, second ?? 0, 1);
    expect([...new HealthStore({ sqlite }).decidingVouchers(domain.number)]).toEqual([1, first ?? 0]);
  });
});

test("selectors that never passed come last, and their number is limited: they may be forged", async () => {
  const forged = Array.from({ length: 40 }, (_, at): SampleRow => ({
    ip: `192.0.2.${at}`,
    count: 1_000,
    dkim: "fail",
    spf: "fail",
    dkimResults: [`example.com fail x${at}`],
  }));
  const seen = await seenIn([{ back: 1, rows: [...forged, { count: 1, dkimResults: ["example.com pass mail"] }] }]);
  expect(seen[0]).toMatchObject({ selector: "mail", seen: { passed: 1 } });
  expect(seen.length).toBe(9);
});

test("texts that are no selectors, signatures without one, and old days are left out", async () => {
  const seen = await seenIn([
    {
      back: 1,
      rows: [{ count: 1, dkimResults: ["example.com pass", "example.com pass a..b", "example.com none mail"] }],
    },
    { back: SELECTOR_DAYS, rows: [{ count: 1, dkimResults: ["example.com pass old"] }] },
  ]);
  expect(seen).toEqual([]);
});

test("no more than 2,000 pairs of selector and domain are counted, those of the latest days first", async () => {
  const signatures = (selectors: readonly string[], result: "pass" | "fail") => [
    {
      count: 1,
      isAligned: result === "pass",
      voucher: 1,
      dkimResults: selectors.map((selector) => ({ domain: "example.com", selector, result, humanResult: null })),
    },
  ];
  const forged = Array.from({ length: 1_999 }, (_, at) => `x${at}`);
  const days = new Map([
    [TODAY, signatures(forged, "fail")],
    [TODAY - 1, signatures(["mail", "late"], "pass")],
  ]);
  const store = {
    signedRecords: (_: number, day: number) => days.get(day) ?? [],
    decidingVouchers: () => new Set([1]),
  };
  const seen = await findSeenSelectors(store, { number: 1, domain: "example.com" }, TODAY);
  expect(seen.flatMap(({ selector, seen }) => (seen?.passed === 0 ? [] : [selector]))).toEqual(["mail"]);
});
