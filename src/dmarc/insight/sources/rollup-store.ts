import type { DayRange } from "../../../foundation/base/days.ts";
import type { Steps } from "../../../foundation/base/in-steps.ts";
import type { Db, Tx } from "../../../foundation/db/open.ts";
import {
  type DayTotals,
  type DomainDay,
  type NameTotals,
  type ReportDay,
  type ReportedDay,
  type SourceDayTotals,
  type ReporterDay,
  type ReporterTotals,
  type SourceAddress,
  type UntrustedTotals,
  sumTotals,
  type Totals,
} from "./rollup-rows.ts";
import { readDays } from "./day-steps.ts";
import { type SourceTotals, SourceTotalsStore } from "./source-totals-store.ts";
import { type DomainReporters, decidingVouchers, ReporterStore } from "../../records/domains/reporter-store.ts";
import { SOURCE_CLASSES } from "../../records/domains/source-rules.ts";
import { statements } from "../../../foundation/db/statements.ts";

export const CLASSIFICATIONS = SOURCE_CLASSES;
export type Classification = (typeof CLASSIFICATIONS)[number];

/** A source as it is stored: see `ingest/rollup.ts`. */
export interface StoredSource {
  readonly number: number;
  readonly key: string;
  /** The first and last day in any report that is counted. */
  readonly firstDay: number;
  readonly lastDay: number;
  /** When the first report that names it was stored. */
  readonly firstSeenAtMs: number;
  /** Whether a report on which decisions rely names it. */
  readonly isVouched: boolean;
}

/** The user's classification of a source. */
export interface UserClassification {
  readonly key: string;
  readonly classification: Classification;
  readonly atMs: number;
  /** Why, in the user's words; null for none. */
  readonly note: string | null;
}

/** Of the vouchers whose counts are read, as JSON. */
type Between = [domain: number, fromDay: number, toDay: number, vouchers: string];
type Days = [domain: number, fromDay: number, toDay: number];
/** A row with its booleans as SQLite has them. */
type Stored<T, K extends keyof T> = Omit<T, K> & Readonly<Record<K, 0 | 1>>;

const SUMS = `total(messages) messages, total(aligned) aligned, total(aligned_dkim) alignedDkim, total(aligned_spf) alignedSpf,
  total(forwarded) forwarded, total(authenticated) authenticated, total(quarantined) quarantined, total(rejected) rejected`;
const FEW_SUMS = "total(messages) messages, total(aligned) aligned";
/** Reports of a day that are searched for the names of reporters. */
const SEARCHED_REPORTS_MAX = 2_000;
/** Trusted reporters of the same name are one, however their reports came. */
const UNTRUSTED_AUTHOR = "CASE is_trusted WHEN 0 THEN dmarc_daily_reporters.author ELSE '' END";
const DAYS = "domain = ?1 AND day BETWEEN ?2 AND ?3";
const VOUCHED = "is_trusted IN (SELECT value FROM json_each(?4))";

/** Up to this number of sources are looked up for each day; for more, all sources of the days are read. */
const FEW_SOURCES_MAX = 20;
const FEW_SOURCES_DAYS = `WITH RECURSIVE d(day) AS (SELECT ?2 UNION ALL SELECT day + 1 FROM d WHERE day < ?3)
  SELECT d.day, ${SUMS} FROM d CROSS JOIN json_each(?5) one CROSS JOIN dmarc_daily n ON n.domain = ?1 AND n.day = d.day AND n.source = one.value`;
/** By key: the order in which sources came must not show, because an unknown reporter can be the first to name one. */
const STORED_SOURCES = `SELECT number, key, first_day firstDay, last_day lastDay, first_seen_at_ms firstSeenAtMs,
  is_vouched isVouched FROM dmarc_sources WHERE domain = ? ORDER BY key`;
const ADDRESSES = `SELECT ip, name, is_confirmed isConfirmed, asked_at_ms IS NOT NULL isAsked, asn, as_name asName, country
  FROM dmarc_reverse_names WHERE ip IN (SELECT value FROM json_each(?))`;
const reportersWhere = (between: string) =>
  `SELECT reporter, ${UNTRUSTED_AUTHOR} author, CASE WHEN is_trusted AND min(author) = max(author) THEN nullif(max(author), '') END
    authenticatedAs, is_trusted voucher, total(reports) reports, ${FEW_SUMS}, max(day) lastDay FROM dmarc_daily_reporters WHERE ${between}
    GROUP BY reporter, is_trusted, ${UNTRUSTED_AUTHOR} ORDER BY 6 DESC, reporter, 2, is_trusted`;
const reporterDaysWhere = (between: string) =>
  `SELECT day, reporter, CASE WHEN is_trusted AND min(author) = max(author) THEN nullif(max(author), '') END authenticatedAs
    FROM dmarc_daily_reporters WHERE ${between} GROUP BY day, reporter, is_trusted, ${UNTRUSTED_AUTHOR} ORDER BY day`;
