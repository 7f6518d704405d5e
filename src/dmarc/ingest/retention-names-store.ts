import type { Db, Tx } from "../../db/open.ts";

/** The address of a source, and what is known of its reverse name. */
export interface SourceAddressName {
  readonly ip: string;
  readonly name: string | null;
  readonly isConfirmed: boolean;
}

/** A stored source and its address; null for one without. */
export interface AddressedSource {
  readonly key: string;
  readonly address: SourceAddressName | null;
}

/** The address in a stored key; null where there is none. */
const IP = `CASE WHEN key LIKE '* %' THEN NULL WHEN instr(key, ' ') > 0 THEN substr(key, 1, instr(key, ' ') - 1)
  WHEN key LIKE 'ip:%' THEN substr(key, 4) END`;

/** Whether anything is counted under a name (2) of a domain (1). Looks from day to day that are there: the index has the day before the name. */
export const IS_COUNTED = `WITH RECURSIVE days (day) AS (SELECT max(day) FROM dmarc_daily_names WHERE domain = ?1
  UNION ALL SELECT (SELECT max(n.day) FROM dmarc_daily_names n WHERE n.domain = ?1 AND n.day < days.day) FROM days
    WHERE days.day IS NOT NULL)
  SELECT 1 FROM days CROSS JOIN dmarc_daily_names n ON n.domain = ?1 AND n.day = days.day AND n.name = ?2 LIMIT 1`;

/** Statements that look for names, words and addresses that nothing speaks of any more, a limited number at a time. */
export const createNameRetentionStore = ({ sqlite }: Db) => {
  const oldNames = sqlite.prepare<{ name: string }, [number, string, number, number]>(
    "SELECT name FROM dmarc_names WHERE domain = ? AND name > ? AND first_day < ? ORDER BY name LIMIT ?",
  );
  const isCounted = sqlite.prepare<unknown, [number, string]>(IS_COUNTED);
  const dropName = sqlite.prepare("DELETE FROM dmarc_names WHERE domain = ? AND name = ?");
  const words = sqlite.prepare<{ key: string }, [number, string, number, number]>(
    "SELECT key FROM dmarc_source_words WHERE domain = ? AND key > ? AND at_ms < ? ORDER BY key LIMIT ?",
  );
  const dropWord = sqlite.prepare("DELETE FROM dmarc_source_words WHERE domain = ? AND key = ? AND at_ms < ?");
  const sources = sqlite.prepare<
    { key: string; ip: string | null; name: string | null; isConfirmed: number | null },
    [number, string, number]
  >(
    `SELECT s.key, s.ip, r.name, r.is_confirmed AS isConfirmed FROM
      (SELECT key, ${IP} AS ip FROM dmarc_sources WHERE domain = ? AND key > ? ORDER BY key LIMIT ?) s
      LEFT JOIN dmarc_reverse_names r ON r.ip = s.ip ORDER BY s.key`,
  );
  const due = sqlite.prepare<{ ip: string }, [number, number]>(
    "SELECT ip FROM dmarc_reverse_names WHERE due_at_ms < ? ORDER BY due_at_ms LIMIT ?",
  );
  const addresses = sqlite.prepare<{ number: number; ip: string | null }, [number, number]>(
    `SELECT number, ${IP} AS ip FROM dmarc_sources WHERE number > ? ORDER BY number LIMIT ?`,
  );
  const dropReverseName = sqlite.prepare("DELETE FROM dmarc_reverse_names WHERE ip = ? AND due_at_ms < ?");

  return {
    /** Names of a domain after one, in their order, that were first seen before a day. */
    namesBefore: (domain: number, after: string, day: number, limit: number): string[] =>
      oldNames.all(domain, after, day, limit).map(({ name }) => name),
    /** Whether anything is counted under a name. */
    isCounted: (domain: number, name: string): boolean => isCounted.get(domain, name) !== null,
    removeName: (_tx: Tx, domain: number, name: string): void => void dropName.run(domain, name),

    /** Keys after one, in their order, that the user classified before a time. */
    wordsBefore: (domain: number, after: string, beforeMs: number, limit: number): string[] =>
      words.all(domain, after, beforeMs, limit).map(({ key }) => key),
    /** Removes a classification, unless it was made again. */
    removeWord: (_tx: Tx, domain: number, key: string, beforeMs: number): void =>
      void dropWord.run(domain, key, beforeMs),
    /** Sources of a domain after a key, in the order of their keys. */
    sourcesAfter: (domain: number, after: string, limit: number): AddressedSource[] =>
      sources.all(domain, after, limit).map(({ key, ip, name, isConfirmed }) => ({
        key,
        address: ip === null ? null : { ip, name, isConfirmed: isConfirmed === 1 },
      })),

    /** Addresses whose names are to be asked for before a time, the next ones first. */
    reverseNamesDue: (beforeMs: number, limit: number): string[] => due.all(beforeMs, limit).map(({ ip }) => ip),
    /** The addresses of sources of all domains after one, in the order of their numbers. */
    addressesAfter: (number: number, limit: number) => addresses.all(number, limit),
    /** Removes a reverse name, unless it was asked for meanwhile. */
    removeReverseName: (_tx: Tx, ip: string, beforeMs: number): void => void dropReverseName.run(ip, beforeMs),
  };
};

export type NameRetentionStore = ReturnType<typeof createNameRetentionStore>;
