import { dayOfTime } from "../../base/days.ts";
import type { TlsReport } from "../report/tls-report.ts";
import type { TlsReportRead } from "./tls-failure-store.ts";
import { knownResultType, UNSPECIFIED_FAILURE } from "./tls-failure-words.ts";

/** How the sessions under one policy fared on the last days that reports tell of, with regard to one type of failure. */
export interface TlsFailures {
  readonly policyDomain: string;
  /** `sts`, `tlsa`, `no-policy-found`, or what the reporter wrote; empty when it did not say. */
  readonly policyType: string;
  readonly resultType: string;
  readonly firstDay: number;
  readonly lastDay: number;
  readonly sessions: number;
  readonly failed: number;
  /** MX hosts that were named, the most failed sessions first. */
  readonly mxHosts: ReadonlyArray<{ readonly host: string; readonly sessions: number }>;
  /** Who reported failures; sorted. */
  readonly reporters: readonly string[];
}

type Policy = TlsReport["policies"][number];

/** The last days with reports about a policy that are judged together. */
const DAYS_JUDGED = 2;
/** What is longer ago is no news. */
export const ALERT_DAYS = 7;
const FAILED_MIN = 10;
const FAILED_SHARE_MIN = 0.05;
/** An incident is over below half of what begins one, so that it does not begin and end by turns. */
const OVER_SHARE = FAILED_SHARE_MIN / 2;

/** Whether failures are an incident, are none any more, or are too few to say either. Pure. */
export const judgeTlsFailures = ({
  sessions,
  failed,
}: Pick<TlsFailures, "sessions" | "failed">): "failing" | "over" | "between" => {
  if (failed >= FAILED_MIN && failed >= sessions * FAILED_SHARE_MIN) return "failing";
  return sessions > 0 && failed < sessions * OVER_SHARE ? "over" : "between";
};

/** The day that most of a report is about. */
const dayOf = ({ beginMs, endMs, receivedAtMs }: TlsReportRead): number =>
  dayOfTime(beginMs === null ? receivedAtMs : Math.min((beginMs + (endMs ?? beginMs)) / 2, receivedAtMs));

/** Failed sessions by the types of RFC 8460; what the details of a policy leave out has none. */
const failuresOf = ({ failures, failedSessions }: Policy): Policy["failures"] => {
  const rest = failedSessions - failures.reduce((sum, { sessions }) => sum + sessions, 0);
  const known = failures.map((failure) => ({ ...failure, resultType: knownResultType(failure.resultType) }));
  return rest > 0 ? [...known, { resultType: UNSPECIFIED_FAILURE, sessions: rest, mxHost: null }] : known;
};

interface PolicyDay {
  readonly day: number;
  readonly org: string | null;
  readonly policy: Policy;
}

/**
 * Sums up what reports say of each policy on the last two days that they tell of, by types of failure. `known` are types that
 * are among the answers with zeros when nothing failed with them, as `policyDomain policyType resultType`. Pure.
 */
export const sumTlsFailures = (
  reports: readonly TlsReportRead[],
  today: number,
  known: ReadonlySet<string>,
): readonly TlsFailures[] => {
  const days = reports.flatMap((report): PolicyDay[] =>
    report.policies.map((policy) => ({ day: dayOf(report), org: report.org, policy })),
  );
  const recent = days.filter(({ day, policy }) => policy.domain !== null && day >= today - ALERT_DAYS);
  const byPolicy = Map.groupBy(recent, ({ policy }) => policyKeyOf(policy));
  return [...byPolicy].flatMap(([key, all]) => sumsOf(key, all, known));
};

/** What stands in a key has no blanks. */
const policyKeyOf = ({ domain, policyType }: Policy): string =>
  `${domain ?? ""} ${(policyType ?? "").replace(/\s+/g, "-")}`;

/** What an incident is known by. */
export const subjectOfTls = ({ policyDomain, policyType, resultType }: TlsFailures): string =>
  `${policyDomain} ${policyType} ${resultType}`;

const sumsOf = (key: string, all: readonly PolicyDay[], known: ReadonlySet<string>): readonly TlsFailures[] => {
  const last = [...new Set(all.map(({ day }) => day))].toSorted((a, b) => b - a).slice(0, DAYS_JUDGED);
  const judged = all.filter(({ day }) => last.includes(day));
  const failing = judged.flatMap(({ org, policy }) => failuresOf(policy).map((failure) => ({ org, ...failure })));
  const types = new Set(failing.map(({ resultType }) => resultType));
  for (const subject of known) if (subject.startsWith(`${key} `)) types.add(subject.slice(key.length + 1));
  const sessions = judged.reduce(
    (sum, { policy }) => sum + policy.successfulSessions + Math.max(policy.failedSessions, detailed(policy)),
    0,
  );
  const [policyDomain = "", policyType = ""] = key.split(" ");
  return [...types].map((resultType) => {
    const of = failing.filter((failure) => failure.resultType === resultType && failure.sessions > 0);
    return {
      ...{ policyDomain, policyType, resultType, sessions },
      firstDay: Math.min(...last),
      lastDay: Math.max(...last),
      failed: of.reduce((sum, failure) => sum + failure.sessions, 0),
      mxHosts: hostsOf(of),
      reporters: [...new Set(of.flatMap(({ org }) => org ?? []))].toSorted(),
    };
  });
};

const detailed = ({ failures }: Policy): number => failures.reduce((sum, { sessions }) => sum + sessions, 0);

const hostsOf = (failures: Policy["failures"]): TlsFailures["mxHosts"] => {
  const byHost = new Map<string, number>();
  // Reports stored by older versions have no host.
  for (const { mxHost = null, sessions } of failures)
    if (mxHost !== null) byHost.set(mxHost, (byHost.get(mxHost) ?? 0) + sessions);
  return [...byHost].map(([host, sessions]) => ({ host, sessions })).toSorted((a, b) => b.sessions - a.sessions);
};
