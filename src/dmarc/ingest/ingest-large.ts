import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import { newId } from "../../base/secrets.ts";
import type { Db } from "../../db/open.ts";
import type { DomainRow } from "../domains/domain-store.ts";
import {
  type SourceAllowance,
  sourceAllowance,
  createRowCounter,
  heaviestFirst,
  type PlacedRow,
} from "./row-counter.ts";
import { rowFacts } from "./row-facts.ts";
import {
  coveringDomain,
  type IngestStores,
  refusalOf,
  type ReportTrust,
  reportTrust,
  type StagedReport,
  type Work,
} from "./ingest-work.ts";
import { findSame, newReportOf, StagedReportGone } from "./ingest-write.ts";
import type { Report } from "../report/report.ts";
import { weightOf } from "../report/report-row-size.ts";
import { dayOf, periodProblemOf } from "./report-period.ts";
import { rowsHash, formerReportFingerprint, reportFingerprint } from "./report-fingerprint.ts";
import type { CountedRow } from "./rollup.ts";

/** Plain rows written in one transaction, or fewer longer ones: it holds the event loop for some 20 ms. */
export const ROWS_PER_COMMIT = 1_000;
/** Reports with more rows are written in several transactions. */
export const LARGE_ROWS_MIN = 2_000;

/** What is staged. */
interface StagedOf {
  readonly domain: DomainRow;
  readonly report: Report;
  readonly standing: ReportTrust;
}

export interface StagingDeps {
  readonly db: Db;
  readonly stores: IngestStores;
  readonly clock: Clock;
  readonly log: Log;
}

/** What the rows of a report weigh: as many as there are, and more when they are long. */
export const weightIn = ({ rows }: Pick<Report, "rows">): number => rows.reduce((sum, row) => sum + weightOf(row), 0);

export const isLarge = (report: Report): boolean => weightIn(report) > LARGE_ROWS_MIN;

/** The rows from `from` on that are written in one transaction: one at least. */
const nextRows = (rows: readonly PlacedRow[], from: number): readonly PlacedRow[] => {
  const some = rows.slice(from, from + ROWS_PER_COMMIT);
  let weight = 0;
  const end = some.findIndex(({ row }, at) => {
    weight += weightOf(row);
    return at > 0 && weight > ROWS_PER_COMMIT;
  });
  return end === -1 ? some : some.slice(0, end);
};

/**
 * Writes the rows of large reports ahead, in reports that do not count yet, so that the transaction in which they begin
 * to count is short. Until then such a report is known by a sameness of its own: another one of the same is not hindered
 * by it, and is not taken for a duplicate of what may never be finished.
 */
export const createStaging = ({ db, stores, clock, log }: StagingDeps) => {
  const { reports, counts, domains } = stores;

  const stageRows = async (staged: Omit<StagedReport, "placed">, { domain, report, standing }: StagedOf) => {
    const placed: CountedRow[] = [];
    const day = dayOf(report);
    const ordered = heaviestFirst(report.rows);
    let allowance: SourceAllowance = sourceAllowance(standing);
    while (placed.length < ordered.length) {
      const rows = nextRows(ordered, placed.length);
      const more = await db.commit((tx) => {
        if (!reports.isIncomplete(staged.number)) throw new StagedReportGone("a report vanished while it was written");
        const counting = createRowCounter(counts, { tx, nowMs: clock.nowMs() });
        counting.beginReport(allowance);
        const found = rows.map(({ row, position }) => {
          const counted = counting.place(domain, day, row, rowFacts(row, domain.domain, report.policy));
          const place = { report: staged.number, position, domain: domain.number, day };
          reports.insertRecord(tx, { ...place, row, counted });
          return counted;
        });
        const left = counting.allowance();
        counting.flush(new Map());
        return { found, left };
      });
      placed.push(...more.found);
      allowance = more.left;
    }
    return placed;
  };

  const stageReport = async (work: Work, report: Report): Promise<StagedReport | null> => {
    const domain = coveringDomain(domains, work.ingestion, report.policy.domain);
    if (domain === undefined || refusalOf(work, domain, { of: report, nowMs: clock.nowMs() }) !== null) return null;
    if (periodProblemOf(report, clock.nowMs()) !== null) return null;
    const content = rowsHash(report);
    const sameness = reportFingerprint(report, content);
    const standing = reportTrust(work, report);
    const former = formerReportFingerprint(report, content);
    if (findSame(stores, domain, { sameness, former, standing }) !== null) return null;
    const id = newId();
    const row = newReportOf(work, { report, domain, sameness: `staged ${id}`, content });
    const number = await db.commit((tx) => reports.insertReport(tx, { ...row, id, aligned: 0, isComplete: false }));
    const staged = { number, id, domain: domain.number, content };
    try {
      return { ...staged, placed: await stageRows(staged, { domain, report, standing }) };
    } catch (error) {
      await remove(number).catch((cause: unknown) =>
        log.warn("a report half written stays until the next start", { cause }),
      );
      throw error;
    }
  };

  /** Removes a report that does not count, with its rows, if it is there. */
  const remove = async (number: number): Promise<void> => {
    for (let isGone = false; !isGone;) {
      isGone = await db.commit((tx) => reports.removeIncomplete(tx, number, ROWS_PER_COMMIT));
    }
  };

  /** Removes what was staged for a work and does not count: after writing it, what turned out not to be wanted. */
  const discard = async ({ staged }: Pick<Work, "staged">): Promise<void> => {
    for (const { number } of staged.values()) if (reports.isIncomplete(number)) await remove(number);
  };

  return {
    /** The same work with its large reports staged. Rejects as `db.commit` does, with nothing staged. */
    async stage(work: Work): Promise<Work> {
      const staged = new Map<Report, StagedReport>();
      try {
        for (const { report } of work.readings) {
          const found = report !== null && isLarge(report) ? await stageReport(work, report) : null;
          if (found !== null && report !== null) staged.set(report, found);
        }
      } catch (error) {
        await discard({ staged });
        throw error;
      }
      return { ...work, staged };
    },
    discard,
    /** Removes the rest of reports that were replaced. What is left of them does not count, and goes with the next start. */
    async removeReplaced(numbers: readonly number[]): Promise<void> {
      for (const number of numbers) {
        await remove(number).catch((cause: unknown) =>
          log.warn("a report that was replaced stays in part until the next start", { cause }),
        );
      }
    },
    /** Removes every report that does not count: at the start, what the end of the service left behind. */
    async removeIncomplete(): Promise<number> {
      const numbers = reports.incomplete();
      for (const number of numbers) await remove(number);
      return numbers.length;
    },
  };
};

export type Staging = ReturnType<typeof createStaging>;
