import { z } from "zod";
import { declareRoute, handle } from "../../../foundation/http/route.ts";
import { rangeFields } from "../../../foundation/http/day-range.ts";
import { RANGE_DAYS_MAX, rangeOf } from "../sources/day-range.ts";
import { DOMAIN_PATH, domainParams, type QueryContext, REPORTS_TAG } from "./domain-query.ts";
import { SUMMARY_EXAMPLE, TIMESERIES_EXAMPLE } from "./query-examples.ts";
import { summarizeDomain, summarySchema } from "./summary.ts";
import { timeseriesOf, timeseriesSchema } from "./timeseries.ts";

const query = z.strictObject(rangeFields);

const GET_SUMMARY = declareRoute({
  ...{ method: "GET", path: `${DOMAIN_PATH}/summary`, operationId: "getDmarcSummary", tag: REPORTS_TAG },
  summary: "Get the summary of a domain",
  description: `Message counts, classes of sources, top sources, reporters and header_from domains of a range of at most ${RANGE_DAYS_MAX} days. A report counts for the UTC day of the middle of its period.`,
  ...{ scope: "dmarc:read", params: domainParams, query },
  responses: { 200: { description: "The summary.", schema: summarySchema, example: SUMMARY_EXAMPLE } },
});

const GET_TIMESERIES = declareRoute({
  ...{ method: "GET", path: `${DOMAIN_PATH}/timeseries`, operationId: "getDmarcTimeseries", tag: REPORTS_TAG },
  summary: "Get the daily message counts of a domain",
  description:
    "Returns a point for every day of the range, also for days that no report covers. A report counts for the UTC day of the middle of its period.",
  ...{ scope: "dmarc:read", params: domainParams, query },
  responses: {
    200: { description: "The daily message counts.", schema: timeseriesSchema, example: TIMESERIES_EXAMPLE },
  },
});

export const SUMMARY_ROUTES = [GET_SUMMARY, GET_TIMESERIES] as const;

export const createSummaryRoutes = ({ db, clock, rollups, findDomain }: QueryContext) => [
  handle(GET_SUMMARY, ({ caller, params, query }) =>
    db.snapshot(() => summarizeDomain(rollups, findDomain(caller, params.id), rangeOf(query, clock.nowMs()))),
  ),
  handle(GET_TIMESERIES, ({ caller, params, query }) =>
    db.snapshot(() => timeseriesOf(rollups, findDomain(caller, params.id), rangeOf(query, clock.nowMs()))),
  ),
];
