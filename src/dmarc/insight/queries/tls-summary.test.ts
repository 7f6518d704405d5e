import { expect, test } from "bun:test";
import { DAY_MS } from "../../../foundation/base/days.ts";
import type { TlsReportBody } from "../../reports/report/report.ts";
import type { TlsReportRow } from "./report-query-store.ts";
import { TLS_REPORTS_SUMMED_MAX, sumTlsReports } from "./report-reader.ts";

type Policy = TlsReportBody["policies"][number];

const policy = (more: Partial<Policy> = {}): Policy => ({
  ...{ domain: "example.com", policyType: "sts", successfulSessions: 0, failedSessions: 0, failures: [] },
  ...more,
});

const row = (day: number, policies: readonly Policy[], more: Partial<TlsReportRow> = {}): TlsReportRow => ({
  ...{ id: "id", ingestion: "i", org: "Reporter", reportId: null, successfulSessions: 0, failedSessions: 0 },
  ...{ beginMs: day * DAY_MS, endMs: day * DAY_MS + DAY_MS - 1, receivedAtMs: (day + 1) * DAY_MS },
  body: JSON.stringify({ contact: null, policies }),
  ...more,
});

const DAYS = { fromDay: 100, toDay: 129 };

test("sessions are summed up by day, policy, failure and host, the largest first", () => {
  const broken = policy({
    ...{ successfulSessions: 10, failedSessions: 9 },
    failures: [
      { resultType: "Certificate-Expired", sessions: 4, mxHost: "mx1.example.com" },
      { resultType: "starttls-not-supported", sessions: 2, mxHost: "mx1.example.com" },
      { resultType: "made-up-by-the-reporter", sessions: 1, mxHost: null },
    ],
  });
  const rows = [
    row(110, [broken]),
    row(101, [policy({ successfulSessions: 5 }), policy({ policyType: null, successfulSessions: 40 })]),
  ];
  expect(sumTlsReports(rows, DAYS)).toEqual({
    ...{ successful: 55, failed: 9, reports: 2, isCut: false },
    days: [
      { day: 101, successful: 45, failed: 0 },
      { day: 110, successful: 10, failed: 9 },
    ],
    policies: [
      { policyType: "", successful: 40, failed: 0 },
      { policyType: "sts", successful: 15, failed: 9 },
    ],
    failures: [
      { key: "certificate-expired", failed: 4 },
      // One failure by an unknown name and two without details.
      { key: "unspecified", failed: 3 },
      { key: "starttls-not-supported", failed: 2 },
    ],
    hosts: [{ key: "mx1.example.com", failed: 6, resultTypes: ["certificate-expired", "starttls-not-supported"] }],
  });
});

test("a report counts for the day of the middle of its period, and not for one behind its arrival", () => {
  const of = (more: Partial<TlsReportRow>) =>
    sumTlsReports([row(110, [policy({ successfulSessions: 1 })], more)], DAYS).days.map(({ day }) => day);
  expect(of({ endMs: 120 * DAY_MS, receivedAtMs: 121 * DAY_MS })).toEqual([115]);
  expect(of({ beginMs: 128 * DAY_MS, endMs: 129 * DAY_MS, receivedAtMs: 120 * DAY_MS })).toEqual([120]);
  expect(of({ beginMs: null, endMs: null, receivedAtMs: 119 * DAY_MS })).toEqual([119]);
  expect(of({ beginMs: 99 * DAY_MS, endMs: 99 * DAY_MS })).toEqual([]);
  expect(of({ beginMs: 130 * DAY_MS, endMs: 130 * DAY_MS, receivedAtMs: 131 * DAY_MS })).toEqual([]);
});

test("more failures than sessions that failed count as failed", () => {
  const inconsistent = policy({
    failedSessions: 1,
    failures: [{ resultType: "certificate-expired", sessions: 5, mxHost: null }],
  });
  expect(sumTlsReports([row(110, [inconsistent])], DAYS)).toMatchObject({ failed: 5, hosts: [] });
});

test("lists are limited, and a summary of as many reports as are read says that older ones may be missing", () => {
  const failures = Array.from({ length: 30 }, (_, n) => ({ resultType: "x", sessions: n + 1, mxHost: `mx${n}` }));
  const { hosts } = sumTlsReports([row(110, [policy({ failures })])], DAYS);
  expect(hosts).toHaveLength(20);
  expect(hosts[0]?.key).toBe("mx29");
  const many = Array.from({ length: TLS_REPORTS_SUMMED_MAX }, () => row(110, []));
  expect(sumTlsReports(many, DAYS).isCut).toBe(true);
});
