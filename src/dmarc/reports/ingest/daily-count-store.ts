import type { SQLQueryBindings } from "bun:sqlite";
import type { Db, Tx } from "../../../foundation/db/open.ts";
import { prepareRowInsert, statements } from "../../../foundation/db/statements.ts";
import type { CountedDay, CountedReporter, Counts, Rollup } from "./rollup.ts";

/** Where something is counted: domain, day, trust, and a source, a reporter or a header_from domain. */
export interface CountKey<K> extends CountedDay {
  readonly domain: number;
  readonly key: K;
}

/** The columns of a table: those of its key, and the figures that are added up under it. */
interface CountColumns {
  readonly table: string;
  readonly key: readonly string[];
  readonly figures: readonly string[];
}

const DAY_KEY = ["domain", "day", "is_trusted"];
const RESULTS = ["aligned", "aligned_dkim", "aligned_spf", "forwarded", "authenticated", "quarantined", "rejected"];
const SOURCES: CountColumns = {
  table: "dmarc_daily",
  key: [...DAY_KEY, "source"],
  figures: ["messages", ...RESULTS],
};
const REPORTERS: CountColumns = {
  table: "dmarc_daily_reporters",
  key: [...DAY_KEY, "reporter", "author"],
  figures: ["reports", "messages", "aligned"],
};
const NAMES: CountColumns = {
  table: "dmarc_daily_names",
  key: [...DAY_KEY, "name"],
  figures: ["messages", "aligned"],
};

const TABLES = ["sources", "reporters", "names"] as const;

/** A row of one of these tables: its key, then its figures. */
type CountRow = readonly SQLQueryBindings[];

const prepareCounting = (db: Pick<Db, "sqlite">, { table, key, figures }: CountColumns) => {
  const add = prepareRowInsert(db, {
    into: `${table} (${[...key, ...figures].join(", ")})`,
    columns: key.length + figures.length,
    ending: `ON CONFLICT DO UPDATE SET ${figures.map((name) => `${name} = ${name} + excluded.${name}`).join(", ")}`,
  });
  const isKey = key.map((name) => `${name} = ?`).join(" AND ");
  const drop = db.sqlite.prepare<unknown, SQLQueryBindings[]>(
    `DELETE FROM ${table} WHERE ${isKey} AND ${figures[0]} <= 0`,
  );
  return {
    add,
    /** Removes those of the rows of which nothing is left. */
    dropEmpty(rows: readonly CountRow[]): void {
      for (const row of rows) drop.run(...row.slice(0, key.length));
    },
  };
};

const prepareStatements = ({ sqlite }: Pick<Db, "sqlite">) =>
  statements({
    reporterHolds: () =>
      sqlite.prepare<unknown, [number, number, string, string, number]>(
        `SELECT 1 FROM dmarc_daily_reporters WHERE domain = ? AND day = ? AND reporter = ? AND author = ? AND is_trusted = 0
      AND reports > 0 AND messages >= ?`,
      ),
    isNameCountedOn: () =>
      sqlite.prepare<unknown, [number, number, string, number]>(
        "SELECT 1 FROM dmarc_daily_names WHERE domain = ? AND day = ? AND name = ? AND is_trusted = ?",
      ),
    touchDomain: () =>
      sqlite.prepare(
        "UPDATE dmarc_domains SET last_report_at_ms = max(coalesce(last_report_at_ms, 0), ?), is_unreviewed = max(is_unreviewed, ?) WHERE number = ?",
      ),
  });

const sourceRow = ({ domain, day, key, voucher }: CountKey<number>, counts: Counts, sign: 1 | -1): CountRow => {
  const { messages, aligned, alignedDkim, alignedSpf, forwarded, authenticated, quarantined, rejected } = counts;
  const figures = [messages, aligned, alignedDkim, alignedSpf, forwarded, authenticated, quarantined, rejected];
  return [domain, day, voucher, key, ...figures.map((figure) => sign * figure)];
};

/** What a rollup adds to each table, or takes from it. */
const rowsOf = (rollup: Rollup, sign: 1 | -1) => {
  const rows = { sources: [] as CountRow[], reporters: [] as CountRow[], names: [] as CountRow[] };
  for (const [domain, days] of rollup) {
    for (const { day, voucher, sources, reporters, names } of days.values()) {
      for (const [key, counts] of sources) rows.sources.push(sourceRow({ domain, day, key, voucher }, counts, sign));
      for (const { reporter, author, reports, messages, aligned } of reporters.values()) {
        const figures = [sign * reports, sign * messages, sign * aligned];
        rows.reporters.push([domain, day, voucher, reporter, author, ...figures]);
      }
      for (const [name, { messages, aligned }] of names)
        rows.names.push([domain, day, voucher, name, sign * messages, sign * aligned]);
    }
  }
  return rows;
};

/** What is counted of reports by day: per source, per reporter and per header_from domain. */
export class DailyCountStore {
  readonly #sql;
  readonly #tables;

  constructor(db: Pick<Db, "sqlite">) {
    this.#sql = prepareStatements(db);
    this.#tables = {
      sources: prepareCounting(db, SOURCES),
      reporters: prepareCounting(db, REPORTERS),
      names: prepareCounting(db, NAMES),
    };
  }

  /** Adds everything in a rollup. */
  add(_tx: Tx, rollup: Rollup): void {
    const rows = rowsOf(rollup, 1);
    for (const table of TABLES) this.#tables[table].add(rows[table]);
  }

  /** Subtracts everything in a rollup. Rows of which nothing is left are removed. */
  subtract(_tx: Tx, rollup: Rollup): void {
    const rows = rowsOf(rollup, -1);
    for (const table of TABLES) {
      this.#tables[table].add(rows[table]);
      this.#tables[table].dropEmpty(rows[table]);
    }
  }

  addSource(_tx: Tx, key: CountKey<number>, counts: Counts, sign: 1 | -1 = 1): void {
    const rows = [sourceRow(key, counts, sign)];
    this.#tables.sources.add(rows);
    if (sign < 0) this.#tables.sources.dropEmpty(rows);
  }

  /** Whether a reporter that is not trusted is counted with at least so many messages. */
  isCountedApart({ domain, day, key }: Omit<CountKey<CountedReporter>, "voucher">, messages: number): boolean {
    return this.#sql.reporterHolds.get(domain, day, key.reporter, key.author, messages) !== null;
  }

  isNameCountedOn({ domain, day, key, voucher }: CountKey<string>): boolean {
    return this.#sql.isNameCountedOn.get(domain, day, key, voucher) !== null;
  }

  /** Notes that a report arrived. With `isNews` the alert rules are evaluated for the domain again. */
  touchDomain(_tx: Tx, domain: number, receivedAtMs: number, isNews: boolean): void {
    this.#sql.touchDomain.run(receivedAtMs, isNews ? 1 : 0, domain);
  }
}