const REPORTER_NAMES = `SELECT org FROM (SELECT org FROM dmarc_reports WHERE domain = ? AND day = ? AND is_complete = 1
  ORDER BY number DESC LIMIT ?) WHERE org IS NOT NULL`;
const REPORTED_POLICIES = `SELECT day, group_concat(DISTINCT json_extract(policy, '$.p')) policies FROM dmarc_reports
  WHERE domain = ?1 AND day BETWEEN ?2 AND ?3 AND policy_domain = ?5 AND is_complete = 1 AND instr(sameness, ' ') = 0
    AND voucher IN (SELECT value FROM json_each(?4)) GROUP BY day`;
const SPAN = `SELECT (SELECT min(day) FROM dmarc_daily_reporters WHERE domain = ?) firstDay,
  (SELECT max(day) FROM dmarc_daily_reporters WHERE domain = ?) lastDay`;
/** From the rows of reporters, which are far fewer than those of sources. */
const DOMAIN_DAYS = `SELECT domain, day, sum(messages) messages, sum(aligned) aligned FROM dmarc_daily_reporters
  WHERE domain IN (SELECT value FROM json_each(?)) AND day BETWEEN ? AND ? GROUP BY domain, day`;
const SET_CLASSIFICATION = `INSERT INTO dmarc_source_words (domain, key, classification, at_ms, note) VALUES (?, ?, ?, ?, ?)
  ON CONFLICT (domain, key) DO UPDATE SET classification = excluded.classification, at_ms = excluded.at_ms, note = excluded.note`;

interface RollupOptions {
  /** Counts the reports that decide: see `decidingVouchers`. */
  readonly trustedOnly?: boolean;
  /** Counts the reports with these vouchers, and those decide. */
  readonly vouchers?: readonly number[];
}

/** The statements of all stores that count the same reports: of all, or with `isRestricted` of some vouchers. */
const prepareRollups = ({ sqlite }: Pick<Db, "sqlite">, isRestricted: boolean) => {
  const between = isRestricted ? `${DAYS} AND ${VOUCHED}` : `${DAYS} AND ?4 IS NOT NULL`;
  const sql = statements({
    untrusted: () =>
      sqlite.prepare<UntrustedTotals, Days>(
        `SELECT total(reports) reports, total(messages) messages FROM dmarc_daily_reporters WHERE ${DAYS} AND is_trusted = 0`,
      ),
    perDay: () =>
      sqlite.prepare<DayTotals, Between>(
        `SELECT day, ${SUMS} FROM dmarc_daily WHERE ${between} GROUP BY day ORDER BY day`,
      ),
    storedSources: () => sqlite.prepare<Stored<StoredSource, "isVouched">, [number]>(STORED_SOURCES),
    addresses: () => sqlite.prepare<Stored<SourceAddress, "isConfirmed" | "isAsked">, [string]>(ADDRESSES),
    reporters: () => sqlite.prepare<ReporterTotals, Between>(reportersWhere(between)),
    reporterDays: () => sqlite.prepare<ReporterDay, Between>(reporterDaysWhere(between)),
    reporterNames: () => sqlite.prepare<{ org: string }, [number, number, number]>(REPORTER_NAMES),
    reportsPerDay: () =>
      sqlite.prepare<ReportDay, Between>(
        `SELECT day, total(reports) reports, ${FEW_SUMS} FROM dmarc_daily_reporters WHERE ${between} GROUP BY day ORDER BY day`,
      ),
    names: () =>
      sqlite.prepare<NameTotals, Between>(
        `SELECT name, ${FEW_SUMS} FROM dmarc_daily_names WHERE ${between} GROUP BY name ORDER BY 2 DESC, name`,
      ),
    reportedPolicies: () => sqlite.prepare<ReportedDay, [...Between, string]>(REPORTED_POLICIES),
    span: () => sqlite.prepare<{ firstDay: number | null; lastDay: number | null }, [number, number]>(SPAN),
    domainDays: () => sqlite.prepare<DomainDay, [string, number, number]>(DOMAIN_DAYS),
    countsPerDayOfFew: () =>
      sqlite.prepare<DayTotals, [...Between, string]>(
        `${FEW_SOURCES_DAYS} ${isRestricted ? `AND ${VOUCHED}` : "AND ?4 IS NOT NULL"} GROUP BY d.day ORDER BY d.day`,
      ),
    countsPerDay: () =>
      sqlite.prepare<DayTotals, [...Between, string]>(
        `SELECT day, ${SUMS} FROM dmarc_daily
      WHERE ${between} AND source IN (SELECT value FROM json_each(?5)) GROUP BY day ORDER BY day`,
      ),
    perSourceDay: () =>
      sqlite.prepare<SourceDayTotals, [...Between, string]>(
        `SELECT source, day, ${FEW_SUMS}, total(forwarded) forwarded FROM dmarc_daily
      WHERE ${between} AND source IN (SELECT value FROM json_each(?5)) GROUP BY source, day`,
      ),
    userClassifications: () =>
      sqlite.prepare<UserClassification, [number]>(
        "SELECT key, classification, at_ms atMs, note FROM dmarc_source_words WHERE domain = ?",
      ),
    setUserClassification: () =>
      sqlite.prepare<unknown, [number, string, Classification, number, string | null]>(SET_CLASSIFICATION),
    removeUserClassification: () =>
      sqlite.prepare<unknown, [number, string]>("DELETE FROM dmarc_source_words WHERE domain = ? AND key = ?"),
  });
  const sourceTotals = new SourceTotalsStore({ sqlite }, { trustedOnly: isRestricted });
  return { sql, sourceTotals, reporters: new ReporterStore({ sqlite }), isRestricted };
};

