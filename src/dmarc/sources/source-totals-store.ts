import type { DayRange } from "../../base/days.ts";
import type { Db } from "../../db/open.ts";
import { addTotals, NO_TOTALS, type Totals } from "./totals.ts";

/** A week of `dmarc_weekly` begins on a day that is a multiple of this. */
const WEEK_DAYS = 7;

/** A row has 10^9 messages at most (`COUNT_MAX`): sums stay exact. */
const SUMS = `sum(messages) messages, sum(aligned) aligned, sum(aligned_dkim) alignedDkim, sum(aligned_spf) alignedSpf,
  sum(forwarded) forwarded, sum(authenticated) authenticated, sum(quarantined) quarantined, sum(rejected) rejected`;

/** Messages of a stored source, in trusted reports or in the others. */
interface Row extends Totals {
  readonly number: number;
  readonly isTrusted: 0 | 1;
}

/** The messages of a stored source in a range. */
export interface SourceTotals {
  readonly totals: Totals;
  /** Those of them that trusted reports count. */
  readonly trusted: Totals;
}

type Between = [domain: number, from: number, to: number];

/**
 * The parts that sum up a range: weeks (their numbers, both inclusive) and days, less the days in those weeks that are not in the
 * range.
 */
export interface RangeParts {
  readonly weeks: { readonly from: number; readonly to: number } | null;
  readonly added: readonly DayRange[];
  readonly subtracted: readonly DayRange[];
}

/** Splits a range into parts with few days, which cost more than weeks. Nothing is counted outside of `counted`. */
export const splitRange = (range: DayRange, counted: DayRange): RangeParts => {
  const fromDay = Math.max(range.fromDay, counted.fromDay);
  const toDay = Math.min(range.toDay, counted.toDay);
  if (fromDay > toDay) return { weeks: null, added: [], subtracted: [] };
  const [first, last] = [Math.floor(fromDay / WEEK_DAYS), Math.floor(toDay / WEEK_DAYS)];
  const edges = [
    {
      inside: { fromDay, toDay: first * WEEK_DAYS + WEEK_DAYS - 1 },
      outside: { fromDay: Math.max(first * WEEK_DAYS, counted.fromDay), toDay: fromDay - 1 },
    },
    {
      inside: { fromDay: last * WEEK_DAYS, toDay },
      outside: { fromDay: toDay + 1, toDay: Math.min(last * WEEK_DAYS + WEEK_DAYS - 1, counted.toDay) },
    },
  ] as const;
  const [isFirstWhole, isLastWhole] = edges.map(({ inside, outside }) => lengthOf(outside) <= lengthOf(inside));
  const weeks = { from: isFirstWhole ? first : first + 1, to: isLastWhole ? last : last - 1 };
  if (weeks.from > weeks.to) return { weeks: null, added: [{ fromDay, toDay }], subtracted: [] };
  return {
    weeks,
    added: edges.flatMap(({ inside, outside }) => (lengthOf(outside) > lengthOf(inside) ? [inside] : [])),
    subtracted: edges.flatMap(({ inside, outside }) =>
      lengthOf(outside) > 0 && lengthOf(outside) <= lengthOf(inside) ? [outside] : [],
    ),
  };
};

const lengthOf = ({ fromDay, toDay }: DayRange): number => toDay - fromDay + 1;

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

  /** By the numbers of stored sources; those without messages may be absent. */
  read(domain: number, range: DayRange): ReadonlyMap<number, SourceTotals> {
    const counted = this.#counted.get(domain, domain);
    const { weeks, added, subtracted } = splitRange(range, {
      fromDay: counted?.fromDay ?? 1,
      toDay: counted?.toDay ?? 0,
    });
    const sums = new Map<number, SourceTotals>();
    if (weeks !== null) addRows(sums, this.#weeks.all(domain, weeks.from, weeks.to));
    for (const { fromDay, toDay } of added) addRows(sums, this.#days.all(domain, fromDay, toDay));
    for (const { fromDay, toDay } of subtracted) addRows(sums, this.#days.all(domain, fromDay, toDay), -1);
    return sums;
  }
}

const addRows = (sums: Map<number, SourceTotals>, rows: readonly Row[], sign: 1 | -1 = 1): void => {
  for (const row of rows) {
    const trusted = row.isTrusted === 1 ? row : NO_TOTALS;
    const sum = sums.get(row.number);
    if (sum === undefined && sign === 1) sums.set(row.number, { totals: row, trusted });
    else {
      const { totals, trusted: before } = sum ?? NOTHING;
      sums.set(row.number, { totals: addTotals(totals, row, sign), trusted: addTotals(before, trusted, sign) });
    }
  }
};

const NOTHING: SourceTotals = { totals: NO_TOTALS, trusted: NO_TOTALS };
