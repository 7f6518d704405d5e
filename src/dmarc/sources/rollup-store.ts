import type { DayRange } from "../../base/days.ts";
import type { Db, Tx } from "../../db/open.ts";
import { SOURCE_CLASSES } from "../domains/source-rules.ts";
import { type Counts, noCounts } from "../ingest/rollup.ts";

export const CLASSIFICATIONS = SOURCE_CLASSES;
export type Classification = (typeof CLASSIFICATIONS)[number];

/** How the messages of a range of days fared. */
export type Totals = Readonly<Counts>;

export interface DayTotals extends Totals {
  readonly day: number;
}

/** A source as it is stored: see `ingest/source-key.ts`. */
export interface StoredSource {
  readonly number: number;
  readonly key: string;
  /** The first and last day that any report tells of it. */
  readonly firstDay: number;
  readonly lastDay: number;
  /** When the first report of it was taken in. */
  readonly firstSeenAtMs: number;
  /** Whether a trusted report names it: see `Standing` in `ingest/ingest-work.ts`. */
  readonly isVouched: boolean;
}

/** What a stored source sent in a range, by trusted reports or by others. */
export interface SourceTotals extends Totals {
  /** The `number` of the source. */
  readonly number: number;
  readonly isTrusted: boolean;
}

/** What is known of an address from the DNS, or from the user's database of addresses. */
export interface SourceAddress {
  readonly ip: string;
  /** The reverse name; null when there is none, or it is not known. */
  readonly name: string | null;
  /** Whether the name leads back to the address. */
  readonly isConfirmed: boolean;
  /** Whether the DNS ever said what the name is. */
  readonly isAsked: boolean;
  readonly asn: number | null;
  readonly asName: string | null;
  /** ISO 3166-1 alpha-2. */
  readonly country: string | null;
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

export interface ReportedDay {
  readonly day: number;
  /** Each once, separated by commas. */
  readonly policies: string | null;
}

/** What the user said of a source. */
export interface UserClassification {
  readonly key: string;
  readonly classification: Classification;
  readonly atMs: number;
}

type Between = [domain: number, fromDay: number, toDay: number];

type FactsRow = Omit<SourceAddress, "isConfirmed" | "isAsked"> & {
  readonly isConfirmed: number;
  readonly isAsked: number;
};

const SUMS = `total(messages) messages, total(aligned) aligned, total(aligned_dkim) alignedDkim, total(aligned_spf) alignedSpf,
  total(forwarded) forwarded, total(authenticated) authenticated, total(quarantined) quarantined, total(rejected) rejected`;
/** The same where there is a row at least, in less time. A row has 10^9 messages at most: see `COUNT_MAX`. */
const WHOLE_SUMS = SUMS.replaceAll("total(", "sum(");
const FEW_SUMS = "total(messages) messages, total(aligned) aligned";
/** The address in a stored key; of keys from before sources were stored by address, `ip:` alone has one. */
const ADDRESS = "CASE WHEN instr(key, ' ') = 0 THEN substr(key, 4) ELSE substr(key, 1, instr(key, ' ') - 1) END";
/** Reports of a day among which the names of reporters are looked for. */
const REPORTS_LOOKED_AT_MAX = 2_000;
/** Trusted reporters of one name are one, however their reports came. */
const UNTRUSTED_AUTHOR = "CASE is_trusted WHEN 1 THEN '' ELSE dmarc_daily_reporters.author END";
const DAYS = "domain = ? AND day BETWEEN ? AND ?";

/**
 * What reports said, out of the daily sums: nothing here looks at a record. `domain` is always the `number` of a domain.
 * Days without mail are not among the answers. With `trustedOnly` all that is counted by days is of trusted reports alone:
 * those that the owner handed in, and those in mail that is authenticated as the reporter's.
 */
export const createRollupStore = (db: Db, { trustedOnly = false }: { readonly trustedOnly?: boolean } = {}) => {
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
  const perSource = sqlite.prepare<Omit<SourceTotals, "isTrusted"> & { readonly isTrusted: number }, Between>(
    `SELECT source number, is_trusted isTrusted, ${WHOLE_SUMS} FROM dmarc_daily WHERE ${BETWEEN} GROUP BY source, is_trusted`,
  );
  const allSources = sqlite.prepare<Omit<StoredSource, "isVouched"> & { readonly isVouched: 0 | 1 }, [number]>(
    `SELECT number, key, first_day firstDay, last_day lastDay, first_seen_at_ms firstSeenAtMs, is_vouched isVouched
      FROM dmarc_sources WHERE domain = ?`,
  );
  const addressFacts = sqlite.prepare<FactsRow, [number]>(
    `SELECT ip, name, is_confirmed isConfirmed, asked_at_ms IS NOT NULL isAsked, asn, as_name asName, country
      FROM dmarc_reverse_names WHERE ip IN (SELECT ${ADDRESS} FROM dmarc_sources WHERE domain = ?)`,
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
  const names = sqlite.prepare<NameTotals, Between>(
    `SELECT name, ${FEW_SUMS} FROM dmarc_daily_names WHERE ${BETWEEN} GROUP BY name ORDER BY 2 DESC, name`,
  );
  const reportedPolicies = sqlite.prepare<ReportedDay, [number, number, number, string]>(
    `SELECT day, group_concat(DISTINCT json_extract(policy, '$.p')) policies FROM dmarc_reports
      WHERE domain = ? AND day BETWEEN ? AND ? AND policy_domain = ? AND is_complete = 1 AND instr(sameness, ' ') = 0 GROUP BY day`,
  );
  const span = sqlite.prepare<{ firstDay: number | null; lastDay: number | null }, [number, number]>(
    `SELECT (SELECT min(day) FROM dmarc_daily_reporters WHERE domain = ?) firstDay,
      (SELECT max(day) FROM dmarc_daily_reporters WHERE domain = ?) lastDay`,
  );
  const words = sqlite.prepare<UserClassification, [number]>(
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
    /** What sources sent in the range, by their numbers; by trusted reports and by others apart. */
    sources: (domain: number, range: DayRange): SourceTotals[] =>
      perSource.all(...between(domain, range)).map((row) => ({ ...row, isTrusted: row.isTrusted === 1 })),
    /** Every source there ever was. */
    allSources: (domain: number): StoredSource[] =>
      allSources.all(domain).map((row) => ({ ...row, isVouched: row.isVouched === 1 })),
    /** What is known of the addresses of all sources, by address. */
    addressFacts: (domain: number): ReadonlyMap<string, SourceAddress> =>
      new Map(
        addressFacts
          .all(domain)
          .map((row) => [row.ip, { ...row, isConfirmed: row.isConfirmed === 1, isAsked: row.isAsked === 1 }]),
      ),
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
    /** Those with the most messages first. */
    names: (domain: number, range: DayRange): NameTotals[] => names.all(...between(domain, range)),
    /** The policies (`p`) that trusted reports found at `name` on each day of a range. */
    reportedPolicies: (domain: number, { fromDay, toDay }: DayRange, name: string): ReportedDay[] =>
      reportedPolicies.all(domain, fromDay, toDay, name),
    /** The first and last day that any report tells of; null before the first report. */
    span(domain: number): { readonly firstDay: number; readonly lastDay: number } | null {
      const { firstDay = null, lastDay = null } = span.get(domain, domain) ?? {};
      return firstDay === null || lastDay === null ? null : { firstDay, lastDay };
    },

    words: (domain: number): UserClassification[] => words.all(domain),
    setWord: (_tx: Tx, domain: number, { key, classification, atMs }: UserClassification): void =>
      void setWord.run(domain, key, classification, atMs),
    removeWord: (_tx: Tx, domain: number, key: string): void => void removeWord.run(domain, key),
  };
};

export type RollupStore = ReturnType<typeof createRollupStore>;

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
