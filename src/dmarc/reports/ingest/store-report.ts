import { dayOfTime } from "../../../foundation/base/days.ts";
import { newId } from "../../../foundation/base/secrets.ts";
import type { Tx } from "../../../foundation/db/open.ts";
import type { DomainRow } from "../../records/domains/domain-store.ts";
import {
  countMessages,
  type ReportReading,
  dayOf,
  isPastRetention,
  periodProblemOf,
  type Report,
} from "../report/report.ts";
import { storedBytesOf } from "../report/report-row.ts";
import type { IngestStores } from "./ingest-stores.ts";
import { ingestionFinding, type IngestionFailure, type IngestionFinding } from "./ingestion-finding.ts";
import { fingerprintReport, withdrawTwins } from "./report-twins.ts";
import type { SameReport, StagedReport } from "./report-store.ts";
import {
  authoredFingerprint,
  countedReporter,
  isUnsolicitedMail,
  refusedFinding,
  reportRefusal,
  reportTrust,
  type FindEnrolledDomain,
  type ReportOrigin,
  type ReportTrust,
  voucherFor,
} from "./report-trust.ts";
import { addReport, addRow, dayIn, entryOf, type CountedRow, type Rollup, rowFacts } from "./rollup.ts";
import { heaviestFirst, sourceAllowance, type PlacedRow, type RowCounter, type WriteContext } from "./row-counter.ts";

/** A mail or file that was unpacked and parsed, and whose mail was authenticated. */
export interface ReadIngestion extends ReportOrigin {
  /** See `IngestItem`. */
  readonly isNew: boolean;
  readonly readings: readonly ReportReading[];
  /** The hash of the rows of each report among the readings. */
  readonly rowsHashes: ReadonlyMap<Report, string>;
  /** Why it could not be read: there are no readings then. */
  readonly failure: IngestionFailure | null;
  readonly isMail: boolean;
}

/** An incomplete report whose rows are being written, or are written already. */
export interface ReportAhead extends StagedReport {
  readonly id: string;
  /** `number` of the domain for which it was written. */
  readonly domain: number;
  /** What it is counted as once it is complete. */
  readonly rollup: Rollup;
  /** The messages of the report that passed DMARC. */
  aligned: number;
}

/** Another process removed the rows of a report as the remains of a crash. They have to be written again. */
export class RowsAheadGone extends Error {}

/** What everything that is written in one transaction shares. */
export interface WriteBatch extends WriteContext {
  readonly stores: IngestStores;
  readonly counter: RowCounter;
  /** Counts that are added to the daily counts at the end of the transaction. */
  readonly rollup: Rollup;
  readonly ahead: ReadonlyMap<Report, ReportAhead>;
  /** Numbers of reports that no longer count and have to be removed. */
  readonly withdrawn: number[];
  readonly findDomain: FindEnrolledDomain;
  /** When the latest report for a domain arrived, by its number; with `isNews` the alert rules are evaluated. */
  readonly arrivals: Map<number, { receivedAtMs: number; isNews: boolean }>;
}

/** One part of an ingestion that was parsed. */
export interface ParsedPart {
  readonly from: ReadIngestion;
  readonly reading: ReportReading;
  /** Ids of the reports that earlier findings of the ingestion name. */
  readonly named: Set<string>;
}

/** A report that is to be stored. */
export interface ReportToStore {
  readonly report: Report;
  readonly domain: DomainRow;
  /** As `authoredFingerprint` says. */
  readonly fingerprint: string;
  readonly rowsHash: string;
  readonly trust: ReportTrust;
}

type Decision =
  | { readonly kind: "refused"; readonly finding: Partial<IngestionFinding> }
  | { readonly kind: "empty" }
  | { readonly kind: "same"; readonly same: SameReport; readonly rowsHash: string }
  | { readonly kind: "copy"; readonly same: SameReport }
  | ({ readonly kind: "store"; readonly sharedFingerprint: string } & ReportToStore);

/** Two small reports of a reporter about one period can have the same rows by chance: mail of the same sender to two customers. */
const COPIED_ROWS_MIN = 2;
const COPIED_MESSAGES_MIN = 10;

const mayBeCopied = (report: Report) =>
  report.reportId !== null && report.rows.length >= COPIED_ROWS_MIN && countMessages(report) >= COPIED_MESSAGES_MIN;

