import type { Db, Tx } from "../../db/open.ts";
import { IS_COUNTED } from "./retention-names-store.ts";
import type { CountedDay, CountedReporter, Counts, NameCounts, ReporterCounts } from "./rollup.ts";

/** A source as far as counting needs to know it. */
export interface KnownSource {
  readonly number: number;
  readonly firstDay: number;
  readonly lastDay: number;
}

/** How a source was first seen. */
export interface FirstSight {
  readonly day: number;
  readonly atMs: number;
  /** Whether the alert rules have looked at it. */
  readonly isReviewed: boolean;
  /** Whether the report is trusted. */
  readonly isVouched: boolean;
}

/** A place in a rollup. */
export interface RollupKey<K> extends CountedDay {
  readonly domain: number;
  readonly key: K;
}

const COUNT = `INSERT INTO dmarc_daily (domain, day, source, messages, aligned, aligned_dkim, aligned_spf, forwarded, authenticated,
  quarantined, rejected, is_trusted) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET messages = messages + excluded.messages,
  aligned = aligned + excluded.aligned, aligned_dkim = aligned_dkim + excluded.aligned_dkim, aligned_spf = aligned_spf + excluded.aligned_spf,
  forwarded = forwarded + excluded.forwarded, authenticated = authenticated + excluded.authenticated,
  quarantined = quarantined + excluded.quarantined, rejected = rejected + excluded.rejected`;

const COUNT_REPORTER = `INSERT INTO dmarc_daily_reporters (domain, day, reporter, author, reports, messages, aligned, is_trusted) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
  ON CONFLICT DO UPDATE SET reports = reports + excluded.reports, messages = messages + excluded.messages, aligned = aligned + excluded.aligned`;

const COUNT_NAME = `INSERT INTO dmarc_daily_names (domain, day, name, messages, aligned, is_trusted) VALUES (?, ?, ?, ?, ?, ?)
  ON CONFLICT DO UPDATE SET messages = messages + excluded.messages, aligned = aligned + excluded.aligned`;

/** The opposite of `COUNT`. */
const TAKE_BACK = `UPDATE dmarc_daily SET messages = messages - ?, aligned = aligned - ?, aligned_dkim = aligned_dkim - ?,
  aligned_spf = aligned_spf - ?, forwarded = forwarded - ?, authenticated = authenticated - ?, quarantined = quarantined - ?,
  rejected = rejected - ? WHERE domain = ? AND day = ? AND source = ? AND is_trusted = ?`;

const TAKE_BACK_REPORTER = `UPDATE dmarc_daily_reporters SET reports = reports - ?, messages = messages - ?, aligned = aligned - ?
  WHERE domain = ? AND day = ? AND reporter = ? AND author = ? AND is_trusted = ?`;

const TAKE_BACK_NAME = `UPDATE dmarc_daily_names SET messages = messages - ?, aligned = aligned - ?
  WHERE domain = ? AND day = ? AND name = ? AND is_trusted = ?`;

