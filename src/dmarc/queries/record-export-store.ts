import type { DayRange } from "../../base/days.ts";
import type { Db } from "../../db/open.ts";
import type { DomainOwner } from "../domains/domain-store.ts";

/** A complete report whose records are exported. */
export interface ExportedReport {
  readonly number: number;
  readonly domainNumber: number;
  readonly domainId: string;
  /** JSON. */
  readonly sourceRules: string;
  readonly domain: string;
}

/** Finds the reports of all domains of an owner in the order in which they were stored. */
export const createRecordExportStore = ({ sqlite }: Pick<Db, "sqlite">) => {
  const reports = sqlite.prepare<ExportedReport, [string, string, number, number, number, number]>(
    `SELECT r.number, d.number domainNumber, d.id domainId, d.domain, d.source_rules sourceRules FROM dmarc_reports r
      CROSS JOIN dmarc_domains d ON d.number = r.domain AND d.account_id = ? AND d.mode = ? AND d.deleted_at_ms IS NULL
      WHERE r.number >= ? AND r.number <= ? AND r.day BETWEEN ? AND ? AND r.is_complete = 1 ORDER BY r.number`,
  );
  const end = sqlite.prepare<{ end: number }, [number]>(
    `SELECT min(coalesce((SELECT max(number) FROM dmarc_reports), 0),
      coalesce((SELECT min(number) - 1 FROM dmarc_reports WHERE is_complete = 0 AND number > ?), ${Number.MAX_SAFE_INTEGER})) end`,
  );
  return {
    /** The complete reports of an owner between two numbers, both inclusive. */
    reportsBetween: (
      { accountId, mode }: DomainOwner,
      numbers: { readonly from: number; readonly to: number },
      { fromDay, toDay }: DayRange,
    ): ExportedReport[] => reports.all(accountId, mode, numbers.from, numbers.to, fromDay, toDay),
    /**
     * The last number that can be exported now: that of the last report, or the one before the first report behind `after` that is
     * still being written, so that a cursor never passes a report that is not there yet.
     */
    lastNumber: (after: number): number => end.get(after)?.end ?? 0,
  };
};

export type RecordExportStore = ReturnType<typeof createRecordExportStore>;
