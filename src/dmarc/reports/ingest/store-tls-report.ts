import { dayOfTime } from "../../../foundation/base/days.ts";
import { newId } from "../../../foundation/base/secrets.ts";
import type { DomainRow } from "../../records/domains/domain-store.ts";
import { VOUCHED_AS_KNOWN } from "../../records/domains/reporter-store.ts";
import type { TlsReport } from "../report/tls-report.ts";
import { type IngestionFinding, ingestionFinding } from "./ingestion-finding.ts";
import { fingerprintTlsReport } from "./report-fingerprint.ts";
import {
  authoredFingerprint,
  refusedFinding,
  reportRefusal,
  type ReportTrust,
  reportTrust,
  voucherFor,
} from "./report-trust.ts";
import type { ParsedPart, WriteBatch } from "./store-report.ts";

interface DomainPart {
  readonly domain: DomainRow;
  readonly policies: TlsReport["policies"];
}

/**
 * Stores a TLS report once for each enrolled domain in it, with the policies of that domain. The finding names the first
 * one stored; it is a duplicate when none was.
 */
export const storeTlsReport = (batch: WriteBatch, part: ParsedPart, report: TlsReport): IngestionFinding => {
  const { from, reading } = part;
  const finding = ingestionFinding(reading);
  const covered = byDomain(report, (policyDomain) => batch.findDomain(from.ingestion, policyDomain));
  const [first] = covered;
  if (first === undefined) return { ...finding, outcome: "quarantined", reason: "foreign_domain" };
  const about = { claimed: { orgName: report.orgName, email: report.contact }, nowMs: batch.nowMs };
  const accepted = covered.filter(({ domain }) => reportRefusal(from, domain, about) === null);
  const refusal = accepted.length === 0 ? reportRefusal(from, first.domain, about) : null;
  if (refusal !== null)
    return { ...finding, domain_id: first.domain.id, ...refusedFinding(from, refusal, batch.nowMs) };
  const trust = reportTrust(from, about.claimed);
  const stored = accepted.map((one) => ({ ...one, ...storeForDomain(batch, part, { ...one, report, trust }) }));
  const named = stored.find(({ isNew }) => isNew) ?? stored[0];
  return {
    ...finding,
    outcome: named?.isNew ? "stored" : "duplicate",
    reason: "tls_report",
    report_id: named?.id ?? null,
    domain_id: named?.domain.id ?? null,
    domain: named?.policies[0]?.domain ?? finding.domain,
  };
};

const byDomain = (
  { policies }: TlsReport,
  findDomain: (policyDomain: string) => DomainRow | undefined,
): readonly DomainPart[] => {
  const covered = policies.flatMap((policy) => {
    const domain = policy.domain === null ? undefined : findDomain(policy.domain);
    return domain === undefined ? [] : [{ domain, policy }];
  });
  return [...Map.groupBy(covered, ({ domain }) => domain.number).values()].flatMap((same) => {
    const [first] = same;
    return first === undefined ? [] : [{ domain: first.domain, policies: same.map(({ policy }) => policy) }];
  });
};

/** Stores a report for one domain, unless it is there, and returns its id; `isNew` also when this very mail brought it before. */
const storeForDomain = (
  { stores, tx }: WriteBatch,
  { from: { ingestion }, named }: ParsedPart,
  { report, policies, domain, trust }: DomainPart & { readonly report: TlsReport; readonly trust: ReportTrust },
) => {
  const { reports, domains } = stores;
  const shared = fingerprintTlsReport(report);
  const fingerprint = authoredFingerprint(shared, trust);
  const own = reports.findSameTls(domain.number, fingerprint);
  const same = own ?? (trust.isTrusted ? null : reports.findSameTls(domain.number, shared));
  const isOwn = same?.ingestion === ingestion.id && !named.has(same.id);
  const id = same?.id ?? newId();
  named.add(id);
  if (same === null) {
    const row = { id, domain: domain.number, ingestion: ingestion.id, report: { ...report, policies }, fingerprint };
    const claimed = { orgName: report.orgName, email: report.contact };
    const day = dayOfTime(report.endMs ?? ingestion.receivedAtMs);
    // TLS reports say nothing about mail of the domain: a known reporter does not cover it by them.
    const voucher = trust.isKnown ? VOUCHED_AS_KNOWN : voucherFor({ stores, tx }, domain, { claimed, trust, day });
    reports.insertTls(tx, { ...row, voucher, receivedAtMs: ingestion.receivedAtMs });
    domains.update(tx, domain.number, { isUnreviewed: true });
  }
  return { id, isNew: same === null || isOwn };
};
