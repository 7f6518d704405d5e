import { DAY_MS, dayOfTime } from "../../../foundation/base/days.ts";
import type { HostedPolicy } from "../../records/sts/policy-changes.ts";
import type { TlsReportRow } from "../queries/report-query-store.ts";
import { sumTlsReports } from "../queries/report-reader.ts";

/** Days of testing without a failure after which enforcement is offered. */
export const CLEAN_DAYS = 14;

/** What TLS reports say about a policy that is being tested. */
export interface TlsEvidence {
  /** Whole days since the policy is tested, up to 14. */
  readonly days: number;
  /** Reports about the last 14 days. */
  readonly reports: number;
  /** Sessions under the policy, and failed ones under any but DANE. */
  readonly successful: number;
  readonly failed: number;
  readonly isReady: boolean;
}

/** The evidence for enforcing a policy, from the newest TLS reports. Pure. */
export const tlsEvidenceOf = (
  policy: Pick<HostedPolicy, "mode" | "modeSinceMs"> | undefined,
  reports: readonly TlsReportRow[],
  nowMs: number,
): TlsEvidence => {
  const today = dayOfTime(nowMs);
  const { policies, ...summed } = sumTlsReports(reports, { fromDay: today - CLEAN_DAYS, toDay: today });
  const testedMs = policy?.mode === "testing" ? Math.max(0, nowMs - policy.modeSinceMs) : 0;
  const days = Math.min(CLEAN_DAYS, Math.floor(testedMs / DAY_MS));
  const successful = policies.find(({ policyType }) => policyType === "sts")?.successful ?? 0;
  const failed = summed.failed - (policies.find(({ policyType }) => policyType === "tlsa")?.failed ?? 0);
  const isReady = days === CLEAN_DAYS && successful > 0 && failed === 0;
  return { days, reports: summed.reports, successful, failed, isReady };
};

const counted = (count: number, one: string): string => `${count.toLocaleString("en")} ${one}${count === 1 ? "" : "s"}`;

/** The evidence as a sentence. */
export const evidenceText = ({ days, reports, successful, failed }: TlsEvidence): string =>
  `Tested for ${days === CLEAN_DAYS ? `${CLEAN_DAYS} days or more` : `${days} of ${CLEAN_DAYS} days`}; ${counted(reports, "TLS report")} about the last ${CLEAN_DAYS} days with ${counted(successful, "successful session")} under the policy and ${counted(failed, "failed session")}.`;
