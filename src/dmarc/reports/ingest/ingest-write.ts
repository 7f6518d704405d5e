import { type Report, type ReportReading, dayOf } from "../report/report.ts";
import type { IngestStores } from "./ingest-stores.ts";
import { failureFinding, ingestionConclusion, type IngestionFinding, ingestionFinding } from "./ingestion-finding.ts";
import type { IngestionResult, NewIngestion } from "./ingestion-store.ts";
import {
  createEnrolledDomainFinder,
  refusedFinding,
  reportRefusal,
  authoredFingerprint,
  type ReportTrust,
  reportTrust,
  voucherFor,
} from "./report-trust.ts";
import {
  RowCounter,
  type WriteContext,
  heaviestFirst,
  type PlacedRow,
  type SourceAllowance,
  sourceAllowance,
} from "./row-counter.ts";
import {
  type ReadIngestion,
  type ReportAhead,
  storeReport,
  type WriteBatch,
  type ParsedPart,
  alignedIn,
  countReport,
  decideReport,
  insertRecords,
  insertReport,
  placeRows,
  type ReportToStore,
  RowsAheadGone,
} from "./store-report.ts";
import { DAY_MS, dayOfTime } from "../../../foundation/base/days.ts";
import { newId, sha256 } from "../../../foundation/base/secrets.ts";
import { redactFailureReport, type FailureReport } from "../report/failure-report.ts";
import type { DomainRow } from "../../records/domains/domain-store.ts";
import { VOUCHED_AS_KNOWN } from "../../records/domains/reporter-store.ts";
import type { TlsReport } from "../report/tls-report.ts";
import { fingerprintTlsReport } from "./report-twins.ts";
import { inSteps } from "../../../foundation/base/in-steps.ts";
import type { Tx } from "../../../foundation/db/open.ts";
import type { DbClockLog } from "../../../foundation/db/runtime.ts";
import { weightOf } from "../report/report-row.ts";
import type { StagedReport } from "./report-store.ts";

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
  const batch: WriteBatch = {
    stores,
    tx,
    nowMs,
    ahead,
    rollup: new Map(),
    withdrawn: [],
    arrivals: new Map(),
    counter: new RowCounter(stores.sources, { tx, nowMs }),
    findDomain: createEnrolledDomainFinder(stores.domains),
  };
  const ingested = items.map((item) => writeIngestion(batch, item));
  batch.counter.flush();
  stores.counts.add(tx, batch.rollup);
  for (const [domain, { receivedAtMs, isNews }] of batch.arrivals)
    stores.counts.noteReport(tx, domain, receivedAtMs, isNews);
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

/** Failure reports that are stored for a domain in a day: a spoofed domain may get one for every message. */
export const FAILURE_REPORTS_PER_DAY_MAX = 1_000;

/**
 * Stores a failure report once, if the domain that it is about stores them; redacted unless the domain wants it complete.
 * Otherwise it is quarantined.
 */
