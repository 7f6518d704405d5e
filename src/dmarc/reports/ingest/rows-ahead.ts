import { inSteps } from "../../../foundation/base/in-steps.ts";
import { newId } from "../../../foundation/base/secrets.ts";
import type { Tx } from "../../../foundation/db/open.ts";
import type { Runtime } from "../../../foundation/db/runtime.ts";
import type { DomainRow } from "../../records/domains/domain-store.ts";
import type { ReportReading } from "../report/outcome.ts";
import { type Report, dayOf } from "../report/report.ts";
import { weightOf } from "../report/report-row.ts";
import type { IngestStores } from "./ingest-stores.ts";
import type { StagedReport } from "./report-store.ts";
import { createEnrolledDomainFinder, voucherFor } from "./report-trust.ts";
import { heaviestFirst, type PlacedRow, RowCounter, type SourceAllowance, sourceAllowance } from "./row-counter.ts";
import {
  alignedIn,
  countReport,
  decideReport,
  insertRecords,
  insertReport,
  placeRows,
  type ReadIngestion,
  type ReportAhead,
  type ReportToStore,
  RowsAheadGone,
} from "./store-report.ts";

/** Plain rows written in one transaction, or fewer longer ones: it holds the event loop for some 20 ms. */
export const ROWS_PER_COMMIT = 1_000;
/** The rows of reports with more are written ahead. */
export const LARGE_ROWS_MIN = 2_000;

const weightOfReport = ({ rows }: Report): number => rows.reduce((sum, row) => sum + weightOf(row), 0);

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
    private readonly runtime: Pick<Runtime, "db" | "clock" | "log">,
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

  async #writeReport(from: ReadIngestion, toStore: ReportToStore, ahead: Map<Report, ReportAhead>): Promise<void> {
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

  async #remove(number: number): Promise<void> {
    const { reports } = this.stores;
    if (!reports.isIncomplete(number)) return;
    const removeSome = (tx: Tx): number => (reports.removeIncomplete(tx, number, ROWS_PER_COMMIT) ? 0 : 1);
    await inSteps(() => this.runtime.db.commit(removeSome));
  }
}

interface NextRows extends StagedReport {
  readonly report: Report;
  readonly domain: DomainRow;
  readonly rows: readonly PlacedRow[];
  readonly allowance: SourceAllowance;
}
