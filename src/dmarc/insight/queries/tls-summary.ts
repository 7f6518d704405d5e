import { type DayRange, dayOfTime } from "../../../foundation/base/days.ts";
import { parseTlsReportBody, type TlsReportBody } from "../../reports/report/report.ts";
import { knownResultType, UNSPECIFIED_FAILURE } from "../../reports/report/tls-report.ts";
import type { TlsReportRow } from "./report-query-store.ts";

/** TLS sessions of mail to a domain. */
export interface TlsSessions {
  readonly successful: number;
  readonly failed: number;
}

/** Failed sessions of one kind; `key` is a result type of RFC 8460, an MX host or the name of a reporter. */
export interface TlsFailureCount {
  readonly key: string;
  readonly failed: number;
}

/** The TLS reports of some days, summed up. */
export interface TlsSummary extends TlsSessions {
  readonly reports: number;
  /** Days with reports, in order. A day without one is absent: that is not a day without sessions. */
  readonly days: ReadonlyArray<TlsSessions & { readonly day: number }>;
  /** `sts`, `tlsa`, `no-policy-found`, or what the reporter wrote; empty when it did not say. The most sessions first. */
  readonly policies: ReadonlyArray<TlsSessions & { readonly policyType: string }>;
  /** Failures by result type; those without details are `unspecified`. The most failed sessions first. */
  readonly failures: readonly TlsFailureCount[];
  /** Failures by receiving MX host, where the report names one. The most failed sessions first. */
  readonly hosts: ReadonlyArray<TlsFailureCount & { readonly resultTypes: readonly string[] }>;
  /** Whether there may be older reports of these days that are not counted. */
  readonly isCut: boolean;
}

/** Reports that one summary reads, the newest. */
export const TLS_REPORTS_SUMMED_MAX = 1_000;
/** Hosts and policies listed. */
const LISTED_MAX = 20;

type Policy = TlsReportBody["policies"][number];

interface DayPolicy {
  readonly day: number;
  readonly policy: Policy;
}

/** Sums up TLS reports by the day that most of a report is about, by policy, failure and host. Pure. */
export const sumTlsReports = (rows: readonly TlsReportRow[], { fromDay, toDay }: DayRange): TlsSummary => {
  const inRange = rows.filter((row) => dayOf(row) >= fromDay && dayOf(row) <= toDay);
  const all = inRange.flatMap((row): DayPolicy[] =>
    parseTlsReportBody(row.body).policies.map((policy) => ({ day: dayOf(row), policy })),
  );
  const failures = all.flatMap(({ policy }) => failuresOf(policy));
  const byDay = Map.groupBy(all, ({ day }) => day);
  const byPolicy = Map.groupBy(all, ({ policy }) => policy.policyType ?? "");
  const byHost = Map.groupBy(failures, ({ mxHost }) => mxHost ?? "");
  // Reports stored by older versions, and some reporters, name no host.
  byHost.delete("");
  return {
    ...sessionsOf(all),
    reports: inRange.length,
    days: [...byDay].map(([day, of]) => ({ day, ...sessionsOf(of) })).toSorted((a, b) => a.day - b.day),
    policies: [...byPolicy]
      .map(([policyType, of]) => ({ policyType, ...sessionsOf(of) }))
      .toSorted((a, b) => b.successful + b.failed - a.successful - a.failed)
      .slice(0, LISTED_MAX),
    failures: countsOf(Map.groupBy(failures, ({ resultType }) => resultType)),
    hosts: countsOf(byHost).map((count) => ({
      ...count,
      resultTypes: [...new Set(byHost.get(count.key)?.map(({ resultType }) => resultType))],
    })),
    isCut: rows.length >= TLS_REPORTS_SUMMED_MAX,
  };
};

/** The day that most of a report is about. A reporter cannot move it behind the day of its arrival. */
const dayOf = ({ beginMs, endMs, receivedAtMs }: TlsReportRow): number =>
  dayOfTime(beginMs === null ? receivedAtMs : Math.min((beginMs + (endMs ?? beginMs)) / 2, receivedAtMs));

const sessionsOf = (all: readonly DayPolicy[]): TlsSessions => ({
  successful: all.reduce((sum, { policy }) => sum + policy.successfulSessions, 0),
  failed: all.reduce((sum, { policy }) => sum + Math.max(policy.failedSessions, detailed(policy)), 0),
});

const detailed = ({ failures }: Policy): number => failures.reduce((sum, { sessions }) => sum + sessions, 0);

/** Failed sessions by the result types of RFC 8460; those without details are unspecified. */
const failuresOf = (policy: Policy): Policy["failures"] => {
  const known = policy.failures.map((each) => ({ ...each, resultType: knownResultType(each.resultType) }));
  const rest = policy.failedSessions - detailed(policy);
  return rest > 0 ? [...known, { resultType: UNSPECIFIED_FAILURE, sessions: rest, mxHost: null }] : known;
};

const countsOf = (groups: ReadonlyMap<string, Policy["failures"]>): TlsFailureCount[] =>
  [...groups]
    .map(([key, of]) => ({ key, failed: of.reduce((sum, { sessions }) => sum + sessions, 0) }))
    .filter(({ failed }) => failed > 0)
    .toSorted((a, b) => b.failed - a.failed)
    .slice(0, LISTED_MAX);
