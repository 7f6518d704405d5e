import type { ReportOutcome, OutcomeReason, ReportReading } from "./outcome.ts";
import { rejected } from "./outcome.ts";
import { readReportFile } from "./read-file.ts";
import { countMessages, type Report } from "./report.ts";

/** What `postwarden inspect report` prints for one report. The field names are part of the interface. */
export interface ReportInspection {
  /** The path of the file, the same in every line of a file that holds several reports; `#2` and so on behind it for the further mails of a mailbox. */
  readonly input: string;
  readonly outcome: ReportOutcome;
  readonly reason: OutcomeReason | null;
  /** Only for XML that is `truncated`: the line, from 1, at which a part is missing. */
  readonly line?: number;
  readonly report: InspectedReport | null;
}

export interface InspectedReport {
  readonly org_name: string | null;
  readonly report_id: string | null;
  /** ISO 8601 in UTC with milliseconds. */
  readonly begin: string;
  readonly end: string;
  readonly domain: string;
  /** Rows that can be counted, and their messages. */
  readonly rows: number;
  readonly messages: number;
}

/** Shows what would become of a file or mail; null stands for one that is too large. */
export const inspectBytes = async (input: string, bytes: Uint8Array | null): Promise<ReportInspection[]> => {
  const readings = bytes === null ? [rejected("entry_too_large")] : await readReportFile(bytes, input);
  return readings.map((reading) => inspectionOf(input, reading));
};

const inspectionOf = (input: string, { outcome, reason, line, report }: ReportReading): ReportInspection => ({
  input,
  outcome,
  reason,
  ...(line === null ? {} : { line }),
  report: report === null ? null : inspectedReport(report),
});

const inspectedReport = (report: Report): InspectedReport => ({
  org_name: report.orgName,
  report_id: report.reportId,
  begin: new Date(report.beginMs).toISOString(),
  end: new Date(report.endMs).toISOString(),
  domain: report.policy.domain,
  rows: report.rows.length,
  messages: countMessages(report),
});
