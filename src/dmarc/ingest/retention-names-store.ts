import type { Db, Tx } from "../../db/open.ts";

/** An address that is a source, and what is known of its reverse name. */
export interface BareAddress {
  readonly ip: string;
  readonly name: string | null;
  readonly isConfirmed: boolean;
}

/** Where a walk through the addresses kept of sources stands. */
export interface KeptAddress {
  readonly source: number;
  readonly ip: string;
}

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
    `SELECT key FROM dmarc_source_words WHERE domain = ? AND key > ? AND at_ms < ? AND (key GLOB 'net:*' OR key GLOB 'ptr:*')
      ORDER BY key LIMIT ?`,
  );
  const dropWord = sqlite.prepare("DELETE FROM dmarc_source_words WHERE domain = ? AND key = ? AND at_ms < ?");
  const bare = sqlite.prepare<
    { ip: string; name: string | null; isConfirmed: number | null },
    [number, string, number]
  >(
    `SELECT substr(s.key, 4) AS ip, r.name, r.is_confirmed AS isConfirmed FROM dmarc_sources s
      LEFT JOIN dmarc_reverse_names r ON r.ip = substr(s.key, 4)
      WHERE s.domain = ? AND s.key > 'ip:' || ? AND s.key < 'ip;' ORDER BY s.key LIMIT ?`,
  );
  const due = sqlite.prepare<{ ip: string }, [number, number]>(
    "SELECT ip FROM dmarc_reverse_names WHERE due_at_ms < ? ORDER BY due_at_ms LIMIT ?",
  );
  const sources = sqlite.prepare<{ number: number; key: string }, [number, number]>(
    "SELECT number, key FROM dmarc_sources WHERE number > ? ORDER BY number LIMIT ?",
  );
  const kept = sqlite.prepare<KeptAddress, [number, string, number]>(
    "SELECT source, ip FROM dmarc_source_addresses WHERE (source, ip) > (?, ?) ORDER BY source, ip LIMIT ?",
  );
  const dropReverseName = sqlite.prepare("DELETE FROM dmarc_reverse_names WHERE ip = ? AND due_at_ms < ?");

  return {
    /** Names of a domain after one, in their order, that were first seen before a day. */
    namesBefore: (domain: number, after: string, day: number, limit: number): string[] =>
      oldNames.all(domain, after, day, limit).map(({ name }) => name),
    /** Whether anything is counted under a name. */
    isCounted: (domain: number, name: string): boolean => isCounted.get(domain, name) !== null,
    removeName: (_tx: Tx, domain: number, name: string): void => void dropName.run(domain, name),

    /** Keys `net:` and `ptr:` after one, in their order, that the user spoke of before a time. */
    wordsBefore: (domain: number, after: string, beforeMs: number, limit: number): string[] =>
      words.all(domain, after, beforeMs, limit).map(({ key }) => key),
    /** Removes a word, unless it was said again. */
    removeWord: (_tx: Tx, domain: number, key: string, beforeMs: number): void =>
      void dropWord.run(domain, key, beforeMs),
    /** The addresses that are sources of a domain, after one, in their order. */
    bareAddressesAfter: (domain: number, after: string, limit: number): BareAddress[] =>
      bare.all(domain, after, limit).map((row) => ({ ...row, isConfirmed: row.isConfirmed === 1 })),

    /** Addresses whose names are to be asked for before a time, the next ones first. */
    reverseNamesDue: (beforeMs: number, limit: number): string[] => due.all(beforeMs, limit).map(({ ip }) => ip),
    /** Sources of all domains after one, in the order of their numbers. */
    sourcesAfter: (number: number, limit: number) => sources.all(number, limit),
    /** Addresses kept of sources of all domains after one. */
    addressesAfter: ({ source, ip }: KeptAddress, limit: number): KeptAddress[] => kept.all(source, ip, limit),
    /** Removes a reverse name, unless it was asked for meanwhile. */
    removeReverseName: (_tx: Tx, ip: string, beforeMs: number): void => void dropReverseName.run(ip, beforeMs),
  };
};

export type NameRetentionStore = ReturnType<typeof createNameRetentionStore>;
