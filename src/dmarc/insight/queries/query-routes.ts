import type { FailureReportStore } from "../../reports/ingest/failure-report-store.ts";
import type { QueryContext } from "./domain-query.ts";
import { createFailureReportRoutes, FAILURE_REPORT_ROUTES } from "./failure-report-routes.ts";
import { FailureReports } from "./failure-reports.ts";
import { createRecordRoutes, RECORD_ROUTES } from "./record-routes.ts";
import { ReportReader } from "./report-reader.ts";
import { createReportRoutes, REPORT_ROUTES } from "./report-routes.ts";
import { createSourceRoutes, SOURCE_ROUTES } from "./source-routes.ts";
import { createSummaryRoutes, SUMMARY_ROUTES } from "./summary-routes.ts";

/** The routes that read reports, as they are declared. */
export const QUERY_ROUTES = [
  ...SUMMARY_ROUTES,
  ...SOURCE_ROUTES,
  ...RECORD_ROUTES,
  ...REPORT_ROUTES,
  ...FAILURE_REPORT_ROUTES,
] as const;

/** The same routes with their handlers. */
export const createQueryRoutes = (
  context: QueryContext,
  failures: Pick<FailureReportStore, "listFailures" | "findFailure">,
) => [
  ...createSummaryRoutes(context),
  ...createSourceRoutes(context),
  ...createRecordRoutes(context),
  ...createReportRoutes(new ReportReader(context)),
  ...createFailureReportRoutes(new FailureReports(context, failures)),
];