/** Decides what becomes of a report about an enrolled domain. */
export const decideReport = (
  { reports }: Pick<IngestStores, "reports">,
  origin: ReadIngestion,
  { report, domain, nowMs }: { report: Report; domain: DomainRow; nowMs: number },
): Decision => {
  const refusal = reportRefusal(origin, domain, { claimed: report, nowMs });
  if (refusal !== null) return { kind: "refused", finding: refusedFinding(origin, refusal, nowMs) };
  if (report.rows.length === 0) return { kind: "empty" };
  const problem = periodProblemOf(report, nowMs);
  if (problem !== null) return { kind: "refused", finding: { outcome: "quarantined", reason: problem } };
  const trust = reportTrust(origin, report);
  const rowsHash = origin.rowsHashes.get(report);
  if (rowsHash === undefined) throw new Error("the rows of a report were not hashed");
  const { current, former } = fingerprintReport(report, rowsHash);
  for (const known of new Set([current, former])) {
    // A report that is not trusted is also a duplicate of one that is.
    const own = reports.findSame(domain.number, authoredFingerprint(known, trust));
    const same = own ?? (trust.isTrusted ? null : reports.findSame(domain.number, known));
    if (same !== null) return { kind: "same", same, rowsHash };
  }
  const copy = mayBeCopied(report)
    ? reports.findCopy(domain.number, report, { day: dayOf(report), rowsHash, author: trust.author ?? "" })
    : null;
  if (copy !== null) return { kind: "copy", same: copy };
  const fingerprint = authoredFingerprint(current, trust);
  return { kind: "store", report, domain, fingerprint, sharedFingerprint: current, rowsHash, trust };
};

/** Stores an aggregate report once, unless it is refused. The report of its reporter replaces those of other authors. */
export const storeReport = (batch: WriteBatch, part: ParsedPart, report: Report): IngestionFinding => {
  const { from, reading, named } = part;
  const { ingestion } = from;
  const finding = ingestionFinding(reading);
  const domain = batch.findDomain(ingestion, report.policy.domain);
  if (domain === undefined) {
    return reading.outcome === "empty" ? finding : { ...finding, outcome: "quarantined", reason: "foreign_domain" };
  }
  const placed = { ...finding, domain_id: domain.id };
  const decision = decideReport(batch.stores, from, { report, domain, nowMs: batch.nowMs });
  switch (decision.kind) {
    case "refused":
      return { ...placed, ...decision.finding };
    case "empty":
      noteArrival(batch, domain, ingestion.receivedAtMs, false);
      return placed;
    case "same":
      return { ...placed, ...sameFinding(part, decision.same, decision.rowsHash) };
    case "copy":
      named.add(decision.same.id);
      return { ...placed, outcome: "duplicate", reason: "other_report_id", report_id: decision.same.id };
    case "store": {
      const { author, isTrusted } = decision.trust;
      const id = writeReport(batch, from, decision);
      if (isTrusted) withdrawTwins(batch, domain, decision.sharedFingerprint);
      named.add(id);
      noteArrival(batch, domain, ingestion.receivedAtMs, true);
      noteUsage(batch, from, decision);
      const reason = isPastRetention(dayOf(report), domain, batch.nowMs) ? "older_than_retention" : null;
      return { ...placed, reason, report_id: id, ...(author === null ? {} : { author }) };
    }
    default:
      return decision satisfies never;
  }
};

const noteArrival = ({ arrivals }: WriteBatch, { number }: DomainRow, receivedAtMs: number, isNews: boolean) => {
  const noted = entryOf(arrivals, number, () => ({ receivedAtMs: 0, isNews: false }));
  noted.receivedAtMs = Math.max(noted.receivedAtMs, receivedAtMs);
  noted.isNews ||= isNews;
};

/** The report is stored already: from this very mail, which is read again, or from another one. */
const sameFinding = ({ from, named }: ParsedPart, same: SameReport, rowsHash: string) => {
  const isOwn = same.ingestion === from.ingestion.id && !named.has(same.id);
  named.add(same.id);
  if (isOwn) return { outcome: "stored", reason: null, report_id: same.id } as const;
  const reason = same.rowsHash === rowsHash ? null : "duplicate_differs";
  return { outcome: "duplicate", reason, report_id: same.id } as const;
};

/** Writes a report with its rows, unless these are written already, completes and counts it. Returns its id. */
const writeReport = (batch: WriteBatch, from: ReadIngestion, toStore: ReportToStore) => {
  const ahead = batch.ahead.get(toStore.report);
  if (ahead?.domain !== toStore.domain.number) return writeWithRows(batch, from, toStore);
  const { reports, counts } = batch.stores;
  const completed = { fingerprint: toStore.fingerprint, aligned: ahead.aligned };
  if (!reports.complete(batch.tx, ahead, completed)) throw new RowsAheadGone("a report vanished while it was written");
  counts.add(batch.tx, ahead.rollup);
  return ahead.id;
};

