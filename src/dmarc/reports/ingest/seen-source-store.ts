import type { Db, Tx } from "../../../foundation/db/open.ts";
import { IS_COUNTED } from "./retention-store.ts";
import { prepareRowInsert, rows, sqlStatements } from "../../../foundation/db/statements.ts";
import type { SQLQueryBindings } from "bun:sqlite";
import type { CountedDay, CountedReporter, Counts, Rollup } from "./rollup.ts";

/** A source as far as counting needs it. */
export interface SeenSource {
  readonly number: number;
  readonly firstDay: number;
  readonly lastDay: number;
  /** Whether a trusted report names it. */
  readonly isVouched: boolean;
}

/** How a new source was first seen. */
export interface FirstSight {
  readonly day: number;
  readonly atMs: number;
  /** Whether the alert rules have evaluated it. */
  readonly isReviewed: boolean;
  readonly isVouched: boolean;
}

/** Days of the records of a source (1) in other reports than one (2); the first or the last. */
const dayElsewhere = (order: "ASC" | "DESC") =>
  `(SELECT day FROM dmarc_records WHERE source = ?1 AND report <> ?2 ORDER BY day ${order} LIMIT 1)`;

const number = <P extends (string | number)[]>(text: string) => rows<{ value: number }, P>(text);

const STATEMENTS = {
  find: rows<Omit<SeenSource, "isVouched"> & { readonly isVouched: 0 | 1 }, [number, string]>(
    "SELECT number, first_day AS firstDay, last_day AS lastDay, is_vouched AS isVouched FROM dmarc_sources WHERE domain = ? AND key = ?",
  ),
  insert:
    "INSERT INTO dmarc_sources (domain, key, first_day, last_day, first_seen_at_ms, is_reviewed, is_vouched) VALUES (?, ?, ?, ?, ?, ?, ?)",
  vouch: "UPDATE dmarc_sources SET is_vouched = 1 WHERE number = ?",
  extend: "UPDATE dmarc_sources SET first_day = ?, last_day = ? WHERE number = ?",
  hasLegacy: rows<unknown, [number]>(
    "SELECT 1 FROM dmarc_sources INDEXED BY dmarc_sources_legacy WHERE domain = ? AND instr(key, ' ') = 0 LIMIT 1",
  ),
  findLegacy: rows<{ atMs: number; isReviewed: 0 | 1 }, [number, string]>(
    `SELECT first_seen_at_ms AS atMs, is_reviewed AS isReviewed FROM dmarc_sources s WHERE domain = ? AND key = ?
        AND EXISTS (SELECT 1 FROM dmarc_records r WHERE r.source = s.number)`,
  ),
  queueAddress:
    "INSERT OR IGNORE INTO dmarc_reverse_names (ip, name, is_confirmed, due_at_ms, asked_at_ms) VALUES (?, NULL, 0, ?, NULL)",
  count: number<[number]>("SELECT count(*) AS value FROM dmarc_sources WHERE domain = ?"),
  countOverflow: number<[number]>(
    "SELECT count(*) AS value FROM dmarc_sources WHERE domain = ? AND key >= '* ' AND key < '*!'",
  ),
  countQueued: number<[number, number]>(
    "SELECT count(*) AS value FROM (SELECT 1 FROM dmarc_reverse_names WHERE due_at_ms <= ? LIMIT ?)",
  ),
  removeUnseen:
    "DELETE FROM dmarc_sources WHERE number = ?1 AND NOT EXISTS (SELECT 1 FROM dmarc_records WHERE source = ?1 AND report <> ?2)",
  shrink: `UPDATE dmarc_sources SET first_day = iif(first_day = ?3, ${dayElsewhere("ASC")}, first_day),
        last_day = iif(last_day = ?3, ${dayElsewhere("DESC")}, last_day) WHERE number = ?1`,
  firstDayOfName: number<[number, string]>("SELECT first_day AS value FROM dmarc_names WHERE domain = ? AND name = ?"),
  countNames: number<[number]>("SELECT count(*) AS value FROM dmarc_names WHERE domain = ?"),
  insertName: "INSERT INTO dmarc_names (domain, name, first_day, first_seen_at_ms) VALUES (?, ?, ?, ?)",
  setFirstDayOfName: "UPDATE dmarc_names SET first_day = ? WHERE domain = ? AND name = ?",
  isNameCounted: rows<unknown, [number, string]>(IS_COUNTED),
  removeName: "DELETE FROM dmarc_names WHERE domain = ? AND name = ?",
};

/** The sources and the header_from domains that reports about a domain name. `domain` is the `number` of a domain. */
export class SeenSourceStore {
  readonly #sql;

  constructor(db: Db) {
    this.#sql = sqlStatements(db, STATEMENTS);
  }

  find(domain: number, key: string): SeenSource | null {
    const found = this.#sql.find.get(domain, key);
    return found === null ? null : { ...found, isVouched: found.isVouched === 1 };
  }

