import { err, ok, type Result } from "../../base/errors.ts";
import type { ReportFault } from "./outcome.ts";
import { REPORT_LIMITS, type Report, type ReportNotice } from "./report.ts";
import { ReportDraft } from "./report-draft.ts";
import { walkReport } from "./report-xml.ts";
import { REPAIR_LIMITS } from "./text-pre-pass.ts";

/** What is left of the work that one mail, with everything in it, may cause. Used up as its reports are read. */
export interface ReadingBudget {
  recordsLeft: number;
  /** Characters of texts to be repaired: they are gone through several times. */
  repairCharactersLeft: number;
}

/** One report of the largest kind, or several smaller ones: each record takes memory. */
export const createReadingBudget = (): ReadingBudget => ({
  recordsLeft: REPORT_LIMITS.recordsMax,
  repairCharactersLeft: 2 * REPAIR_LIMITS.charactersMax,
});

/**
 * Reads an aggregate report from the bytes of its XML.
 *
 * Values are read as tolerantly as the real world demands (`report-values.ts`); a report without policy domain or
 * period, or one of which a piece is missing, is refused: counts must be true. Rows without a usable source or count are
 * left out and counted by reason. Never throws; memory is linear in the input, and the caller bounds the input.
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
