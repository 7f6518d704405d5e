import { err, ok, type Result } from "../../../foundation/base/errors.ts";
import type { ReportFault } from "./outcome.ts";
import { REPORT_LIMITS, type Report, type ReportNotice } from "./report.ts";
import { ReportDraft } from "./report-draft.ts";
import { walkReport } from "./report-xml.ts";
import { REPAIR_LIMITS } from "./text-pre-pass.ts";

/** The remaining work that one mail, with everything in it, may cause. Used up as its reports are parsed. */
export interface ReadingBudget {
  recordsLeft: number;
  /** Characters of texts to be repaired, which takes several passes. */
  repairCharactersLeft: number;
}

/** Enough for one report of the largest size, or several smaller ones. */
export const createReadingBudget = (): ReadingBudget => ({
  recordsLeft: REPORT_LIMITS.recordsMax,
  repairCharactersLeft: 2 * REPAIR_LIMITS.charactersMax,
});

/**
 * Parses an aggregate report from the bytes of its XML.
 *
 * Values are parsed as tolerantly as real reports require (`report-values.ts`). A report without policy domain or period, or
 * of which a part is missing, is rejected: counts must be correct. Rows without a valid source IP or count are left out and
 * counted by reason. Never throws; memory is linear in the input, which the caller limits.
 */
export const readReport = async (
  bytes: Uint8Array,
  budget: ReadingBudget = createReadingBudget(),
): Promise<Result<Report, ReportFault>> => {
  const recordsMax = Math.min(REPORT_LIMITS.recordsMax, budget.recordsLeft);
  const walked = await walkReport(bytes, () => new ReportDraft(recordsMax), budget);
  if (!walked.ok) return walked;
  const { sink, wasRepaired } = walked.value;
  const report = sink.finish(wasRepaired);
  if (!report.ok) return err({ problem: report.error, line: null });
  budget.recordsLeft -= report.value.rows.length;
  const notices: ReportNotice[] = [...(wasRepaired ? (["text_repaired"] as const) : []), ...report.value.notices];
  return ok({ ...report.value, notices });
};
