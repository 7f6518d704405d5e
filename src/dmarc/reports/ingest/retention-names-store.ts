import type { Db, Tx } from "../../../foundation/db/open.ts";

/** The address of a source, and what is known of its reverse name. */
export interface SourceAddressName {
  readonly ip: string;
  readonly name: string | null;
  readonly isConfirmed: boolean;
}

/** A stored source and its address; null for a source without one. */
export interface AddressedSource {
  readonly key: string;
  readonly address: SourceAddressName | null;
}

/** The address in a stored key; null where there is none. */
const IP = `CASE WHEN key LIKE '* %' THEN NULL WHEN instr(key, ' ') > 0 THEN substr(key, 1, instr(key, ' ') - 1)
  WHEN key LIKE 'ip:%' THEN substr(key, 4) END`;

/** Whether anything is counted under a name (2) of a domain (1), day by day: the index has the day before the name. */
export const IS_COUNTED = `WITH RECURSIVE days (day) AS (SELECT max(day) FROM dmarc_daily_names WHERE domain = ?1
  UNION ALL SELECT (SELECT max(n.day) FROM dmarc_daily_names n WHERE n.domain = ?1 AND n.day < days.day) FROM days
    WHERE days.day IS NOT NULL)
  SELECT 1 FROM days CROSS JOIN dmarc_daily_names n ON n.domain = ?1 AND n.day = days.day AND n.name = ?2 LIMIT 1`;

interface SourceWithName {
  readonly key: string;
  readonly ip: string | null;
  readonly name: string | null;
  readonly isConfirmed: 0 | 1 | null;
}

const prepareStatements = ({ sqlite }: Pick<Db, "sqlite">) => ({
  namesBefore: sqlite.prepare<{ name: string }, [number, string, number, number]>(
    "SELECT name FROM dmarc_names WHERE domain = ? AND name > ? AND first_day < ? ORDER BY name LIMIT ?",
  ),
  isCounted: sqlite.prepare<unknown, [number, string]>(IS_COUNTED),
  removeName: sqlite.prepare("DELETE FROM dmarc_names WHERE domain = ? AND name = ?"),
  classifiedBefore: sqlite.prepare<{ key: string }, [number, string, number, number]>(
    "SELECT key FROM dmarc_source_words WHERE domain = ? AND key > ? AND at_ms < ? ORDER BY key LIMIT ?",
  ),
  removeClassification: sqlite.prepare("DELETE FROM dmarc_source_words WHERE domain = ? AND key = ? AND at_ms < ?"),
  sources: sqlite.prepare<SourceWithName, [number, string, number]>(
    `SELECT s.key, s.ip, r.name, r.is_confirmed AS isConfirmed FROM
      (SELECT key, ${IP} AS ip FROM dmarc_sources WHERE domain = ? AND key > ? ORDER BY key LIMIT ?) s
      LEFT JOIN dmarc_reverse_names r ON r.ip = s.ip ORDER BY s.key`,
  ),
  reverseNamesDue: sqlite.prepare<{ ip: string }, [number, number]>(
    "SELECT ip FROM dmarc_reverse_names WHERE due_at_ms < ? ORDER BY due_at_ms LIMIT ?",
  ),
  addresses: sqlite.prepare<{ number: number; ip: string | null }, [number, number]>(
    `SELECT number, ${IP} AS ip FROM dmarc_sources WHERE number > ? ORDER BY number LIMIT ?`,
  ),
  removeReverseName: sqlite.prepare("DELETE FROM dmarc_reverse_names WHERE ip = ? AND due_at_ms < ?"),
});

/** Finds and removes names, classifications and reverse names that nothing refers to any more, a few at a time. */
export class NameRetentionStore {
  readonly #sql: ReturnType<typeof prepareStatements>;

  constructor(db: Pick<Db, "sqlite">) {
    this.#sql = prepareStatements(db);
  }

  /** header_from domains after one, in their order, that were first seen before a day. */
  namesBefore(domain: number, after: string, day: number, limit: number): string[] {
    return this.#sql.namesBefore.all(domain, after, day, limit).map(({ name }) => name);
  }

  /** Whether anything is counted under a header_from domain. */
  isCounted(domain: number, name: string): boolean {
    return this.#sql.isCounted.get(domain, name) !== null;
  }

  removeName(_tx: Tx, domain: number, name: string): void {
    this.#sql.removeName.run(domain, name);
  }

  /** Keys after one, in their order, that the user classified before a time. */
  classifiedBefore(domain: number, after: string, beforeMs: number, limit: number): string[] {
    return this.#sql.classifiedBefore.all(domain, after, beforeMs, limit).map(({ key }) => key);
  }

  /** Removes a classification from before a time. */
  removeClassification(_tx: Tx, domain: number, key: string, beforeMs: number): void {
    this.#sql.removeClassification.run(domain, key, beforeMs);
  }

  /** Sources of a domain after a key, in the order of their keys. */
  sourcesAfter(domain: number, after: string, limit: number): AddressedSource[] {
    return this.#sql.sources.all(domain, after, limit).map(({ key, ip, name, isConfirmed }) => ({
      key,
      address: ip === null ? null : { ip, name, isConfirmed: isConfirmed === 1 },
    }));
  }

  /** Addresses whose reverse names are due for another lookup before a time, the earliest first. */
  reverseNamesDue(beforeMs: number, limit: number): string[] {
    return this.#sql.reverseNamesDue.all(beforeMs, limit).map(({ ip }) => ip);
  }

  /** The addresses of sources of all domains after one, in the order of their numbers. */
  addressesAfter(number: number, limit: number): { number: number; ip: string | null }[] {
    return this.#sql.addresses.all(number, limit);
  }

  /** Removes a reverse name, unless it was looked up meanwhile. */
  removeReverseName(_tx: Tx, ip: string, beforeMs: number): void {
    this.#sql.removeReverseName.run(ip, beforeMs);
  }
}
