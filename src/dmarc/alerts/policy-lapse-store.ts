import type { DayRange } from "../../base/days.ts";
import type { Db } from "../../db/open.ts";
import type { PublishedPolicy } from "../report/report.ts";

/** A policy that a reporter found on a day, by reports that are trusted. */
export interface ReportedPolicy {
  /** The reporter's name in lower case; empty when it has none. */
  readonly reporter: string;
  readonly day: number;
  readonly beginMs: number;
  readonly endMs: number;
  readonly policy: PublishedPolicy;
}

/** Policies read for one review. */
const POLICIES_MAX = 5_000;

/** What reports say of a domain's policy, and which lapses its owner was alerted to. */
export const createPolicyLapseStore = ({ sqlite }: Pick<Db, "sqlite">) => {
  // A space in `sameness` stands before the author of a report that is not trusted.
  const policies = sqlite.prepare<
    Omit<ReportedPolicy, "policy"> & { policy: string },
    [number, number, number, string, number]
  >(
    `SELECT lower(coalesce(org, '')) reporter, day, min(begin_ms) beginMs, max(end_ms) endMs, policy FROM dmarc_reports
      WHERE domain = ? AND day BETWEEN ? AND ? AND is_complete = 1 AND policy_domain = ? AND instr(sameness, ' ') = 0
      GROUP BY day, reporter, policy ORDER BY day DESC LIMIT ?`,
  );
  const told = sqlite.prepare<{ subject: string }, [number, number]>(
    "SELECT subject FROM dmarc_alerts WHERE domain = ? AND rule = 'policy_weakened' AND subject GLOB 'reports:*' AND at_ms >= ?",
  );
  return {
    /** The policies that reporters found at `name` in a range of days, the newest day first. */
    reportedPolicies: (domain: number, { fromDay, toDay }: DayRange, name: string): ReportedPolicy[] =>
      policies
        .all(domain, fromDay, toDay, name, POLICIES_MAX)
        .map((row) => ({ ...row, policy: JSON.parse(row.policy) as PublishedPolicy })),
    /** Subjects of the lapses found in reports that were raised since. */
    toldLapses: (domain: number, sinceMs: number): string[] => told.all(domain, sinceMs).map(({ subject }) => subject),
  };
};

export type PolicyLapseStore = ReturnType<typeof createPolicyLapseStore>;