/**
 * Reads the daily rollups of reports; no query reads a record. `domain` is always the `number` of a domain. Days without
 * mail are absent. With `trustedOnly` everything that is counted by day counts the reports only on which decisions rely, and only
 * sources that these name are there: no other report changes anything that is read.
 */
export class RollupStore {
  readonly #vouchers: string | null;
  readonly #prepared: ReturnType<typeof prepareRollups>;

  constructor(
    private readonly db: Pick<Db, "sqlite">,
    { trustedOnly = false, vouchers }: RollupOptions = {},
    prepared: ReturnType<typeof prepareRollups> | null = null,
  ) {
    this.#vouchers = vouchers === undefined ? null : JSON.stringify(vouchers);
    this.#prepared = prepared ?? prepareRollups(db, trustedOnly || vouchers !== undefined);
  }

  /** The reporters of a domain, and which of them decide. */
  domainReporters(domain: number): DomainReporters {
    return this.#prepared.reporters.ofDomain(domain);
  }

  /** The same counts of the reports with some vouchers only. */
  only(vouchers: readonly number[]): RollupStore {
    return new RollupStore(this.db, { vouchers }, this.#prepared.isRestricted ? this.#prepared : null);
  }

  /** Zeros when there was nothing. */
  *totals(domain: number, range: DayRange): Steps<Totals> {
    return sumTotals(yield* this.perDay(domain, range));
  }

  /** The untrusted reports, and the messages in them. */
  untrusted(domain: number, { fromDay, toDay }: DayRange): UntrustedTotals {
    return this.#prepared.sql.untrusted.get(domain, fromDay, toDay) ?? { reports: 0, messages: 0 };
  }

  /** Ordered by day. Where `reportsPerDay` is enough, it takes a thousandth of the time. */
  perDay(domain: number, range: DayRange): Steps<DayTotals[]> {
    const deciding = this.#deciding(domain);
    return readDays(range, ({ fromDay, toDay }) => this.#prepared.sql.perDay.all(domain, fromDay, toDay, deciding));
  }

  /** The messages of each source in the range, by its number; sources without messages may be absent. */
  sourceTotals(domain: number, range: DayRange): Steps<ReadonlyMap<number, SourceTotals>> {
    return this.#prepared.sourceTotals.read(domain, range, this.#deciding(domain));
  }

  /** Every source that any report named, whatever its day; only those that the counted reports name, where these are restricted. */
  storedSources(domain: number): StoredSource[] {
    const vouched = this.#prepared.sourceTotals.namedByUnknown(domain, this.#deciding(domain));
    const sources = this.#prepared.sql.storedSources.all(domain).map((source) => ({
      ...source,
      isVouched: source.isVouched === 1 || vouched.has(source.number),
    }));
    if (!this.#prepared.isRestricted) return sources;
    const days = this.#prepared.sourceTotals.decidingDays(domain, this.#deciding(domain));
    return sources.flatMap((source) => (source.isVouched ? { ...source, ...days.get(source.number) } : []));
  }

