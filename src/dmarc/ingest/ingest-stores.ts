import type { Db } from "../../db/open.ts";
import { DomainStore } from "../domains/domain-store.ts";
import { ReportAuthorStore } from "../domains/report-author-store.ts";
import { ReporterStore } from "../domains/reporter-store.ts";
import { DailyCountStore } from "./daily-count-store.ts";
import { FailureReportStore } from "./failure-report-store.ts";
import { IngestionStore } from "./ingestion-store.ts";
import { ReportStore } from "./report-store.ts";
import { SeenSourceStore } from "./seen-source-store.ts";

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
