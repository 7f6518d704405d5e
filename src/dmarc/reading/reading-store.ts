import type { DayRange } from "../../base/days.ts";
import type { Db, Tx } from "../../db/open.ts";
import { type Counts, noCounts } from "../ingest/rollup.ts";

export const CLASSIFICATIONS = ["authorized", "misconfigured", "forwarder", "unknown", "threat"] as const;
export type Classification = (typeof CLASSIFICATIONS)[number];

/** How the messages of a range of days fared. */
export type Totals = Readonly<Counts>;

export interface DayTotals extends Totals {
  readonly day: number;
}

/** A source as it is stored: `dkim:`, `spf:` or `ip:`. */
export interface StoredSource {
  readonly number: number;
  readonly key: string;
  /** The first and last day that any report tells of it. */
  readonly firstDay: number;
  readonly lastDay: number;
  /** When the first report of it was taken in. */
  readonly firstSeenAtMs: number;
}

/** What a stored source sent in a range. */
export interface FineSource extends Totals {
  /** The `number` of the source. */
  readonly number: number;
}

/** An address of a source, and what is known of its reverse name. */
export interface SourceAddress {
  readonly ip: string;
  readonly name: string | null;
  readonly isConfirmed: boolean;
  /** Whether the DNS ever said what the name is. */
  readonly isAsked: boolean;
  /** The last day that a report tells of it. */
  readonly lastDay: number;
}

/** A source `dkim:` or `spf:` and some of its addresses, the most recent first. */
export interface NamedSource {
  readonly key: string;
  readonly addresses: readonly SourceAddress[];
}

export interface ReporterTotals {
  /** Lower case; empty for reporters without a name. */
  readonly reporter: string;
  /** Of one that is not trusted: who its mail is authenticated as, or `UNAUTHENTICATED`; empty for a trusted one. */
  readonly author: string;
  /** Who the mail of a trusted one is authenticated as; null when not all of its reports came in such mail. */
  readonly authenticatedAs: string | null;
  readonly reports: number;
  readonly messages: number;
  readonly aligned: number;
  /** The last day of the range that it told of. */
  readonly lastDay: number;
}

export interface NameTotals {
  /** The name in `From`; empty for all that are not at or below the domain. */
  readonly name: string;
  readonly messages: number;
  readonly aligned: number;
}

/** What the user said of a source. */
export interface SourceWord {
  readonly key: string;
  readonly classification: Classification;
  readonly atMs: number;
}

type Between = [domain: number, fromDay: number, toDay: number];

interface AddressRow {
  readonly source: number;
  readonly key: string;
  readonly ip: string;
  readonly name: string | null;
  readonly isConfirmed: number | null;
  readonly askedAtMs: number | null;
  readonly lastDay: number;
}

const SUMS = `total(messages) messages, total(aligned) aligned, total(aligned_dkim) alignedDkim, total(aligned_spf) alignedSpf,
  total(forwarded) forwarded, total(authenticated) authenticated, total(quarantined) quarantined, total(rejected) rejected`;
const FEW_SUMS = "total(messages) messages, total(aligned) aligned";
const REVERSE = "r.name, r.is_confirmed isConfirmed, r.asked_at_ms askedAtMs";
/** Reports of a day among which the names of reporters are looked for. */
const REPORTS_LOOKED_AT_MAX = 2_000;
/** Trusted reporters of one name are one, however their reports came. */
const UNTRUSTED_AUTHOR = "CASE is_trusted WHEN 1 THEN '' ELSE dmarc_daily_reporters.author END";
const DAYS = "domain = ? AND day BETWEEN ? AND ?";

const addressOf = ({ ip, name, isConfirmed, askedAtMs, lastDay }: AddressRow): SourceAddress => ({
  ip,
  name,
  isConfirmed: isConfirmed === 1,
  isAsked: askedAtMs !== null,
  lastDay,
});

/**
 * What reports said, out of the daily sums: nothing here looks at a record. `domain` is always the `number` of a domain.
 * Days without mail are not among the answers. With `trustedOnly` all that is counted by days is of trusted reports alone:
 * those that the owner handed in, and those in mail that is authenticated as the reporter's.
 */
