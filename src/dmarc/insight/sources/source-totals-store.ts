import { z } from "zod";
import type { DayRange } from "../../../foundation/base/days.ts";
import type { Steps } from "../../../foundation/base/in-steps.ts";
import type { Db } from "../../../foundation/db/open.ts";
import { addTotals, NO_TOTALS, type Totals } from "./rollup-rows.ts";
import { statements } from "../../../foundation/db/statements.ts";

/** A week of `dmarc_weekly` begins on a day that is a multiple of this. */
const WEEK_DAYS = 7;

/** A row has 10^9 messages at most (`COUNT_MAX`): sums stay exact. */
const SUMS = `sum(messages) messages, sum(aligned) aligned, sum(aligned_dkim) alignedDkim, sum(aligned_spf) alignedSpf,
  sum(forwarded) forwarded, sum(authenticated) authenticated, sum(quarantined) quarantined, sum(rejected) rejected`;

/** Messages of a stored source, in reports with one voucher. */
interface Row extends Totals {
  readonly number: number;
  readonly voucher: number;
}

/** The messages of a stored source in a range. */
export interface SourceTotals {
  readonly totals: Totals;
  /** The messages in reports that decide. */
  readonly trusted: Totals;
}

const UNKNOWN_SOURCES = `SELECT DISTINCT source FROM dmarc_weekly INDEXED BY dmarc_weekly_unknown
  WHERE domain = ?1 AND is_trusted > 1 AND is_trusted IN (SELECT value FROM json_each(?2))`;
/** The seven days of a week, one by one: each is a search in the key of the daily counts. */
const daysOfWeek = (week: string) =>
  Array.from({ length: WEEK_DAYS }, (_, n) => `${week} * ${WEEK_DAYS} + ${n}`).join(", ");
const dayIn = (week: string, which: "min" | "max") =>
  `(SELECT ${which}(day) FROM dmarc_daily WHERE domain = ?1 AND day IN (${daysOfWeek(week)}) AND source = number
    AND is_trusted IN (SELECT value FROM json_each(?2)))`;
const weekWhich = (which: "min" | "max") =>
  `(SELECT ${which}(week) FROM dmarc_weekly WHERE domain = ?1 AND source = number AND is_trusted IN (SELECT value FROM json_each(?2)))`;
/** Of the sources that other reports name, too; they are few, so each is looked up. */
const DECIDING_DAYS = `WITH shared(number) AS (
    SELECT source FROM dmarc_weekly INDEXED BY dmarc_weekly_unknown WHERE domain = ?1 AND is_trusted > 1
      AND is_trusted NOT IN (SELECT value FROM json_each(?2))
    UNION SELECT source FROM dmarc_weekly WHERE domain = ?1 AND source IN (SELECT number FROM dmarc_sources WHERE domain = ?1)
      AND is_trusted = 0),
  ends AS MATERIALIZED (SELECT number, ${weekWhich("min")} first, ${weekWhich("max")} last FROM shared)
  SELECT number, ${dayIn("first", "min")} firstDay, ${dayIn("last", "max")} lastDay FROM ends WHERE first IS NOT NULL`;

interface DecidingDays {
  readonly number: number;
  readonly firstDay: number;
  readonly lastDay: number;
}

/** The stored sources of a domain, and the days on which something is counted. */
interface Counted {
  readonly count: number;
  readonly first: number | null;
  readonly last: number | null;
  readonly fromDay: number | null;
  readonly toDay: number | null;
}

const COUNTED = `SELECT count(*) count, min(number) first, max(number) last,
  (SELECT min(day) FROM dmarc_daily WHERE domain = ?1) fromDay, (SELECT max(day) FROM dmarc_daily WHERE domain = ?1) toDay
  FROM dmarc_sources WHERE domain = ?1`;

type Between = [domain: number, from: number, to: number, deciding: string];

/** Sources whose weeks are read in one step. */
const SOURCES_PER_STEP = 4_000;

/**
 * The parts that sum up a range: weeks (their numbers, both inclusive) and days, less the days in those weeks that are not in the
 * range.
 */
interface RangeParts {
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

const lengthOf = ({ fromDay, toDay }: DayRange) => toDay - fromDay + 1;

/** Sums up the messages of each source of a domain in a range, from the sums by week and, at its edges, by day. */
export class SourceTotalsStore {
  readonly #sql;

