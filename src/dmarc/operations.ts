import type { Operation } from "../http/openapi.ts";
import { ADVICE_OPERATION } from "./advice/advice-schemas.ts";
import { ALERT_OPERATIONS } from "./alerts/alert-routes.ts";
import { DOMAIN_OPERATIONS } from "./domains/domain-operations.ts";
import { HEALTH_OPERATION } from "./health/health-operations.ts";
import { INGESTION_OPERATIONS } from "./ingest/ingestion-operations.ts";
import { FAILURE_REPORT_OPERATIONS } from "./queries/failure-report-routes.ts";
import { EXPORT_OPERATIONS } from "./queries/record-export-routes.ts";
import { QUERY_OPERATIONS } from "./queries/query-operations.ts";

/** What the OpenAPI document says about DMARC monitoring. */
export const DMARC_OPERATIONS: readonly Operation[] = [
  ...DOMAIN_OPERATIONS,
  ...INGESTION_OPERATIONS,
  ...QUERY_OPERATIONS,
  ...EXPORT_OPERATIONS,
  ...FAILURE_REPORT_OPERATIONS,
  ADVICE_OPERATION,
  HEALTH_OPERATION,
  ...ALERT_OPERATIONS,
];
