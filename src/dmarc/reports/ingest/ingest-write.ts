import type { Report } from "../report/report.ts";
import type { IngestStores } from "./ingest-stores.ts";
import { failureFinding, ingestionConclusion, type IngestionFinding, ingestionFinding } from "./ingestion-finding.ts";
import type { IngestionResult, NewIngestion } from "./ingestion-store.ts";
import { createEnrolledDomainFinder } from "./report-trust.ts";
import { RowCounter, type WriteContext } from "./row-counter.ts";
import { storeFailureReport } from "./store-failure-report.ts";
import { type ReadIngestion, type ReportAhead, storeReport, type WriteBatch } from "./store-report.ts";
import { storeTlsReport } from "./store-tls-report.ts";

/** An ingestion that was written. */
export interface IngestedItem {
  readonly ingestion: NewIngestion;
  readonly result: IngestionResult;
}

/** What is written in one transaction. */
export interface WriteOrder extends WriteContext {
  readonly batch: readonly ReadIngestion[];
  /** Large reports whose rows are written already. */
  readonly ahead: ReadonlyMap<Report, ReportAhead>;
}

/**
 * Writes ingestions with their findings, reports, records and daily counts in the transaction given. Returns null for each
 * that is no longer pending because another process was faster, and the numbers of reports that have to be removed.
 */
export const writeIngestions = (stores: IngestStores, { tx, nowMs, batch: items, ahead }: WriteOrder) => {
  const touched = new Map<number, { receivedAtMs: number; isNews: boolean }>();
  const batch: WriteBatch = {
    ...{ stores, tx, nowMs, ahead, rollup: new Map(), withdrawn: [] },
    counter: new RowCounter(stores.sources, { tx, nowMs }),
    findDomain: createEnrolledDomainFinder(stores.domains),
    touch({ number }, receivedAtMs, isNews) {
      const before = touched.get(number) ?? { receivedAtMs: 0, isNews: false };
      const latestMs = Math.max(before.receivedAtMs, receivedAtMs);
      touched.set(number, { receivedAtMs: latestMs, isNews: before.isNews || isNews });
    },
  };
  const ingested = items.map((item) => writeIngestion(batch, item));
  batch.counter.flush();
  stores.counts.add(tx, batch.rollup);
  for (const [domain, { receivedAtMs, isNews }] of touched) stores.counts.touchDomain(tx, domain, receivedAtMs, isNews);
  return { ingested, withdrawn: batch.withdrawn };
};

const writeIngestion = (batch: WriteBatch, item: ReadIngestion): IngestedItem | null => {
  const { ingestion, isNew } = item;
  const { ingestions } = batch.stores;
  if (!isNew && !ingestions.isPending(ingestion.id)) return null;
  const findings = findingsOf(batch, item);
  const result = { ...ingestionConclusion(findings), findings, finishedAtMs: batch.nowMs };
  if (isNew) ingestions.insertDone(batch.tx, ingestion, result);
  else ingestions.finish(batch.tx, ingestion.id, result);
  return { ingestion, result };
};

const findingsOf = (batch: WriteBatch, from: ReadIngestion): IngestionFinding[] => {
  if (from.failure !== null) return [failureFinding(from.failure)];
  const named = new Set<string>();
  return from.readings.map((reading) => {
    const part = { from, reading, named };
    if (reading.report !== null) return storeReport(batch, part, reading.report);
    if (reading.tlsReport !== null) return storeTlsReport(batch, part, reading.tlsReport);
    if (reading.failureReport !== null) return storeFailureReport(batch, part, reading.failureReport);
    return ingestionFinding(reading);
  });
};
