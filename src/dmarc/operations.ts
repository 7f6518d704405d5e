import type { AnyRoute } from "../foundation/http/route.ts";
import { GET_ADVICE, LIST_DMARC_ALERTS, GET_DMARC_HEALTH } from "./finding-routes.ts";
import { REPORTER_ROUTES } from "./insight/queries/accepted-reporters.ts";
import { MTA_STS_ROUTES } from "./insight/sts/hosting-routes.ts";
import { RECORD_HISTORY_ROUTES } from "./insight/queries/record-history-routes.ts";
import { SHARE_ROUTES } from "./share-routes.ts";
import { TAG_ROUTES } from "./tag-routes.ts";
import { DOMAIN_ROUTES } from "./domain-routes.ts";
import { INGESTION_ROUTES } from "./reports/ingest/ingestion-routes.ts";
import { QUERY_ROUTES } from "./insight/queries/query-routes.ts";

/** The routes of DMARC monitoring. */
export const DMARC_ROUTES: readonly AnyRoute[] = [
  ...DOMAIN_ROUTES,
  ...REPORTER_ROUTES,
  ...INGESTION_ROUTES,
  ...QUERY_ROUTES,
  GET_ADVICE,
  GET_DMARC_HEALTH,
  LIST_DMARC_ALERTS,
  ...RECORD_HISTORY_ROUTES,
  ...MTA_STS_ROUTES,
  ...SHARE_ROUTES,
  ...TAG_ROUTES,
];
