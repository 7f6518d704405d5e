import { newId } from "../../base/secrets.ts";
import type { DomainRow } from "../domains/domain-store.ts";
import { type IngestionFinding, ingestionFinding } from "./ingestion-finding.ts";
import { type Batch, type ReadingInWork, refusalOf, refusedAs, sameAs, reportTrust } from "./ingest-work.ts";
import { tlsReportFingerprint } from "./report-fingerprint.ts";
import type { TlsReport } from "../report/tls-report.ts";

/**
 * Stores a TLS report, once for each enrolled domain that it tells of, with the policies of that domain alone. The
 * finding names the first of them; it is a duplicate when nothing in it was new.
 */
export const storeTlsReport = (
  batch: Batch,
  { work, reading, named }: ReadingInWork,
  report: TlsReport,
): IngestionFinding => {
  const finding = ingestionFinding(reading);
  const { ingestion } = work;
  const covered = byDomain(report, (policyDomain) => batch.cover(ingestion, policyDomain));
  const [first] = covered;
  if (first === undefined) return { ...finding, outcome: "quarantined", reason: "foreign_domain" };
  const about = { of: { orgName: report.orgName, email: report.contact }, nowMs: batch.nowMs };
  const wanted = covered.filter(({ domain }) => refusalOf(work, domain, about) === null);
  const refusal = wanted.length === 0 ? refusalOf(work, first.domain, about) : null;
  if (refusal !== null) return { ...finding, domain_id: first.domain.id, ...refusedAs(work, refusal, batch.nowMs) };
  const standing = reportTrust(work, about.of);
  const name = tlsReportFingerprint(report);
  const sameness = sameAs(name, standing);
  const stored = wanted.map(({ domain, policies }) => {
    const { reports } = batch.stores;
    const own = reports.findSameTls(domain.number, sameness);
    const same = own ?? (standing.isTrusted ? null : reports.findSameTls(domain.number, name));
    const isOwn = same?.ingestion === ingestion.id && !named.has(same.id);
    const id = same?.id ?? newId();
    named.add(id);
    if (same === null) {
      const row = { id, domain: domain.number, ingestion: ingestion.id, report: { ...report, policies }, sameness };
      batch.stores.reports.insertTls(batch.tx, { ...row, receivedAtMs: ingestion.receivedAtMs });
      batch.stores.domains.update(batch.tx, domain.number, { isUnreviewed: true });
    }
    return { domain, policies, id, isNew: same === null || isOwn };
  });
  const told = stored.find(({ isNew }) => isNew) ?? stored[0];
  return {
    ...finding,
    outcome: told?.isNew ? "stored" : "duplicate",
    reason: "tls_report",
    report_id: told?.id ?? null,
    domain_id: told?.domain.id ?? null,
    domain: told?.policies[0]?.domain ?? finding.domain,
  };
};

interface Covered {
  readonly domain: DomainRow;
  readonly policies: TlsReport["policies"][number][];
}

const byDomain = ({ policies }: TlsReport, cover: (policyDomain: string) => DomainRow | undefined): Covered[] => {
  const found = new Map<number, Covered>();
  for (const policy of policies) {
    const domain = policy.domain === null ? undefined : cover(policy.domain);
    if (domain === undefined) continue;
    const known = found.get(domain.number);
    if (known === undefined) found.set(domain.number, { domain, policies: [policy] });
    else known.policies.push(policy);
  }
  return [...found.values()];
};
