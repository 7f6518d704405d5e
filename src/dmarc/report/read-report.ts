import { err, ok, type Result } from "../../base/errors.ts";
import type { ReportProblem } from "./outcome.ts";
import type { Report, ReportNotice } from "./report.ts";
import { createReportDraft } from "./report-draft.ts";
import { walkReport } from "./report-xml.ts";

/**
 * Reads an aggregate report from the bytes of its XML.
 *
 * Values are read as tolerantly as the real world demands (`report-values.ts`); a report without policy domain or
 * period, or one cut off inside a record, is refused: counts must be true. Rows without a usable source or count are
 * left out and counted by reason. Never throws; memory is linear in the input, and the caller bounds the input.
 */
export const readReport = async (bytes: Uint8Array): Promise<Result<Report, ReportProblem>> => {
  const walked = await walkReport(bytes, createReportDraft);
  if (!walked.ok) return walked;
  const { sink, walk } = walked.value;
  const report = sink.finish();
  // A document that breaks off before it says what it is about was cut off, whatever else it lacks.
  if (walk.wasCompleted && (!report.ok || report.value.rows.length === 0)) return err("truncated");
  if (!report.ok) return report;
  const notices: ReportNotice[] = [
    ...(walk.wasRepaired && !walk.wasCompleted ? (["text_repaired"] as const) : []),
    ...(walk.wasCompleted ? (["end_completed"] as const) : []),
    ...report.value.notices,
  ];
  return ok({ ...report.value, notices });
};