export const createReadingStore = (db: Db, { trustedOnly = false }: { readonly trustedOnly?: boolean } = {}) => {
  const { sqlite } = db;
  const BETWEEN = trustedOnly ? `${DAYS} AND is_trusted = 1` : DAYS;
  const totals = sqlite.prepare<Totals, Between>(`SELECT ${SUMS} FROM dmarc_daily WHERE ${BETWEEN}`);
  const untrusted = sqlite.prepare<{ messages: number }, Between>(
    `SELECT total(messages) messages FROM dmarc_daily WHERE ${DAYS} AND is_trusted = 0`,
  );
  const untrustedReports = sqlite.prepare<{ reports: number }, Between>(
    `SELECT total(reports) reports FROM dmarc_daily_reporters WHERE ${DAYS} AND is_trusted = 0`,
  );
  const perDay = sqlite.prepare<DayTotals, Between>(
    `SELECT day, ${SUMS} FROM dmarc_daily WHERE ${BETWEEN} GROUP BY day ORDER BY day`,
  );
  const perSource = sqlite.prepare<FineSource, Between>(
    `SELECT source number, ${SUMS} FROM dmarc_daily WHERE ${BETWEEN} GROUP BY source`,
  );
  const allSources = sqlite.prepare<StoredSource, [number]>(
    `SELECT number, key, first_day firstDay, last_day lastDay, first_seen_at_ms firstSeenAtMs
      FROM dmarc_sources WHERE domain = ?`,
  );
  const named = sqlite.prepare<AddressRow, [number]>(
    `SELECT s.number source, s.key, a.ip, a.last_day lastDay, ${REVERSE}
      FROM dmarc_sources s JOIN dmarc_source_addresses a ON a.source = s.number
      LEFT JOIN dmarc_reverse_names r ON r.ip = a.ip
      WHERE s.domain = ? AND s.key NOT BETWEEN 'ip:' AND 'ip;'
      ORDER BY a.source, a.last_day DESC, a.ip`,
  );
  const bare = sqlite.prepare<AddressRow, [number]>(
    `SELECT s.number source, s.key, substr(s.key, 4) ip, s.last_day lastDay, ${REVERSE}
      FROM dmarc_sources s LEFT JOIN dmarc_reverse_names r ON r.ip = substr(s.key, 4)
      WHERE s.domain = ? AND s.key >= 'ip:' AND s.key < 'ip;'`,
  );
  const reporters = sqlite.prepare<ReporterTotals, Between>(
    `SELECT reporter, ${UNTRUSTED_AUTHOR} author, CASE WHEN is_trusted AND min(author) = max(author) THEN nullif(max(author), '') END
      authenticatedAs, total(reports) reports, ${FEW_SUMS}, max(day) lastDay FROM dmarc_daily_reporters WHERE ${BETWEEN}
      GROUP BY reporter, is_trusted, ${UNTRUSTED_AUTHOR} ORDER BY 5 DESC, reporter, 2`,
  );
  const orgs = sqlite.prepare<{ org: string }, [number, number, number]>(
    `SELECT org FROM (SELECT org FROM dmarc_reports WHERE domain = ? AND day = ? AND is_complete = 1 ORDER BY number DESC LIMIT ?)
      WHERE org IS NOT NULL`,
  );
  const reportsPerDay = sqlite.prepare<{ day: number; reports: number }, Between>(
    `SELECT day, total(reports) reports FROM dmarc_daily_reporters WHERE ${BETWEEN} GROUP BY day ORDER BY day`,
  );
  const lateReportedDay = sqlite.prepare<{ day: number }, [number, number]>(
    "SELECT DISTINCT day FROM dmarc_daily_reporters WHERE domain = ? ORDER BY day DESC LIMIT 1 OFFSET ? - 1",
  );
  const names = sqlite.prepare<NameTotals, Between>(
    `SELECT name, ${FEW_SUMS} FROM dmarc_daily_names WHERE ${BETWEEN} GROUP BY name ORDER BY 2 DESC, name`,
  );
  const span = sqlite.prepare<{ firstDay: number | null; lastDay: number | null }, [number, number]>(
    `SELECT (SELECT min(day) FROM dmarc_daily_reporters WHERE domain = ?) firstDay,
      (SELECT max(day) FROM dmarc_daily_reporters WHERE domain = ?) lastDay`,
  );
  const words = sqlite.prepare<SourceWord, [number]>(
    "SELECT key, classification, at_ms atMs FROM dmarc_source_words WHERE domain = ?",
  );
  const setWord = sqlite.prepare<unknown, [number, string, Classification, number]>(
    `INSERT INTO dmarc_source_words (domain, key, classification, at_ms) VALUES (?, ?, ?, ?)
      ON CONFLICT (domain, key) DO UPDATE SET classification = excluded.classification, at_ms = excluded.at_ms`,
  );
  const removeWord = sqlite.prepare<unknown, [number, string]>(
    "DELETE FROM dmarc_source_words WHERE domain = ? AND key = ?",
  );
  const between = (domain: number, { fromDay, toDay }: DayRange): Between => [domain, fromDay, toDay];

  return {
    /** Zeros when there was nothing. */
    totals: (domain: number, range: DayRange): Totals => totals.get(...between(domain, range)) ?? NO_TOTALS,
    /** The messages that only reports tell of which are not trusted. */
    untrustedMessages: (domain: number, range: DayRange): number =>
      untrusted.get(...between(domain, range))?.messages ?? 0,
    /** The reports that are not trusted. */
    untrustedReports: (domain: number, range: DayRange): number =>
      untrustedReports.get(...between(domain, range))?.reports ?? 0,
    /** In the order of the days. */
    perDay: (domain: number, range: DayRange): DayTotals[] => perDay.all(...between(domain, range)),
    /** The sources that sent something in the range, by their numbers. */
    sources: (domain: number, range: DayRange): FineSource[] => perSource.all(...between(domain, range)),
    /** Every source there ever was. */
    allSources: (domain: number): StoredSource[] => allSources.all(domain),
    /** The sources `dkim:` and `spf:` by their number, with their addresses, the most recent first. */
    addresses(domain: number): ReadonlyMap<number, NamedSource> {
      const bySource = new Map<number, { readonly key: string; readonly addresses: SourceAddress[] }>();
      for (const row of named.all(domain)) {
        const source = bySource.get(row.source);
        if (source === undefined) bySource.set(row.source, { key: row.key, addresses: [addressOf(row)] });
        else source.addresses.push(addressOf(row));
      }
      return bySource;
    },
    /** The address of every source `ip:`, by its number. */
    bareAddresses: (domain: number): ReadonlyMap<number, SourceAddress> =>
      new Map(bare.all(domain).map((row) => [row.source, addressOf(row)])),
    /** Those with the most messages first. */
    reporters: (domain: number, range: DayRange): ReporterTotals[] => reporters.all(...between(domain, range)),
    /** Their names as they last wrote them, by those in lower case. What is not found among the last reports of a day is absent. */
    writtenNames(
      domain: number,
      wanted: ReadonlyArray<Pick<ReporterTotals, "reporter" | "lastDay">>,
    ): ReadonlyMap<string, string> {
      const names = new Map<string, string>();
      for (const [day, of] of Map.groupBy(wanted, ({ lastDay }) => lastDay)) {
        const missing = new Set(of.map(({ reporter }) => reporter).filter((reporter) => reporter !== ""));
        for (const { org } of missing.size === 0 ? [] : orgs.iterate(domain, day, REPORTS_LOOKED_AT_MAX)) {
          if (missing.delete(org.toLowerCase())) names.set(org.toLowerCase(), org);
          if (missing.size === 0) break;
        }
      }
      return names;
    },
    /** In the order of the days. */
    reportsPerDay: (domain: number, range: DayRange): { day: number; reports: number }[] =>
      reportsPerDay.all(...between(domain, range)),
    /** The day that reports tell of, counted from the last one, which is 1; null when there are not so many. */
    lateReportedDay: (domain: number, count: number): number | null => lateReportedDay.get(domain, count)?.day ?? null,
    /** Those with the most messages first. */
    names: (domain: number, range: DayRange): NameTotals[] => names.all(...between(domain, range)),
    /** The first and last day that any report tells of; null before the first report. */
    span(domain: number): { readonly firstDay: number; readonly lastDay: number } | null {
      const { firstDay = null, lastDay = null } = span.get(domain, domain) ?? {};
      return firstDay === null || lastDay === null ? null : { firstDay, lastDay };
    },

    words: (domain: number): SourceWord[] => words.all(domain),
    setWord: (_tx: Tx, domain: number, { key, classification, atMs }: SourceWord): void =>
      void setWord.run(domain, key, classification, atMs),
    removeWord: (_tx: Tx, domain: number, key: string): void => void removeWord.run(domain, key),
  };
};

export type ReadingStore = ReturnType<typeof createReadingStore>;

/** Nothing was sent. */
export const NO_TOTALS: Totals = noCounts();

/** Two sums in one. */
export const addTotals = (a: Totals, b: Totals): Totals => ({
  messages: a.messages + b.messages,
  aligned: a.aligned + b.aligned,
  alignedDkim: a.alignedDkim + b.alignedDkim,
  alignedSpf: a.alignedSpf + b.alignedSpf,
  forwarded: a.forwarded + b.forwarded,
  authenticated: a.authenticated + b.authenticated,
  quarantined: a.quarantined + b.quarantined,
  rejected: a.rejected + b.rejected,
});
