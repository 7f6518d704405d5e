import { DAY_MS, dayOfTime } from "../../base/days.ts";
import { newId, sha256 } from "../../base/secrets.ts";
import { redactFailureReport } from "../report/failure-redaction.ts";
import type { FailureReport } from "../report/failure-report.ts";
import { type IngestionFinding, ingestionFinding } from "./ingestion-finding.ts";
import { type Batch, type ReadingInWork, refusalOf, refusedAs } from "./ingest-work.ts";

/** Failure reports that are stored for a domain in a day: who is spoofed may be sent one for every message. */
export const FAILURE_REPORTS_PER_DAY_MAX = 1_000;

/**
 * Stores what a failure report says, once, where the domain that it is about wants that; redacted before it is written unless the
 * domain wants it whole. Else it is quarantined as it was read.
 */
export const storeFailureReport = (
  batch: Batch,
  { work, reading, named }: ReadingInWork,
  report: FailureReport,
): IngestionFinding => {
  const finding = ingestionFinding(reading);
  const { ingestion } = work;
  const domain = report.reportedDomain === null ? undefined : batch.cover(ingestion, report.reportedDomain);
  if (domain === undefined || !domain.storeFailureReports) return finding;
  const placed = { ...finding, domain_id: domain.id };
  // It is the word of whoever sends it: there is no other reporter whose name it could bear.
  const sender = work.proof?.from ?? null;
  const of = { orgName: null, email: sender === null ? null : `reports@${sender}` };
  const refusal = refusalOf(work, domain, { of, nowMs: batch.nowMs });
  if (refusal !== null) return { ...placed, ...refusedAs(work, refusal, batch.nowMs) };
  const { failures } = batch.stores.reports;
  const sameness = sha256(JSON.stringify(report));
  const same = failures.findSameFailure(domain.number, sameness);
  if (same !== null) {
    const isOwn = same.ingestion === ingestion.id && !named.has(same.id);
    named.add(same.id);
    return { ...placed, outcome: isOwn ? "stored" : "duplicate", report_id: same.id };
  }
  const dayMs = dayOfTime(ingestion.receivedAtMs) * DAY_MS;
  if (failures.countBetween(domain.number, dayMs, dayMs + DAY_MS) >= FAILURE_REPORTS_PER_DAY_MAX) {
    return { ...placed, reason: "failure_reports_limit" };
  }
  const isRedacted = domain.failureReportsRedact;
  const body = JSON.stringify(isRedacted ? redactFailureReport(report) : report);
  const { id: ingestionId, receivedAtMs } = ingestion;
  const row = { id: newId(), domain: domain.number, ingestion: ingestionId, receivedAtMs, isRedacted, body, sameness };
  failures.insert(batch.tx, row);
  named.add(row.id);
  if (ingestion.domain !== null) {
    const usage = { day: dayOfTime(batch.nowMs), bytes: Buffer.byteLength(body) };
    batch.stores.domains.addUsage(batch.tx, ingestion.domain, usage);
  }
  return { ...placed, outcome: "stored", report_id: row.id };
};