  constructor({ sqlite }: Pick<Db, "sqlite">, { trustedOnly }: { readonly trustedOnly: boolean }) {
    const restriction = trustedOnly ? "AND is_trusted IN (SELECT value FROM json_each(?4))" : "AND ?4 IS NOT NULL";
    this.#sql = statements({
      days: () =>
        sqlite.prepare<Row, Between>(
          `SELECT source number, is_trusted voucher, ${SUMS} FROM dmarc_daily WHERE domain = ?1 AND day BETWEEN ?2 AND ?3
        ${restriction} GROUP BY source, is_trusted`,
        ),
      // Names every column of the key: rows come in its order, without sorting.
      weeks: () =>
        sqlite.prepare<Row, [...Between, first: number, behind: number]>(
          `SELECT source number, is_trusted voucher, ${SUMS} FROM dmarc_weekly WHERE domain = ?1
        AND source IN (SELECT number FROM dmarc_sources WHERE domain = ?1 AND number >= ?5 AND number < ?6) AND is_trusted IN (0, 1)
        ${restriction} AND week BETWEEN ?2 AND ?3 GROUP BY source, is_trusted`,
        ),
      // Unknown reporters have an index of their own: there may be many of them, with few sources each.
      unknownWeeks: () =>
        sqlite.prepare<Row, Between>(
          `SELECT source number, is_trusted voucher, ${SUMS} FROM dmarc_weekly INDEXED BY dmarc_weekly_unknown
        WHERE domain = ?1 AND week BETWEEN ?2 AND ?3 AND is_trusted > 1 ${restriction} GROUP BY source, is_trusted`,
        ),
      unknownSources: () => sqlite.prepare<{ source: number }, [number, string]>(UNKNOWN_SOURCES),
      decidingDays: () => sqlite.prepare<DecidingDays, [number, string]>(DECIDING_DAYS),
      counted: () => sqlite.prepare<Counted, [number]>(COUNTED),
    });
  }

  /** By the numbers of stored sources; those without messages may be absent. `deciding`: vouchers of reports that decide, as JSON. */
  *read(domain: number, range: DayRange, deciding: string): Steps<ReadonlyMap<number, SourceTotals>> {
    const { count = 0, first, last, fromDay: firstDay, toDay: lastDay } = this.#sql.counted.get(domain) ?? {};
    const { weeks, added, subtracted } = splitRange(range, { fromDay: firstDay ?? 1, toDay: lastDay ?? 0 });
    const sums = new Sums(deciding);
    if (weeks !== null) {
      const [begin, end] = [first ?? 0, (last ?? -1) + 1];
      const size = Math.ceil((end - begin) / Math.ceil(count / SOURCES_PER_STEP));
      for (let at = begin; at < end; at += size) {
        sums.add(this.#sql.weeks.all(domain, weeks.from, weeks.to, deciding, at, Math.min(end, at + size)));
        yield;
      }
      sums.add(this.#sql.unknownWeeks.all(domain, weeks.from, weeks.to, deciding));
    }
    for (const { fromDay, toDay } of added) {
      yield;
      sums.add(this.#sql.days.all(domain, fromDay, toDay, deciding));
    }
    for (const { fromDay, toDay } of subtracted) {
      yield;
      sums.add(this.#sql.days.all(domain, fromDay, toDay, deciding), -1);
    }
    return sums.bySource;
  }

  /** The numbers of the stored sources that deciding reports of unknown reporters name. */
  namedByUnknown(domain: number, deciding: string): ReadonlySet<number> {
    return new Set(this.#sql.unknownSources.all(domain, deciding).map(({ source }) => source));
  }

  /** The first and last day in deciding reports of each source that other reports name too, by its number. */
  decidingDays(domain: number, deciding: string): ReadonlyMap<number, Pick<DecidingDays, "firstDay" | "lastDay">> {
    const rows = this.#sql.decidingDays.all(domain, deciding);
    return new Map(rows.map(({ number, firstDay, lastDay }) => [number, { firstDay, lastDay }]));
  }
}

/** Adds up rows by their source. */
class Sums {
  readonly bySource = new Map<number, SourceTotals>();
  readonly #deciding: ReadonlySet<number>;

  constructor(deciding: string) {
    this.#deciding = new Set(z.array(z.number()).parse(JSON.parse(deciding)));
  }

  add(rows: readonly Row[], sign: 1 | -1 = 1): void {
    for (const row of rows) {
      const trusted = this.#deciding.has(row.voucher) ? row : NO_TOTALS;
      const sum = this.bySource.get(row.number);
      if (sum === undefined && sign === 1) this.bySource.set(row.number, { totals: row, trusted });
      else {
        const { totals, trusted: before } = sum ?? NOTHING;
        const sums = { totals: addTotals(totals, row, sign), trusted: addTotals(before, trusted, sign) };
        this.bySource.set(row.number, sums);
      }
    }
  }
}

const NOTHING: SourceTotals = { totals: NO_TOTALS, trusted: NO_TOTALS };
