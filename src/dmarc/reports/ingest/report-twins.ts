import { shortHash } from "../report/file-reader.ts";
import { isPastRetention, parsePublishedPolicy, type Report } from "../report/report.ts";
import { contactOf } from "./report-trust.ts";
import type { TlsReport } from "../report/tls-report.ts";
import type { Tx } from "../../../foundation/db/open.ts";
import type { DomainRow } from "../../records/domains/domain-store.ts";
import { VOUCHED_AS_KNOWN, VOUCHED_BY_NOBODY } from "../../records/domains/reporter-store.ts";
import { ingestionConclusion } from "./ingestion-finding.ts";
import type { IngestStores } from "./ingest-stores.ts";
import type { SameReport } from "./report-store.ts";
import { addReport, addRow, dayIn, entryOf, nameOf, type Rollup, rowFacts } from "./rollup.ts";
import { otherNamesOf, type RowCounter } from "./row-counter.ts";

const hashOf = (parts: readonly unknown[]) => shortHash(new Bun.CryptoHasher("sha256").update(JSON.stringify(parts)));

/** What identifies a report: two reports of a domain with the same fingerprint are the same report. */
export interface ReportFingerprint {
  readonly current: string;
  /** As an earlier version computed it: stored reports may have it. */
  readonly former: string;
}

/**
 * The hash of policy domain, reporter (in lower case), report id, begin and end. Without a report id, the rows take its
 * place. Where the name of the reporter could be anybody's, the domain of the contact address is included.
 */
export const fingerprintReport = (report: Report, rowsHash: string): ReportFingerprint => {
  const { policy, orgName, reportId, beginMs, endMs } = report;
  const parts = [policy.domain, orgName?.toLowerCase() ?? null, reportId ?? [rowsHash], beginMs, endMs];
  const contact = contactOf(report);
  return { current: hashOf(contact === null ? parts : [...parts, contact]), former: hashOf(parts) };
};

/** The same for a TLS report, whose domains are in its policies. Hosts were not part of what earlier versions hashed. */
export const fingerprintTlsReport = ({ orgName, reportId, beginMs, endMs, policies }: TlsReport): string => {
  const withoutHosts = (policy: TlsReport["policies"][number]) => ({
    ...policy,
    failures: policy.failures.map(({ resultType, sessions }) => ({ resultType, sessions })),
  });
  return hashOf([orgName?.toLowerCase() ?? null, reportId ?? [hashOf(policies.map(withoutHosts))], beginMs, endMs]);
};

/** More than anybody has domains to sign for. The rest is withdrawn with the next report. */
const TWINS_MAX = 100;

interface Withdrawal {
  readonly stores: IngestStores;
  readonly tx: Tx;
  readonly nowMs: number;
  readonly counter: RowCounter;
  readonly rollup: Rollup;
  readonly withdrawn: number[];
}

/**
 * Withdraws the reports of other authors under the fingerprint of a trusted report that was just written: their counts are
 * subtracted, and their records are removed after the transaction. Those that retention is about to remove are left to it.
 */
export const withdrawTwins = (batch: Withdrawal, domain: DomainRow, fingerprint: string): void => {
  const twins = batch.stores.reports.findUntrustedTwins(domain.number, fingerprint, TWINS_MAX);
  for (const twin of twins) if (!isPastRetention(twin.day, domain, batch.nowMs)) withdraw(batch, domain, twin);
};

const withdraw = ({ stores, tx, counter, rollup, withdrawn }: Withdrawal, domain: DomainRow, twin: SameReport) => {
  // The twin may have been written in this very transaction.
  counter.flush();
  stores.counts.add(tx, rollup);
  rollup.clear();
  const counted = countsOf(stores, domain, twin);
  stores.counts.subtract(tx, counted);
  stores.reports.withdraw(tx, twin.number);
  withdrawn.push(twin.number);
  for (const { sources, names } of counted.get(domain.number)?.values() ?? []) {
    for (const source of sources.keys())
      stores.sources.withdrawReport(tx, source, { report: twin.number, day: twin.day });
    for (const name of names.keys()) if (name !== "") stores.sources.removeUncountedName(tx, domain.number, name);
  }
  markReplaced(stores, tx, twin);
};

/** What a stored report that is not trusted is counted as. */
const countsOf = ({ counts, reports }: IngestStores, domain: DomainRow, report: SameReport): Rollup => {
  const { day, author, messages } = report;
  const where = { domain: domain.number, day };
  const reporter = { reporter: report.org?.toLowerCase() ?? "", author };
  // Earlier versions counted all reports as trusted ones.
  const isApart = counts.isCountedApart({ ...where, key: reporter }, messages);
  const voucher = isApart ? VOUCHED_BY_NOBODY : VOUCHED_AS_KNOWN;
  const rollup: Rollup = new Map();
  const ofDay = dayIn(rollup, domain.number, { day, voucher });
  const ofReporter = addReport(ofDay, isApart ? reporter : { ...reporter, author: "" });
  const policy = parsePublishedPolicy(report.policy);
  const countedNames = new Map<string, string>();
  for (const { row, source } of reports.records(report.number)) {
    const ownName = nameOf(row.headerFrom, domain.domain);
    // The trusted report may have found room for a name for which this one had none.
    const name = entryOf(countedNames, ownName, () =>
      counts.isNameCountedOn({ ...where, voucher, key: ownName }) ? ownName : otherNamesOf(domain.domain),
    );
    addRow(ofDay, ofReporter, { row, facts: rowFacts(row, domain.domain, policy), source, name });
  }
  return rollup;
};

const markReplaced = ({ ingestions }: IngestStores, tx: Tx, { id, ingestion }: SameReport) => {
  const findings = ingestions.findingsOf(ingestion)?.map((finding) => {
    const isIt = finding.report_id === id && finding.outcome === "stored";
    return isIt ? { ...finding, outcome: "quarantined" as const, reason: "replaced", report_id: null } : finding;
  });
  if (findings !== undefined) ingestions.conclude(tx, ingestion, { ...ingestionConclusion(findings), findings });
};