const writeWithRows = (batch: WriteBatch, from: ReadIngestion, toStore: ReportToStore) => {
  const { report, domain, trust } = toStore;
  const voucher = voucherFor(batch, domain, { claimed: report, trust, day: dayOf(report) });
  batch.counter.beginReport(sourceAllowance(voucher));
  const records = placeRows(batch.counter, { report, domain }, heaviestFirst(report.rows));
  const { number, id } = insertReport(batch, from, { ...toStore, voucher, aligned: alignedIn(records) });
  insertRecords(batch, { number, report, domain }, records);
  const addCounted = countReport(batch.rollup, toStore, voucher);
  for (const { counted } of records) addCounted(counted);
  return id;
};

/** The messages of rows that passed DMARC. */
export const alignedIn = (records: readonly PlacedRecord[]): number =>
  records.reduce((sum, { row, counted }) => sum + (counted.facts.isAligned ? row.count : 0), 0);

/** Counts a report. The returned function counts a row of the report. */
export const countReport = (
  rollup: Rollup,
  { report, domain, trust }: ReportToStore,
  voucher: number,
): ((row: CountedRow) => void) => {
  const day = dayIn(rollup, domain.number, { day: dayOf(report), voucher });
  const reporter = addReport(day, countedReporter(report, trust));
  return (row) => addRow(day, reporter, row);
};

export interface InsertedReport extends ReportToStore {
  /** See `ReporterStore`. */
  readonly voucher: number;
  /** The messages of the report that passed DMARC; with null the report does not count until it is completed. */
  readonly aligned: number | null;
}

/** Inserts a report without its rows. */
export const insertReport = (
  { stores, tx }: { stores: IngestStores; tx: Tx },
  { ingestion, authentication, isMail }: ReadIngestion,
  { report, domain, fingerprint, rowsHash, voucher, aligned }: InsertedReport,
): { readonly number: number; readonly id: string } => {
  const id = newId();
  // Mails among uploaded files are authenticated later, for information. No DNS queries for test keys.
  const isLater = isMail && ingestion.mode === "live" && !isUnsolicitedMail(ingestion);
  const unknown = isMail && ingestion.mode === "live" && isUnsolicitedMail(ingestion) ? "unknown" : null;
  const number = stores.reports.insertReport(tx, {
    id,
    domain: domain.number,
    ingestion: ingestion.id,
    report,
    day: dayOf(report),
    fingerprint,
    rowsHash,
    voucher,
    aligned,
    receivedAtMs: ingestion.receivedAtMs,
    authenticity: authentication?.authenticity ?? (isLater ? "pending" : unknown),
    authenticityBody: authentication === null ? null : JSON.stringify(authentication),
  });
  return { number, id };
};

/** A row of a report with its position, and what it is counted under. */
interface PlacedRecord extends PlacedRow {
  readonly counted: CountedRow;
}

/** Finds what rows of a report are counted under. */
export const placeRows = (
  counter: RowCounter,
  { report, domain }: { report: Report; domain: DomainRow },
  rows: readonly PlacedRow[],
): readonly PlacedRecord[] => {
  const day = dayOf(report);
  return rows.map(({ row, position }) => {
    const counted = counter.place(domain, day, row, rowFacts(row, domain.domain, report.policy));
    return { row, position, counted };
  });
};

/** Writes rows of a report as records. */
export const insertRecords = (
  { stores, tx }: { stores: IngestStores; tx: Tx },
  { number, report, domain }: { number: number; report: Report; domain: DomainRow },
  records: readonly PlacedRecord[],
): void => {
  const day = dayOf(report);
  stores.reports.insertRecords(
    tx,
    records.map(({ row, position, counted: { source, facts } }) => ({
      report: number,
      position,
      domain: domain.number,
      day,
      row,
      source,
      facts,
    })),
  );
};

/** Counts what unsolicited mail takes of the disk for the domain that it came to, and for its authenticated reporter. */
const noteUsage = (
  { stores, tx, nowMs }: WriteBatch,
  { ingestion }: ReadIngestion,
  { report, trust }: ReportToStore,
) => {
  if (ingestion.domain === null) return;
  const day = dayOfTime(nowMs);
  const bytes = report.rows.reduce((sum, row) => sum + storedBytesOf(row), 0);
  stores.domains.addUsage(tx, ingestion.domain, { day, bytes });
  if (!trust.isTrusted || trust.authenticatedAs === null) return;
  const mailBytes = ingestion.bytes.byteLength;
  stores.authors.add(tx, ingestion.domain, trust.authenticatedAs, { day, bytes: bytes + mailBytes });
};
