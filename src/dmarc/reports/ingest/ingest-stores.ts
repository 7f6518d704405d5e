import type { Db } from "../../../foundation/db/open.ts";
import { DomainStore } from "../../records/domains/domain-store.ts";
import { ReportAuthorStore, ReporterStore } from "../../records/domains/reporter-store.ts";
import { FailureReportStore, ReportStore } from "./report-store.ts";
import { IngestionStore } from "./ingestion-store.ts";
import { DailyCountStore, SeenSourceStore } from "./seen-source-store.ts";

/** The stores that ingesting writes to. */
export const openIngestStores = (db: Db) => ({
  ingestions: new IngestionStore(db),
  reports: new ReportStore(db),
  failures: new FailureReportStore(db),
  sources: new SeenSourceStore(db),
  counts: new DailyCountStore(db),
  domains: new DomainStore(db),
  authors: new ReportAuthorStore(db),
  reporters: new ReporterStore(db),
});

export type IngestStores = ReturnType<typeof openIngestStores>;