  /** Stores a source and returns its number. */
  insert(_tx: Tx, domain: number, key: string, { day, atMs, isReviewed, isVouched }: FirstSight): number {
    const flags = [isReviewed ? 1 : 0, isVouched ? 1 : 0];
    return Number(this.#sql.insert.run(domain, key, day, day, atMs, ...flags).lastInsertRowid);
  }

  /** Notes that a trusted report names the source. */
  vouch(_tx: Tx, number: number): void {
    this.#sql.vouch.run(number);
  }

  /** Writes the days of a source. */
  extend(_tx: Tx, { number, firstDay, lastDay }: Omit<SeenSource, "isVouched">): void {
    this.#sql.extend.run(firstDay, lastDay, number);
  }

  /** Whether the domain has sources that an earlier version stored, without an address. */
  hasLegacy(domain: number): boolean {
    return this.#sql.hasLegacy.get(domain) !== null;
  }

  /** When a source of an earlier version that still has records was first seen; null when there is none. */
  findLegacy(domain: number, key: string): Pick<FirstSight, "atMs" | "isReviewed"> | null {
    const found = this.#sql.findLegacy.get(domain, key);
    return found === null ? null : { atMs: found.atMs, isReviewed: found.isReviewed === 1 };
  }

  /** How many sources the domain has, those without an address included. */
  count(domain: number): number {
    return this.#sql.count.get(domain)?.value ?? 0;
  }

  /** How many sources without an address the domain has. */
  countOverflow(domain: number): number {
    return this.#sql.countOverflow.get(domain)?.value ?? 0;
  }

  /** Removes a source that only this report names; of others it corrects the days. `day`: the day of the report. */
  withdrawReport(_tx: Tx, number: number, { report, day }: { report: number; day: number }): void {
    if (this.#sql.removeUnseen.run(number, report).changes === 0) this.#sql.shrink.run(number, report, day);
  }

  /** Queues an address for DNS lookups; false when it is known already. */
  queueAddress(_tx: Tx, ip: string, dueAtMs: number): boolean {
    return this.#sql.queueAddress.run(ip, dueAtMs).changes > 0;
  }

  /** How many addresses wait for DNS lookups; `max` when it is more. */
  countQueued(nowMs: number, max: number): number {
    return this.#sql.countQueued.get(nowMs, max)?.value ?? 0;
  }

  /** The first day of a header_from domain; null for an unknown one. */
  firstDayOfName(domain: number, name: string): number | null {
    return this.#sql.firstDayOfName.get(domain, name)?.value ?? null;
  }

  countNames(domain: number): number {
    return this.#sql.countNames.get(domain)?.value ?? 0;
  }

  insertName(_tx: Tx, domain: number, name: string, seen: { day: number; atMs: number }): void {
    this.#sql.insertName.run(domain, name, seen.day, seen.atMs);
  }

  setFirstDayOfName(_tx: Tx, domain: number, name: string, firstDay: number): void {
    this.#sql.setFirstDayOfName.run(firstDay, domain, name);
  }

  /** Removes a header_from domain under which nothing is counted. */
  removeUncountedName(_tx: Tx, domain: number, name: string): void {
    if (this.#sql.isNameCounted.get(domain, name) === null) this.#sql.removeName.run(domain, name);
  }
}

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

/** From the first report of a domain to its next health check. */
const FIRST_HEALTH_MS = 5 * 60_000;

const DAILY_STATEMENTS = {
  reporterHolds: rows<unknown, [number, number, string, string, number]>(
    `SELECT 1 FROM dmarc_daily_reporters WHERE domain = ? AND day = ? AND reporter = ? AND author = ? AND is_trusted = 0
      AND reports > 0 AND messages >= ?`,
  ),
  isNameCountedOn: rows<unknown, [number, number, string, number]>(
    "SELECT 1 FROM dmarc_daily_names WHERE domain = ? AND day = ? AND name = ? AND is_trusted = ?",
  ),
  planHealth: `UPDATE dmarc_health SET due_at_ms = ?1 WHERE domain = ?2 AND due_at_ms > ?1
    AND (SELECT last_report_at_ms FROM dmarc_domains WHERE number = ?2) IS NULL`,
  noteReport:
    "UPDATE dmarc_domains SET last_report_at_ms = max(coalesce(last_report_at_ms, 0), ?), is_unreviewed = iif(?, 1, is_unreviewed) WHERE number = ?",
};

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

  constructor(db: Db) {
    this.#sql = sqlStatements(db, DAILY_STATEMENTS);
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

  /** Whether an untrusted reporter is counted with at least this number of messages. */
  isCountedApart({ domain, day, key }: Omit<CountKey<CountedReporter>, "voucher">, messages: number): boolean {
    return this.#sql.reporterHolds.get(domain, day, key.reporter, key.author, messages) !== null;
  }

  isNameCountedOn({ domain, day, key, voucher }: CountKey<string>): boolean {
    return this.#sql.isNameCountedOn.get(domain, day, key, voucher) !== null;
  }

  /**
   * Notes that a report arrived. With `isNews` the alert rules are evaluated for the domain again. The first one names selectors, so the
   * health of the domain is checked soon, when the other reports of an import are stored.
   */
  noteReport(_tx: Tx, domain: number, receivedAtMs: number, isNews: boolean): void {
    this.#sql.planHealth.run(receivedAtMs + FIRST_HEALTH_MS, domain);
    this.#sql.noteReport.run(receivedAtMs, isNews ? 1 : 0, domain);
  }
}