const storeFailureReport = (batch: WriteBatch, part: ParsedPart, report: FailureReport): IngestionFinding => {
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

interface DomainPart {
  readonly domain: DomainRow;
  readonly policies: TlsReport["policies"];
}

/**
 * Stores a TLS report once for each enrolled domain in it, with the policies of that domain. The finding names the first
 * one stored; it is a duplicate when none was.
 */
const storeTlsReport = (batch: WriteBatch, part: ParsedPart, report: TlsReport): IngestionFinding => {
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
  { report, policies, domain, trust }: DomainPart & { report: TlsReport; trust: ReportTrust },
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

/** Plain rows written in one transaction, or fewer longer ones: it holds the event loop for some 20 ms. */
export const ROWS_PER_COMMIT = 1_000;
/** The rows of reports with more are written ahead. */
export const LARGE_ROWS_MIN = 2_000;

const weightOfReport = ({ rows }: Report) => rows.reduce((sum, row) => sum + weightOf(row), 0);

/** What the rows of reports weigh: one each, and more when they are long. */
export const weightOfRows = (readings: readonly ReportReading[]): number =>
  readings.reduce((sum, { report }) => sum + (report === null ? 0 : weightOfReport(report)), 0);

/** The rows from `from` on that are written in one transaction: one at least. */
const nextRows = (rows: readonly PlacedRow[], from: number): readonly PlacedRow[] => {
  const some = rows.slice(from, from + ROWS_PER_COMMIT);
  let sum = 0;
  const end = some.findIndex(({ row }, at) => {
    sum += weightOf(row);
    return at > 0 && sum > ROWS_PER_COMMIT;
  });
  return end === -1 ? some : some.slice(0, end);
};

/**
 * Writes the rows of large reports in several short transactions, before the one that completes the report and counts it.
 * Until then the report has a unique fingerprint, so that the same report from elsewhere is not a duplicate of it.
 */
export class RowsAhead {
  constructor(
    private readonly runtime: DbClockLog,
    private readonly stores: IngestStores,
  ) {}

  /** Writes the rows of the large reports in a batch that are to be stored. Adds each to `ahead` as it begins. */
  async write(batch: readonly ReadIngestion[], ahead: Map<Report, ReportAhead>): Promise<void> {
    const findDomain = createEnrolledDomainFinder(this.stores.domains);
    for (const from of batch) {
      for (const { report } of from.readings) {
        if (report === null || weightOfReport(report) <= LARGE_ROWS_MIN) continue;
        const domain = findDomain(from.ingestion, report.policy.domain);
        if (domain === undefined) continue;
        const decision = decideReport(this.stores, from, { report, domain, nowMs: this.runtime.clock.nowMs() });
        if (decision.kind === "store") await this.#writeReport(from, decision, ahead);
      }
    }
  }

  async #writeReport(from: ReadIngestion, toStore: ReportToStore, ahead: Map<Report, ReportAhead>) {
    const { db } = this.runtime;
    const { report, domain, trust } = toStore;
    const stagedAs = `staged ${newId()}`;
    const { voucher, ...inserted } = await db.commit((tx) => {
      const context = { stores: this.stores, tx };
      const voucher = voucherFor(context, domain, { claimed: report, trust, day: dayOf(report) });
      return { ...insertReport(context, from, { ...toStore, fingerprint: stagedAs, voucher, aligned: null }), voucher };
    });
    const written: ReportAhead = { ...inserted, stagedAs, domain: domain.number, rollup: new Map(), aligned: 0 };
    ahead.set(report, written);
    const addCounted = countReport(written.rollup, toStore, voucher);
    const ordered = heaviestFirst(report.rows);
    let allowance = sourceAllowance(voucher);
    for (let from = 0; from < ordered.length;) {
      const next = { number: inserted.number, stagedAs, report, domain, rows: nextRows(ordered, from), allowance };
      const step = await db.commit((tx) => this.#writeNext(tx, next));
      for (const { counted } of step.records) addCounted(counted);
      written.aligned += alignedIn(step.records);
      allowance = step.allowance;
      from += next.rows.length;
    }
  }

  #writeNext(tx: Tx, { number, stagedAs, report, domain, rows, allowance }: NextRows) {
    if (!this.stores.reports.isStaged({ number, stagedAs }))
      throw new RowsAheadGone("a report vanished while it was written");
    const counter = new RowCounter(this.stores.sources, { tx, nowMs: this.runtime.clock.nowMs() });
    counter.beginReport(allowance);
    const records = placeRows(counter, { report, domain }, rows);
    insertRecords({ stores: this.stores, tx }, { number, report, domain }, records);
    counter.flush();
    return { records, allowance: counter.allowance() };
  }

  /** Removes incomplete reports with their rows. The rest is removed at the next start. */
  async remove(numbers: Iterable<number>): Promise<void> {
    try {
      for (const number of numbers) await this.#remove(number);
    } catch (error) {
      this.runtime.log.warn("an incomplete report could not be removed; it will be removed at the next start", {
        error,
      });
    }
  }

  /** Removes every incomplete report: at the start, what the end of the service left behind. Returns how many. */
  async removeAll(): Promise<number> {
    const numbers = this.stores.reports.incomplete();
    for (const number of numbers) await this.#remove(number);
    return numbers.length;
  }

  async #remove(number: number) {
    const { reports } = this.stores;
    if (!reports.isIncomplete(number)) return;
    const removeSome = (tx: Tx) => (reports.removeIncomplete(tx, number, ROWS_PER_COMMIT) ? 0 : 1);
    await inSteps(() => this.runtime.db.commit(removeSome));
  }
}

interface NextRows extends StagedReport {
  readonly report: Report;
  readonly domain: DomainRow;
  readonly rows: readonly PlacedRow[];
  readonly allowance: SourceAllowance;
}
