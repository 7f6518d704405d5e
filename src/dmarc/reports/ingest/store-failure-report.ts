import { DAY_MS, dayOfTime } from "../../../foundation/base/days.ts";
import { newId, sha256 } from "../../../foundation/base/secrets.ts";
import { redactFailureReport } from "../report/failure-redaction.ts";
import type { FailureReport } from "../report/failure-report.ts";
import { type IngestionFinding, ingestionFinding } from "./ingestion-finding.ts";
import { refusedFinding, reportRefusal } from "./report-trust.ts";
import type { ParsedPart, WriteBatch } from "./store-report.ts";

/** Failure reports that are stored for a domain in a day: a spoofed domain may get one for every message. */
export const FAILURE_REPORTS_PER_DAY_MAX = 1_000;

/**
 * Stores a failure report once, if the domain that it is about stores them; redacted unless the domain wants it complete.
 * Otherwise it is quarantined.
 */
export const storeFailureReport = (batch: WriteBatch, part: ParsedPart, report: FailureReport): IngestionFinding => {
  const { from, reading, named } = part;
  const finding = ingestionFinding(reading);
  const { ingestion, authentication } = from;
  const domain = report.reportedDomain === null ? undefined : batch.findDomain(ingestion, report.reportedDomain);
  if (domain === undefined || !domain.storeFailureReports) return finding;
  const placed = { ...finding, domain_id: domain.id };
  // The sender is the reporter: a failure report names no other one.
  const sender = authentication?.from ?? null;
  const claimed = { orgName: null, email: sender === null ? null : `reports@${sender}` };
  const refusal = reportRefusal(from, domain, { claimed, nowMs: batch.nowMs });
  if (refusal !== null) return { ...placed, ...refusedFinding(from, refusal, batch.nowMs) };
  const { failures, domains } = batch.stores;
  const fingerprint = sha256(JSON.stringify(report));
  const same = failures.findSameFailure(domain.number, fingerprint);
  if (same !== null) {
    const isOwn = same.ingestion === ingestion.id && !named.has(same.id);
    named.add(same.id);
    return { ...placed, outcome: isOwn ? "stored" : "duplicate", report_id: same.id };
  }
  const dayMs = dayOfTime(ingestion.receivedAtMs) * DAY_MS;
  if (failures.countBetween(domain.number, dayMs, dayMs + DAY_MS) >= FAILURE_REPORTS_PER_DAY_MAX) {
    return { ...placed, reason: "failure_reports_limit" };
  }
  const id = newId();
  const isRedacted = domain.failureReportsRedact;
  const body = JSON.stringify(isRedacted ? redactFailureReport(report) : report);
  const { receivedAtMs } = ingestion;
  const row = { id, domain: domain.number, ingestion: ingestion.id, receivedAtMs, isRedacted, body, fingerprint };
  failures.insert(batch.tx, row);
  named.add(id);
  if (ingestion.domain !== null) {
    domains.addUsage(batch.tx, ingestion.domain, { day: dayOfTime(batch.nowMs), bytes: Buffer.byteLength(body) });
  }
  return { ...placed, outcome: "stored", report_id: id };
};