  /** What is known of some addresses; those that were never queued for lookups are absent. */
  addresses(ips: readonly string[]): SourceAddress[] {
    return this.#prepared.sql.addresses.all(JSON.stringify(ips)).map(({ isConfirmed, isAsked, ...address }) => ({
      ...address,
      isConfirmed: isConfirmed === 1,
      isAsked: isAsked === 1,
    }));
  }

  /** The reporters with the most messages first. */
  reporters(domain: number, { fromDay, toDay }: DayRange): ReporterTotals[] {
    return this.#prepared.sql.reporters.all(domain, fromDay, toDay, this.#deciding(domain));
  }

  /** The reporters of each day, ordered by day; one may be there twice. */
  reporterDays(domain: number, { fromDay, toDay }: DayRange): ReporterDay[] {
    return this.#prepared.sql.reporterDays.all(domain, fromDay, toDay, this.#deciding(domain));
  }

  /** The names of reporters in their latest spelling, by their lower case. Names that the latest reports of a day do not have are absent. */
  writtenNames(
    domain: number,
    wanted: ReadonlyArray<Pick<ReporterTotals, "reporter" | "lastDay">>,
  ): ReadonlyMap<string, string> {
    const names = new Map<string, string>();
    for (const [day, of] of Map.groupBy(wanted, ({ lastDay }) => lastDay)) {
      const missing = new Set(of.map(({ reporter }) => reporter).filter((reporter) => reporter !== ""));
      if (missing.size === 0) continue;
      for (const { org } of this.#prepared.sql.reporterNames.iterate(domain, day, SEARCHED_REPORTS_MAX)) {
        if (missing.delete(org.toLowerCase())) names.set(org.toLowerCase(), org);
        if (missing.size === 0) break;
      }
    }
    return names;
  }

  /** Ordered by day. Days without a report are absent. */
  reportsPerDay(domain: number, { fromDay, toDay }: DayRange): ReportDay[] {
    return this.#prepared.sql.reportsPerDay.all(domain, fromDay, toDay, this.#deciding(domain));
  }

  /** The names with the most messages first. */
  names(domain: number, { fromDay, toDay }: DayRange): NameTotals[] {
    return this.#prepared.sql.names.all(domain, fromDay, toDay, this.#deciding(domain));
  }

  /** The policies (`p`) that the reports on which decisions rely found at `name` on each day of a range. */
  reportedPolicies(domain: number, { fromDay, toDay }: DayRange, name: string): ReportedDay[] {
    return this.#prepared.sql.reportedPolicies.all(domain, fromDay, toDay, this.#deciding(domain), name);
  }

  /** The first and last reported day; null before the first report. */
  span(domain: number): { readonly firstDay: number; readonly lastDay: number } | null {
    const { firstDay = null, lastDay = null } = this.#prepared.sql.span.get(domain, domain) ?? {};
    return firstDay === null || lastDay === null ? null : { firstDay, lastDay };
  }

  /** The messages of several domains by day. Days without mail are absent. */
  domainDays(domains: readonly number[], { fromDay, toDay }: DayRange): DomainDay[] {
    return this.#prepared.sql.domainDays.all(JSON.stringify(domains), fromDay, toDay);
  }

  /** The messages of some stored sources, ordered by day. Days without mail are absent. */
  perDayOf(domain: number, range: DayRange, among: readonly number[]): Steps<DayTotals[]> {
    const { countsPerDayOfFew, countsPerDay } = this.#prepared.sql;
    const statement = among.length <= FEW_SOURCES_MAX ? countsPerDayOfFew : countsPerDay;
    const [deciding, numbers] = [this.#deciding(domain), JSON.stringify(among)];
    return readDays(range, ({ fromDay, toDay }) => statement.all(domain, fromDay, toDay, deciding, numbers));
  }

  /** The messages of each of some stored sources by day, in any order. */
  perSourceDay(domain: number, range: DayRange, among: readonly number[]): Steps<SourceDayTotals[]> {
    const [deciding, numbers] = [this.#deciding(domain), JSON.stringify(among)];
    const { perSourceDay } = this.#prepared.sql;
    return readDays(range, ({ fromDay, toDay }) => perSourceDay.all(domain, fromDay, toDay, deciding, numbers));
  }

  /** The last day in the range on which failing messages that were not forwarded came from a stored source, by its number. */
  *lastFailingDays(domain: number, range: DayRange, among: readonly number[]): Steps<ReadonlyMap<number, number>> {
    const last = new Map<number, number>();
    for (const { source, day, messages, aligned, forwarded } of yield* this.perSourceDay(domain, range, among)) {
      if (messages > aligned + forwarded) last.set(source, Math.max(day, last.get(source) ?? day));
    }
    return last;
  }

  userClassifications(domain: number): ReadonlyMap<string, UserClassification> {
    return new Map(this.#prepared.sql.userClassifications.all(domain).map((one) => [one.key, one]));
  }

  setUserClassification(_tx: Tx, domain: number, { key, classification, atMs, note }: UserClassification): void {
    this.#prepared.sql.setUserClassification.run(domain, key, classification, atMs, note);
  }

  removeUserClassification(_tx: Tx, domain: number, key: string): void {
    this.#prepared.sql.removeUserClassification.run(domain, key);
  }

  /** The vouchers whose reports decide, as JSON. */
  #deciding(domain: number) {
    return this.#vouchers ?? JSON.stringify(decidingVouchers(this.domainReporters(domain)));
  }
}
