import { dayOfTime } from "../../base/days.ts";
import { newId } from "../../base/secrets.ts";
import type { DomainRow, DomainStore } from "../domains/domain-store.ts";
import { sourceAllowance, type WriteContext, createRowCounter, heaviestFirst } from "./row-counter.ts";
import { ingestionConclusion, failureFinding, type IngestionFinding, ingestionFinding } from "./ingestion-finding.ts";
import { takeBackTwins } from "./ingest-replace.ts";
import { rowFacts } from "./row-facts.ts";
import { storeFailureReport } from "./ingest-failure.ts";
import { storeTlsReport } from "./ingest-tls.ts";
import {
  type Batch,
  type IngestStores,
  isUnsolicitedMail,
  isTooLate,
  type ReadingInWork,
  refusalOf,
  refusedAs,
  reporterOf,
  sameAs,
  type ReportTrust,
  reportTrust,
  type Work,
  type Written,
} from "./ingest-work.ts";
import { storedBytesOf } from "../report/report-row-size.ts";
import { countMessages, type Report } from "../report/report.ts";
import { dayOf, isPastRetention, periodProblemOf } from "./report-period.ts";
import { rowsHash, formerReportFingerprint, reportFingerprint } from "./report-fingerprint.ts";
import type { SameReport } from "./report-store.ts";
import { addReport, addRow, type CountedRow, dayIn } from "./rollup.ts";

/** A staged report that is gone: somebody removed what looked like the remains of a crash. It is to be staged again. */
export class StagedReportGone extends Error {}

/**
 * Writes down what was read, with its reports, records and rollups, in the transaction given. Null for what no longer
 * waits to be read, because another process was faster.
 */
export const writeWorks = (stores: IngestStores, context: WriteContext, works: readonly Work[]): (Written | null)[] => {
  const { tx, nowMs } = context;
  const touched = new Map<number, { receivedAtMs: number; isNews: boolean }>();
  const batch: Batch = {
    ...context,
    stores,
    counting: createRowCounter(stores.counts, context),
    rollup: new Map(),
    replaced: [],
    cover: createCover(stores.domains),
    touch(domain, receivedAtMs, isNews) {
      const before = touched.get(domain.number) ?? { receivedAtMs: 0, isNews: false };
      const latestMs = Math.max(before.receivedAtMs, receivedAtMs);
      touched.set(domain.number, { receivedAtMs: latestMs, isNews: before.isNews || isNews });
    },
  };
  const written = works.map((work) => {
    if (!work.isNew && !stores.ingestions.isPending(work.ingestion.id)) return null;
    const findings = findingsOf(batch, work);
    const ending = { ...ingestionConclusion(findings), findings, finishedAtMs: nowMs };
    if (work.isNew) stores.ingestions.insertDone(tx, work.ingestion, ending);
    else stores.ingestions.finish(tx, work.ingestion.id, ending);
    return { ingestion: work.ingestion, ending, replaced: batch.replaced.splice(0) };
  });
  batch.counting.flush(batch.rollup);
  for (const [domain, { receivedAtMs, isNews }] of touched) stores.counts.touchDomain(tx, domain, receivedAtMs, isNews);
  return written;
};

/** Asks the store once for each policy domain: a batch is mostly about few. */
const createCover = (domains: DomainStore): Batch["cover"] => {
  const known = new Map<string, DomainRow | undefined>();
  return (ingestion, policyDomain) => {
    const { accountId, mode } = ingestion;
    const key = `${accountId} ${mode} ${policyDomain}`;
    if (!known.has(key)) known.set(key, domains.findCovering({ accountId, mode }, policyDomain));
    const found = known.get(key);
    return found !== undefined && isTooLate(domains, ingestion, found) ? undefined : found;
  };
};

const findingsOf = (batch: Batch, work: Work): IngestionFinding[] => {
  if (work.failure !== null) return [failureFinding(work.failure)];
  const named = new Set<string>();
  return work.readings.map((reading) => {
    const place: ReadingInWork = { work, reading, named };
    if (reading.report !== null) return takeReport(batch, place, reading.report);
    if (reading.tlsReport !== null) return storeTlsReport(batch, place, reading.tlsReport);
    if (reading.failureReport !== null) return storeFailureReport(batch, place, reading.failureReport);
    return ingestionFinding(reading);
  });
};

const takeReport = (batch: Batch, place: ReadingInWork, report: Report): IngestionFinding => {
  const { work, reading } = place;
  const finding = ingestionFinding(reading);
  const domain = batch.cover(work.ingestion, report.policy.domain);
  if (domain === undefined) {
    return reading.outcome === "empty" ? finding : { ...finding, outcome: "quarantined", reason: "foreign_domain" };
  }
  const placed = { ...finding, domain_id: domain.id };
  const refusal = refusalOf(work, domain, { of: report, nowMs: batch.nowMs });
  if (refusal !== null) return { ...placed, ...refusedAs(work, refusal, batch.nowMs) };
  if (reading.outcome === "empty") {
    batch.touch(domain, work.ingestion.receivedAtMs, false);
    return placed;
  }
  const problem = periodProblemOf(report, batch.nowMs);
  if (problem !== null) return { ...placed, outcome: "quarantined", reason: problem };
  const content = work.staged.get(report)?.content ?? rowsHash(report);
  const sameness = reportFingerprint(report, content);
  const standing = reportTrust(work, report);
  const same = findSame(batch.stores, domain, { sameness, standing, former: formerReportFingerprint(report, content) });
  if (same !== null) return { ...placed, ...judgeSame(place, same, content) };
  if (standing.isTrusted) takeBackTwins(batch, work, { sameness, domain });
  const id = storeReport(batch, work, { report, domain, sameness: sameAs(sameness, standing), content, standing });
  place.named.add(id);
  batch.touch(domain, work.ingestion.receivedAtMs, true);
  noteUsage(batch, work, { report, standing });
  const { author } = standing;
  return { ...placed, reason: ageOf(report, domain, batch), report_id: id, ...(author === null ? {} : { author }) };
};

