import type { Db, Tx } from "../../../foundation/db/open.ts";
import { IS_COUNTED } from "./retention-store.ts";
import { statements } from "../../../foundation/db/statements.ts";

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
const dayElsewhere = (order: "ASC" | "DESC"): string =>
  `(SELECT day FROM dmarc_records WHERE source = ?1 AND report <> ?2 ORDER BY day ${order} LIMIT 1)`;

const prepareStatements = ({ sqlite }: Pick<Db, "sqlite">) => {
  const number = <P extends (string | number)[]>(sql: string) => sqlite.prepare<{ value: number }, P>(sql);
  return statements({
    find: () =>
      sqlite.prepare<Omit<SeenSource, "isVouched"> & { readonly isVouched: 0 | 1 }, [number, string]>(
        "SELECT number, first_day AS firstDay, last_day AS lastDay, is_vouched AS isVouched FROM dmarc_sources WHERE domain = ? AND key = ?",
      ),
    insert: () =>
      sqlite.prepare(
        "INSERT INTO dmarc_sources (domain, key, first_day, last_day, first_seen_at_ms, is_reviewed, is_vouched) VALUES (?, ?, ?, ?, ?, ?, ?)",
      ),
    vouch: () => sqlite.prepare("UPDATE dmarc_sources SET is_vouched = 1 WHERE number = ?"),
    extend: () => sqlite.prepare("UPDATE dmarc_sources SET first_day = ?, last_day = ? WHERE number = ?"),
    hasLegacy: () =>
      sqlite.prepare<unknown, [number]>(
        "SELECT 1 FROM dmarc_sources INDEXED BY dmarc_sources_legacy WHERE domain = ? AND instr(key, ' ') = 0 LIMIT 1",
      ),
    findLegacy: () =>
      sqlite.prepare<{ atMs: number; isReviewed: 0 | 1 }, [number, string]>(
        `SELECT first_seen_at_ms AS atMs, is_reviewed AS isReviewed FROM dmarc_sources s WHERE domain = ? AND key = ?
        AND EXISTS (SELECT 1 FROM dmarc_records r WHERE r.source = s.number)`,
      ),
    queueAddress: () =>
      sqlite.prepare(
        "INSERT OR IGNORE INTO dmarc_reverse_names (ip, name, is_confirmed, due_at_ms, asked_at_ms) VALUES (?, NULL, 0, ?, NULL)",
      ),
    count: () => number<[number]>("SELECT count(*) AS value FROM dmarc_sources WHERE domain = ?"),
    countOverflow: () =>
      number<[number]>("SELECT count(*) AS value FROM dmarc_sources WHERE domain = ? AND key >= '* ' AND key < '*!'"),
    countQueued: () =>
      number<[number, number]>(
        "SELECT count(*) AS value FROM (SELECT 1 FROM dmarc_reverse_names WHERE due_at_ms <= ? LIMIT ?)",
      ),
    removeUnseen: () =>
      sqlite.prepare(
        "DELETE FROM dmarc_sources WHERE number = ?1 AND NOT EXISTS (SELECT 1 FROM dmarc_records WHERE source = ?1 AND report <> ?2)",
      ),
    shrink: () =>
      sqlite.prepare(
        `UPDATE dmarc_sources SET first_day = iif(first_day = ?3, ${dayElsewhere("ASC")}, first_day),
        last_day = iif(last_day = ?3, ${dayElsewhere("DESC")}, last_day) WHERE number = ?1`,
      ),
    firstDayOfName: () =>
      number<[number, string]>("SELECT first_day AS value FROM dmarc_names WHERE domain = ? AND name = ?"),
    countNames: () => number<[number]>("SELECT count(*) AS value FROM dmarc_names WHERE domain = ?"),
    insertName: () =>
      sqlite.prepare("INSERT INTO dmarc_names (domain, name, first_day, first_seen_at_ms) VALUES (?, ?, ?, ?)"),
    setFirstDayOfName: () => sqlite.prepare("UPDATE dmarc_names SET first_day = ? WHERE domain = ? AND name = ?"),
    isNameCounted: () => sqlite.prepare<unknown, [number, string]>(IS_COUNTED),
    removeName: () => sqlite.prepare("DELETE FROM dmarc_names WHERE domain = ? AND name = ?"),
  });
};

/** The sources and the header_from domains that reports about a domain name. `domain` is the `number` of a domain. */
export class SeenSourceStore {
  readonly #sql;

  constructor(db: Pick<Db, "sqlite">) {
    this.#sql = prepareStatements(db);
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
  forgetReport(_tx: Tx, number: number, { report, day }: { readonly report: number; readonly day: number }): void {
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

  insertName(_tx: Tx, domain: number, name: string, seen: { readonly day: number; readonly atMs: number }): void {
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
