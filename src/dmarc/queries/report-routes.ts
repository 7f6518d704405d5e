import { Elysia } from "elysia";
import type { z } from "zod";
import type { Clock } from "../../base/clock.ts";
import { AppError } from "../../base/errors.ts";
import { isId } from "../../base/secrets.ts";
import type { Guard } from "../../http/guard.ts";
import { sendBytes, sendJson } from "../../http/response.ts";
import { readPlainly, rowsById, sendPage } from "../../http/list-page.ts";
import { pageParameters, readPage, writeCursor } from "../../http/query.ts";
import type { RollupStore } from "../sources/rollup-store.ts";
import { rangeOf } from "../sources/day-range.ts";
import type { RecordStore } from "./record-store.ts";
import { reportFiltersSchema } from "./report-schemas.ts";
import type { ReportQueryStore, ReportRowStored } from "./report-query-store.ts";
import { createDomainFinder, type SourceRouteDeps } from "./source-routes.ts";
import { noReportFiltersSchema } from "./source-schemas.ts";
import { readRecords } from "./records.ts";
import { DomainSources } from "../sources/domain-sources.ts";
import { isReportCursor, rawFileName, readReports, reportDetailView, tlsReportView } from "./reports.ts";

export interface ReportRouteDeps {
  readonly guard: Guard;
  readonly clock: Clock;
  readonly records: RecordStore;
  readonly reports: ReportQueryStore;
  readonly store: RollupStore;
  /** As for the other routes that read. */
  readonly findDomain: SourceRouteDeps["findDomain"];
}

const PATH = "/v1/dmarc/domains/:id";
/** Records that stand with a report. */
const RECORDS_MAX = 1_000;

/** The endpoints that show reports as they came. */
export const createReportRoutes = ({ guard, clock, records, reports, store, findDomain }: ReportRouteDeps) => {
  const find = createDomainFinder(findDomain);
  const read = { demand: { scope: "dmarc:read" } } as const;

  const listing = (filters: z.ZodObject) =>
    ({ demand: { scope: "dmarc:read", query: pageParameters(filters) } }) as const;

  const reportOf = (domain: number, id: string): ReportRowStored => {
    const report = isId(id) ? reports.find(domain, id) : undefined;
    if (report !== undefined) return report;
    throw new AppError("not_found", { message: "There is no such report of this domain." });
  };

  return new Elysia({ name: "dmarc-reports" })
    .use(guard)
    .get(
      `${PATH}/reports`,
      async ({ request, params, caller }) => {
        const domain = find(caller, params.id).number;
        const { limit, after, filters } = readPage(request, reportFiltersSchema, isReportCursor);
        const range = rangeOf(filters, clock.nowMs());
        const page = await readReports(reports, { domain, range, filters }, { after, limit });
        const next_cursor = page.next === null ? null : writeCursor(page.next);
        return sendJson(request, { reports: page.reports, next_cursor });
      },
      listing(reportFiltersSchema),
    )
    .get(
      `${PATH}/reports/:reportId`,
      async ({ request, params, caller }) => {
        const domain = find(caller, params.id);
        const report = reportOf(domain.number, params.reportId);
        const place = { report: report.number };
        const range = { fromDay: report.day, toDay: report.day };
        const question = { place, range, filters: {}, names: new DomainSources(store, domain).names(range) };
        const page = await readRecords(records, question, { after: null, limit: RECORDS_MAX });
        const { next, ...view } = reportDetailView(report, page);
        return sendJson(request, { ...view, records_next_cursor: next === null ? null : writeCursor(next) });
      },
      read,
    )
    .get(
      `${PATH}/reports/:reportId/raw`,
      async ({ request, params, caller }) => {
        const report = reportOf(find(caller, params.id).number, params.reportId);
        const raw = reports.findRaw(report.ingestion);
        if (raw === undefined)
          throw new AppError("not_found", {
            message: "What brought the report is no longer kept (raw_retention_days).",
          });
        return sendBytes(request, raw.bytes, {
          "content-type": "application/octet-stream",
          "content-disposition": `attachment; filename="${rawFileName(raw, report.ingestion)}"`,
          "x-content-type-options": "nosniff",
        });
      },
      read,
    )
    .get(
      `${PATH}/tls-reports`,
      async ({ request, params, caller }) => {
        const domain = find(caller, params.id).number;
        const page = readPage(request, noReportFiltersSchema, isId);
        const read = readPlainly(({ before, limit }) => reports.tlsReports(domain, before, limit));
        return sendPage(request, { name: "tls_reports", page }, rowsById(read, tlsReportView));
      },
      listing(noReportFiltersSchema),
    );
};