/** What a report is looked for by: `former` is how it was known to earlier versions. */
interface Sought {
  readonly sameness: string;
  readonly former: string;
  readonly standing: ReportTrust;
}

/** The report of the same author that is there; for one that is not trusted also the one that is. */
export const findSame = (
  { reports }: Pick<IngestStores, "reports">,
  { number }: DomainRow,
  { sameness, former, standing }: Sought,
): SameReport | null => {
  for (const known of sameness === former ? [sameness] : [sameness, former]) {
    const own = reports.findSame(number, sameAs(known, standing));
    const found = own ?? (standing.isTrusted ? null : reports.findSame(number, known));
    if (found !== null) return found;
  }
  return null;
};

const ageOf = (report: Report, domain: DomainRow, { nowMs }: WriteContext) =>
  isPastRetention(dayOf(report), domain, nowMs) ? ("older_than_retention" as const) : null;

/** A report that is there already: brought by this very mail, which is being read again, or by another. */
const judgeSame = ({ work, named }: ReadingInWork, same: SameReport, content: string) => {
  const isOwn = same.ingestion === work.ingestion.id && !named.has(same.id);
  named.add(same.id);
  if (isOwn) return { outcome: "stored", reason: null, report_id: same.id } as const;
  const reason = same.content === content ? null : "duplicate_differs";
  return { outcome: "duplicate", reason, report_id: same.id } as const;
};

/** A report on its way into the database. */
export interface Stored {
  readonly report: Report;
  readonly domain: DomainRow;
  /** As `sameAs` says. */
  readonly sameness: string;
  readonly content: string;
  readonly standing: ReportTrust;
}

/** Stores a report that counts, and answers its id. */
const storeReport = (batch: Batch, work: Work, stored: Stored): string => {
  const { report, domain, standing } = stored;
  const staged = work.staged.get(report);
  const isStaged = staged !== undefined && staged.domain === domain.number;
  const written = isStaged ? completeStaged(batch, staged, stored) : writeReport(batch, work, stored);
  const day = dayIn(batch.rollup, domain.number, { day: dayOf(report), isTrusted: standing.isTrusted });
  const reporter = addReport(day, reporterOf(report, standing));
  for (const row of written.placed) addRow(day, reporter, row);
  return written.id;
};

interface Placed {
  readonly id: string;
  readonly placed: readonly CountedRow[];
}

const completeStaged = (
  { stores, tx }: Batch,
  staged: Placed & { readonly number: number },
  stored: Stored,
): Placed => {
  if (!stores.reports.isIncomplete(staged.number)) throw new StagedReportGone("a report vanished while it was written");
  const aligned = staged.placed.reduce((sum, { row, facts }) => sum + (facts.isAligned ? row.count : 0), 0);
  stores.reports.complete(tx, staged.number, { sameness: stored.sameness, aligned });
  return staged;
};

const writeReport = ({ stores, tx, counting }: Batch, work: Work, stored: Stored): Placed => {
  const { report, domain } = stored;
  const day = dayOf(report);
  const facts = report.rows.map((row) => rowFacts(row, domain.domain, report.policy));
  const id = newId();
  const number = stores.reports.insertReport(tx, {
    ...newReportOf(work, stored),
    id,
    aligned: report.rows.reduce((sum, { count }, at) => sum + (facts[at]?.isAligned ? count : 0), 0),
    isComplete: true,
  });
  counting.beginReport(sourceAllowance(stored.standing));
  const placed = heaviestFirst(report.rows).map(({ row, position }) => {
    const known = facts[position] ?? rowFacts(row, domain.domain, report.policy);
    const counted = counting.place(domain, day, row, known);
    stores.reports.insertRecord(tx, { report: number, position, domain: domain.number, day, row, counted });
    return counted;
  });
  return { id, placed };
};

/** The columns of a report that follow from where it came from. */
export const newReportOf = (work: Work, { report, domain, sameness, content }: Omit<Stored, "standing">) => {
  const { ingestion, proof } = work;
  return {
    domain: domain.number,
    ingestion: ingestion.id,
    report,
    day: dayOf(report),
    receivedAtMs: ingestion.receivedAtMs,
    messages: countMessages(report),
    sameness,
    content,
    authenticity: proof?.authenticity ?? unjudged(work),
    authenticityBody: proof === null ? null : JSON.stringify(proof),
  };
};

/** Mails among the files that somebody handed in are judged later, for information. Nothing is asked of the DNS for test keys. */
const unjudged = ({ ingestion, isMail }: Work): "pending" | "unknown" | null => {
  if (!isMail || ingestion.mode !== "live") return null;
  return isUnsolicitedMail(ingestion) ? "unknown" : "pending";
};

/** Of mail anybody may send any: what it takes of the disk is counted for the domain that it came to, and for who is known to have sent it. */
const noteUsage = (
  { stores, tx, nowMs }: Batch,
  { ingestion }: Work,
  stored: Pick<Stored, "report" | "standing">,
): void => {
  if (ingestion.domain === null) return;
  const { isTrusted, authenticatedAs } = stored.standing;
  const day = dayOfTime(nowMs);
  const bytes = stored.report.rows.reduce((sum, row) => sum + storedBytesOf(row), 0);
  stores.domains.addUsage(tx, ingestion.domain, { day, bytes });
  if (!isTrusted || authenticatedAs === null) return;
  stores.authors.add(tx, ingestion.domain, authenticatedAs, { day, bytes: bytes + ingestion.bytes.byteLength });
};