/** What is counted of reports: sources, names, and the rollups by day. */
export const createCountStore = ({ sqlite }: Db) => {
  const source = sqlite.prepare<KnownSource & { readonly isVouched: 0 | 1 }, [number, string]>(
    "SELECT number, first_day AS firstDay, last_day AS lastDay, is_vouched AS isVouched FROM dmarc_sources WHERE domain = ? AND key = ?",
  );
  const insertSource = sqlite.prepare(
    "INSERT INTO dmarc_sources (domain, key, first_day, last_day, first_seen_at_ms, is_reviewed, is_vouched) VALUES (?, ?, ?, ?, ?, ?, ?)",
  );
  const vouch = sqlite.prepare("UPDATE dmarc_sources SET is_vouched = 1 WHERE number = ?");
  const extendSource = sqlite.prepare("UPDATE dmarc_sources SET first_day = ?, last_day = ? WHERE number = ?");
  const legacyOf = sqlite.prepare<unknown, [number]>(
    "SELECT 1 FROM dmarc_sources INDEXED BY dmarc_sources_legacy WHERE domain = ? AND instr(key, ' ') = 0 LIMIT 1",
  );
  const legacy = sqlite.prepare<{ atMs: number; isReviewed: 0 | 1 }, [number, string]>(
    `SELECT first_seen_at_ms AS atMs, is_reviewed AS isReviewed FROM dmarc_sources s WHERE domain = ? AND key = ?
      AND EXISTS (SELECT 1 FROM dmarc_records r WHERE r.source = s.number)`,
  );
  const queueAddress = sqlite.prepare(
    "INSERT OR IGNORE INTO dmarc_reverse_names (ip, name, is_confirmed, due_at_ms, asked_at_ms) VALUES (?, NULL, 0, ?, NULL)",
  );
  const countSources = sqlite.prepare<{ count: number }, [number]>(
    "SELECT count(*) AS count FROM dmarc_sources WHERE domain = ?",
  );
  const countOverflow = sqlite.prepare<{ count: number }, [number]>(
    "SELECT count(*) AS count FROM dmarc_sources WHERE domain = ? AND key >= '* ' AND key < '*!'",
  );
  const countWaiting = sqlite.prepare<{ count: number }, [number, number]>(
    "SELECT count(*) AS count FROM (SELECT 1 FROM dmarc_reverse_names WHERE due_at_ms <= ? LIMIT ?)",
  );
  const sourceByNumber = sqlite.prepare<KnownSource, [number]>(
    "SELECT number, first_day AS firstDay, last_day AS lastDay FROM dmarc_sources WHERE number = ?",
  );
  const dayElsewhere = (order: "ASC" | "DESC") =>
    sqlite.prepare<{ day: number }, [number, number]>(
      `SELECT day FROM dmarc_records WHERE source = ? AND report <> ? ORDER BY day ${order} LIMIT 1`,
    );
  const firstElsewhere = dayElsewhere("ASC");
  const lastElsewhere = dayElsewhere("DESC");
  const removeSource = sqlite.prepare("DELETE FROM dmarc_sources WHERE number = ?");
  const isNameCounted = sqlite.prepare<unknown, [number, string]>(IS_COUNTED);
  const isNameCountedOn = sqlite.prepare<unknown, [number, number, string]>(
    "SELECT 1 FROM dmarc_daily_names WHERE domain = ? AND day = ? AND name = ?",
  );
  const removeName = sqlite.prepare("DELETE FROM dmarc_names WHERE domain = ? AND name = ?");
  const reporterHolds = sqlite.prepare<unknown, [number, number, string, string, number]>(
    `SELECT 1 FROM dmarc_daily_reporters WHERE domain = ? AND day = ? AND reporter = ? AND author = ? AND is_trusted = 0
      AND reports > 0 AND messages >= ?`,
  );
  const takeBack = sqlite.prepare(TAKE_BACK);
  const takeBackReporter = sqlite.prepare(TAKE_BACK_REPORTER);
  const takeBackName = sqlite.prepare(TAKE_BACK_NAME);
  const dropCount = sqlite.prepare(
    "DELETE FROM dmarc_daily WHERE domain = ? AND day = ? AND source = ? AND is_trusted = ? AND messages <= 0",
  );
  const dropReporter = sqlite.prepare(
    "DELETE FROM dmarc_daily_reporters WHERE domain = ? AND day = ? AND reporter = ? AND author = ? AND is_trusted = ? AND reports <= 0",
  );
  const dropName = sqlite.prepare(
    "DELETE FROM dmarc_daily_names WHERE domain = ? AND day = ? AND name = ? AND is_trusted = ? AND messages <= 0",
  );
  const firstDayOfName = sqlite.prepare<{ firstDay: number }, [number, string]>(
    "SELECT first_day AS firstDay FROM dmarc_names WHERE domain = ? AND name = ?",
  );
  const countNames = sqlite.prepare<{ count: number }, [number]>(
    "SELECT count(*) AS count FROM dmarc_names WHERE domain = ?",
  );
  const insertName = sqlite.prepare(
    "INSERT INTO dmarc_names (domain, name, first_day, first_seen_at_ms) VALUES (?, ?, ?, ?)",
  );
  const putBackName = sqlite.prepare("UPDATE dmarc_names SET first_day = ? WHERE domain = ? AND name = ?");
  const count = sqlite.prepare(COUNT);
  const countReporter = sqlite.prepare(COUNT_REPORTER);
  const countName = sqlite.prepare(COUNT_NAME);
  const touchDomain = sqlite.prepare(
    "UPDATE dmarc_domains SET last_report_at_ms = max(coalesce(last_report_at_ms, 0), ?), is_unreviewed = max(is_unreviewed, ?) WHERE number = ?",
  );

  return {
    findSource(domain: number, key: string): (KnownSource & Pick<FirstSight, "isVouched">) | null {
      const found = source.get(domain, key);
      return found === null ? null : { ...found, isVouched: found.isVouched === 1 };
    },
    /** Stores a source that a report about `day` names first, and returns its number. */
    insertSource: (_tx: Tx, domain: number, key: string, { day, atMs, isReviewed, isVouched }: FirstSight): number =>
      Number(insertSource.run(domain, key, day, day, atMs, isReviewed ? 1 : 0, isVouched ? 1 : 0).lastInsertRowid),
    /** A trusted report names a source that no such report named before. */
    vouch: (_tx: Tx, number: number): void => void vouch.run(number),
    /** Whether a domain has sources of before they were stored by address. */
    hasLegacySources: (domain: number): boolean => legacyOf.get(domain) !== null,
    /** When a source that still has records was first seen, by its key of before sources were stored by address. */
    findLegacySource(domain: number, key: string): Pick<FirstSight, "atMs" | "isReviewed"> | null {
      const found = legacy.get(domain, key);
      return found === null ? null : { atMs: found.atMs, isReviewed: found.isReviewed === 1 };
    },
    extendSource: (_tx: Tx, { number, firstDay, lastDay }: KnownSource): void =>
      void extendSource.run(firstDay, lastDay, number),

    /** How many sources a domain has. */
    countSources: (domain: number): number => countSources.get(domain)?.count ?? 0,
    /** How many of them stand for many addresses. */
    countOverflowSources: (domain: number): number => countOverflow.get(domain)?.count ?? 0,
    findSourceByNumber: (number: number): KnownSource | null => sourceByNumber.get(number),
    /** The first and the last day that records of other reports tell of a source; null when none does. */
    daysElsewhere(number: number, report: number): Pick<KnownSource, "firstDay" | "lastDay"> | null {
      const first = firstElsewhere.get(number, report);
      const last = first === null ? null : lastElsewhere.get(number, report);
      return first === null || last === null ? null : { firstDay: first.day, lastDay: last.day };
    },
    removeSource: (_tx: Tx, number: number): void => void removeSource.run(number),

    /** Queues an address for the DNS; false when it is known already. */
    queueAddress: (_tx: Tx, ip: string, dueAtMs: number): boolean => queueAddress.run(ip, dueAtMs).changes > 0,

    /** How many addresses wait for the DNS; `max` when it is more. */
    countWaiting: (nowMs: number, max: number): number => countWaiting.get(nowMs, max)?.count ?? 0,

    /** The first day on which a name was seen; null when it never was. */
    firstDayOfName: (domain: number, name: string): number | null => firstDayOfName.get(domain, name)?.firstDay ?? null,
    countNames: (domain: number): number => countNames.get(domain)?.count ?? 0,
    insertName: (_tx: Tx, domain: number, name: string, seen: { readonly day: number; readonly atMs: number }): void =>
      void insertName.run(domain, name, seen.day, seen.atMs),
    /** An earlier day than the one known was told of. */
    putBackName: (_tx: Tx, domain: number, name: string, firstDay: number): void =>
      void putBackName.run(firstDay, domain, name),
    isNameCountedOn: ({ domain, day, key }: Omit<RollupKey<string>, "isTrusted">): boolean =>
      isNameCountedOn.get(domain, day, key) !== null,
    /** Forgets a name under which nothing is counted. */
    removeUncountedName(_tx: Tx, domain: number, name: string): void {
      if (isNameCounted.get(domain, name) === null) removeName.run(domain, name);
    },

    count(_tx: Tx, { domain, day, key, isTrusted }: RollupKey<number>, counts: Counts): void {
      const { messages, aligned, alignedDkim, alignedSpf, forwarded, authenticated, quarantined, rejected } = counts;
      const more = [aligned, alignedDkim, alignedSpf, forwarded, authenticated, quarantined, rejected];
      count.run(domain, day, key, messages, ...more, isTrusted);
    },
    countReporter(_tx: Tx, { domain, day, key, isTrusted }: RollupKey<CountedReporter>, counts: ReporterCounts): void {
      const { reports, messages, aligned } = counts;
      countReporter.run(domain, day, key.reporter, key.author, reports, messages, aligned, isTrusted);
    },
    countName: (_tx: Tx, { domain, day, key, isTrusted }: RollupKey<string>, counts: NameCounts): void =>
      void countName.run(domain, day, key, counts.messages, counts.aligned, isTrusted),

    /** Whether what was counted of a reporter that is not trusted holds so many messages. */
    isCountedApart: ({ domain, day, key }: Omit<RollupKey<CountedReporter>, "isTrusted">, messages: number): boolean =>
      reporterHolds.get(domain, day, key.reporter, key.author, messages) !== null,

    /** Takes back what was counted; a place that nothing is left of goes. */
    takeBack(_tx: Tx, { domain, day, key, isTrusted }: RollupKey<number>, counts: Counts): void {
      const { messages, aligned, alignedDkim, alignedSpf, forwarded, authenticated, quarantined, rejected } = counts;
      const less = [messages, aligned, alignedDkim, alignedSpf, forwarded, authenticated, quarantined, rejected];
      takeBack.run(...less, domain, day, key, isTrusted);
      dropCount.run(domain, day, key, isTrusted);
    },
    takeBackReporter(
      _tx: Tx,
      { domain, day, key, isTrusted }: RollupKey<CountedReporter>,
      counts: ReporterCounts,
    ): void {
      const where = [domain, day, key.reporter, key.author, isTrusted] as const;
      takeBackReporter.run(counts.reports, counts.messages, counts.aligned, ...where);
      dropReporter.run(...where);
    },
    takeBackName(_tx: Tx, { domain, day, key, isTrusted }: RollupKey<string>, counts: NameCounts): void {
      takeBackName.run(counts.messages, counts.aligned, domain, day, key, isTrusted);
      dropName.run(domain, day, key, isTrusted);
    },
    /** A report arrived; with `isNews` one that the alert rules have to look at. */
    touchDomain: (_tx: Tx, domain: number, receivedAtMs: number, isNews: boolean): void =>
      void touchDomain.run(receivedAtMs, isNews ? 1 : 0, domain),
  };
};

export type CountStore = ReturnType<typeof createCountStore>;
