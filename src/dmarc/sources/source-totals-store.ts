import type { DayRange } from "../../base/days.ts";
import type { Db } from "../../db/open.ts";
import type { SourceTotals } from "./rollup-rows.ts";

/** A week of `dmarc_weekly` begins on a day that is a multiple of this. */
const WEEK_DAYS = 7;

/** A row has 10^9 messages at most (`COUNT_MAX`): sums stay exact. */
const SUMS = `sum(messages) messages, sum(aligned) aligned, sum(aligned_dkim) alignedDkim, sum(aligned_spf) alignedSpf,
  sum(forwarded) forwarded, sum(authenticated) authenticated, sum(quarantined) quarantined, sum(rejected) rejected`;

type Row = Omit<SourceTotals, "isTrusted"> & { readonly isTrusted: 0 | 1 };
type Between = [domain: number, from: number, to: number];

/** The parts that sum up a range: its whole weeks (numbers of weeks, both inclusive), and the days before and after them. */
export interface RangeParts {
  readonly weeks: { readonly from: number; readonly to: number } | null;
  readonly days: readonly DayRange[];
}

/**
 * Splits a range into whole weeks and single days. A week also counts as whole if nothing was counted on its days outside the range: before
 * or after all days that are `counted`.
 */
export const splitRange = (range: DayRange, counted: DayRange): RangeParts => {
  const fromDay = Math.max(range.fromDay, counted.fromDay);
  const toDay = Math.min(range.toDay, counted.toDay);
  if (fromDay > toDay) return { weeks: null, days: [] };
  const from = Math.ceil((fromDay === counted.fromDay ? fromDay - WEEK_DAYS + 1 : fromDay) / WEEK_DAYS);
  const to = Math.floor((toDay === counted.toDay ? toDay : toDay - WEEK_DAYS + 1) / WEEK_DAYS);
  if (from > to) return { weeks: null, days: [{ fromDay, toDay }] };
  const edges = [
    { fromDay, toDay: from * WEEK_DAYS - 1 },
    { fromDay: (to + 1) * WEEK_DAYS, toDay },
  ];
  return { weeks: { from, to }, days: edges.filter((edge) => edge.fromDay <= edge.toDay) };
};

/** Sums up the messages of each source of a domain in a range, from the sums by week and, at its edges, by day. */
export class SourceTotalsStore {
  readonly #days;
  readonly #weeks;
  readonly #counted;

  constructor({ sqlite }: Pick<Db, "sqlite">, { trustedOnly }: { readonly trustedOnly: boolean }) {
    this.#days = sqlite.prepare<Row, Between>(
      `SELECT source number, is_trusted isTrusted, ${SUMS} FROM dmarc_daily WHERE domain = ? AND day BETWEEN ? AND ?
        ${trustedOnly ? "AND is_trusted = 1" : ""} GROUP BY source, is_trusted`,
    );
    // Names every column of the key: rows come in its order, without sorting.
    this.#weeks = sqlite.prepare<Row, Between>(
      `SELECT source number, is_trusted isTrusted, ${SUMS} FROM dmarc_weekly WHERE domain = ?1
        AND source IN (SELECT number FROM dmarc_sources WHERE domain = ?1) AND is_trusted IN ${trustedOnly ? "(1)" : "(0, 1)"}
        AND week BETWEEN ?2 AND ?3 GROUP BY source, is_trusted`,
    );
    this.#counted = sqlite.prepare<{ fromDay: number | null; toDay: number | null }, [number, number]>(
      `SELECT (SELECT min(day) FROM dmarc_daily WHERE domain = ?) fromDay, (SELECT max(day) FROM dmarc_daily WHERE domain = ?) toDay`,
    );
  }

  /** A source may have several rows, to be added up. */
  read(domain: number, range: DayRange): SourceTotals[] {
    const counted = this.#counted.get(domain, domain);
    const { weeks, days } = splitRange(range, { fromDay: counted?.fromDay ?? 1, toDay: counted?.toDay ?? 0 });
    const rows = days.flatMap(({ fromDay, toDay }) => this.#days.all(domain, fromDay, toDay));
    if (weeks !== null) rows.push(...this.#weeks.all(domain, weeks.from, weeks.to));
    return rows.map((row) => ({ ...row, isTrusted: row.isTrusted === 1 }));
  }
}
