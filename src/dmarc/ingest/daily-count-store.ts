import type { Db, Tx } from "../../db/open.ts";
import type { CountedDay, CountedReporter, Counts, NameCounts, ReporterCounts, Rollup } from "./rollup.ts";

/** Where something is counted: domain, day, trust, and a source, a reporter or a header_from domain. */
export interface CountKey<K> extends CountedDay {
  readonly domain: number;
  readonly key: K;
}

const prepareStatements = ({ sqlite }: Pick<Db, "sqlite">) => ({
  addSource: sqlite.prepare(
    `INSERT INTO dmarc_daily (domain, day, source, messages, aligned, aligned_dkim, aligned_spf, forwarded, authenticated,
      quarantined, rejected, is_trusted) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET messages = messages + excluded.messages,
      aligned = aligned + excluded.aligned, aligned_dkim = aligned_dkim + excluded.aligned_dkim, aligned_spf = aligned_spf + excluded.aligned_spf,
      forwarded = forwarded + excluded.forwarded, authenticated = authenticated + excluded.authenticated,
      quarantined = quarantined + excluded.quarantined, rejected = rejected + excluded.rejected`,
  ),
  addReporter: sqlite.prepare(
    `INSERT INTO dmarc_daily_reporters (domain, day, reporter, author, reports, messages, aligned, is_trusted) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT DO UPDATE SET reports = reports + excluded.reports, messages = messages + excluded.messages, aligned = aligned + excluded.aligned`,
  ),
  addName: sqlite.prepare(
    `INSERT INTO dmarc_daily_names (domain, day, name, messages, aligned, is_trusted) VALUES (?, ?, ?, ?, ?, ?)
      ON CONFLICT DO UPDATE SET messages = messages + excluded.messages, aligned = aligned + excluded.aligned`,
  ),
  dropSource: sqlite.prepare(
    "DELETE FROM dmarc_daily WHERE domain = ? AND day = ? AND source = ? AND is_trusted = ? AND messages <= 0",
  ),
  dropReporter: sqlite.prepare(
    "DELETE FROM dmarc_daily_reporters WHERE domain = ? AND day = ? AND reporter = ? AND author = ? AND is_trusted = ? AND reports <= 0",
  ),
  dropName: sqlite.prepare(
    "DELETE FROM dmarc_daily_names WHERE domain = ? AND day = ? AND name = ? AND is_trusted = ? AND messages <= 0",
  ),
  reporterHolds: sqlite.prepare<unknown, [number, number, string, string, number]>(
    `SELECT 1 FROM dmarc_daily_reporters WHERE domain = ? AND day = ? AND reporter = ? AND author = ? AND is_trusted = 0
      AND reports > 0 AND messages >= ?`,
  ),
  isNameCountedOn: sqlite.prepare<unknown, [number, number, string, boolean]>(
    "SELECT 1 FROM dmarc_daily_names WHERE domain = ? AND day = ? AND name = ? AND is_trusted = ?",
  ),
  touchDomain: sqlite.prepare(
    "UPDATE dmarc_domains SET last_report_at_ms = max(coalesce(last_report_at_ms, 0), ?), is_unreviewed = max(is_unreviewed, ?) WHERE number = ?",
  ),
});

/** What is counted of reports by day: per source, per reporter and per header_from domain. */
export class DailyCountStore {
  readonly #sql: ReturnType<typeof prepareStatements>;

  constructor(db: Pick<Db, "sqlite">) {
    this.#sql = prepareStatements(db);
  }

  /** Adds everything in a rollup. */
  add(tx: Tx, rollup: Rollup): void {
    this.#apply(tx, rollup, 1);
  }

  /** Subtracts everything in a rollup. Rows of which nothing is left are removed. */
  subtract(tx: Tx, rollup: Rollup): void {
    this.#apply(tx, rollup, -1);
  }

  addSource(_tx: Tx, { domain, day, key, isTrusted }: CountKey<number>, counts: Counts, sign: 1 | -1 = 1): void {
    const { messages, aligned, alignedDkim, alignedSpf, forwarded, authenticated, quarantined, rejected } = counts;
    const figures = [messages, aligned, alignedDkim, alignedSpf, forwarded, authenticated, quarantined, rejected];
    this.#sql.addSource.run(domain, day, key, ...figures.map((figure) => sign * figure), isTrusted);
    if (sign < 0) this.#sql.dropSource.run(domain, day, key, isTrusted);
  }

  /** Whether a reporter that is not trusted is counted with at least so many messages. */
  isCountedApart({ domain, day, key }: Omit<CountKey<CountedReporter>, "isTrusted">, messages: number): boolean {
    return this.#sql.reporterHolds.get(domain, day, key.reporter, key.author, messages) !== null;
  }

  isNameCountedOn({ domain, day, key, isTrusted }: CountKey<string>): boolean {
    return this.#sql.isNameCountedOn.get(domain, day, key, isTrusted) !== null;
  }

  /** Notes that a report arrived. With `isNews` the alert rules are evaluated for the domain again. */
  touchDomain(_tx: Tx, domain: number, receivedAtMs: number, isNews: boolean): void {
    this.#sql.touchDomain.run(receivedAtMs, isNews ? 1 : 0, domain);
  }

  #apply(tx: Tx, rollup: Rollup, sign: 1 | -1): void {
    for (const [domain, days] of rollup) {
      for (const { day, isTrusted, sources, reporters, names } of days.values()) {
        const where = { domain, day, isTrusted };
        for (const [key, counts] of sources) this.addSource(tx, { ...where, key }, counts, sign);
        for (const counts of reporters.values()) this.#addReporter({ ...where, key: counts }, counts, sign);
        for (const [key, counts] of names) this.#addName({ ...where, key }, counts, sign);
      }
    }
  }

  #addReporter(
    { domain, day, key, isTrusted }: CountKey<CountedReporter>,
    { reports, messages, aligned }: ReporterCounts,
    sign: 1 | -1,
  ): void {
    const { reporter, author } = key;
    this.#sql.addReporter.run(
      ...[domain, day, reporter, author, sign * reports, sign * messages, sign * aligned],
      isTrusted,
    );
    if (sign < 0) this.#sql.dropReporter.run(domain, day, reporter, author, isTrusted);
  }

  #addName({ domain, day, key, isTrusted }: CountKey<string>, { messages, aligned }: NameCounts, sign: 1 | -1): void {
    this.#sql.addName.run(domain, day, key, sign * messages, sign * aligned, isTrusted);
    if (sign < 0) this.#sql.dropName.run(domain, day, key, isTrusted);
  }
}
