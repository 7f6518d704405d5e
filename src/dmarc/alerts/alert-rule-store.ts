import type { DayRange } from "../../base/days.ts";
import type { Db, Tx } from "../../db/open.ts";
import type { DayMail } from "./failure-incidents.ts";

export interface UnreviewedName {
  readonly name: string;
  readonly firstDay: number;
}

/** What somebody sent on a day. */
export interface SourceDay extends DayMail {
  readonly source: number;
}

export interface NameDay {
  readonly name: string;
  readonly day: number;
  readonly messages: number;
  readonly aligned: number;
}

/** The rules look at fewer days than these. */
const REPORTED_DAYS_MAX = 100;

type Between = [domain: number, fromDay: number, toDay: number, among: string];

/** What the alert rules read and write. `domain` is always the `number` of a domain. With `trustedOnly` what is counted by days is of trusted reports alone. */
export const createAlertRuleStore = (
  { sqlite }: Db,
  { trustedOnly = false }: { readonly trustedOnly?: boolean } = {},
) => {
  const TRUST = trustedOnly ? " AND is_trusted = 1" : "";
  const unreviewed = sqlite.prepare<{ number: number }, [number, number]>(
    "SELECT number FROM dmarc_domains WHERE is_unreviewed = 1 AND deleted_at_ms IS NULL AND number > ? ORDER BY number LIMIT ?",
  );
  const clear = sqlite.prepare<unknown, [number]>("UPDATE dmarc_domains SET is_unreviewed = 0 WHERE number = ?");
  const unreviewedSources = sqlite.prepare<{ number: number }, [number]>(
    `SELECT number FROM dmarc_sources WHERE domain = ? AND is_reviewed = 0${trustedOnly ? " AND is_vouched = 1" : ""}`,
  );
  const markSources = sqlite.prepare<unknown, [string]>(
    "UPDATE dmarc_sources SET is_reviewed = 1 WHERE number IN (SELECT value FROM json_each(?))",
  );
  const sourceDays = (among: string) =>
    sqlite.prepare<SourceDay, Between>(
      `SELECT source, day, sum(messages) messages, sum(aligned) aligned, sum(forwarded) forwarded FROM dmarc_daily
      WHERE domain = ? AND day BETWEEN ? AND ? AND ${among}${TRUST} GROUP BY day, source`,
    );
  const someSourceDays = sourceDays("source IN (SELECT value FROM json_each(?))");
  const allSourceDays = sourceDays("? IS NOT NULL");
  const names = sqlite.prepare<UnreviewedName, [number, number, number, number]>(
    `SELECT name, first_day firstDay FROM dmarc_names
      LEFT JOIN (SELECT name named, total(messages) messages FROM dmarc_daily_names
        WHERE domain = ?1 AND day BETWEEN ?2 AND ?3 GROUP BY name) ON named = name
      WHERE domain = ?1 AND is_reviewed = 0 ORDER BY messages DESC, name LIMIT ?4`,
  );
  const markNames = sqlite.prepare<unknown, [number, string]>(
    "UPDATE dmarc_names SET is_reviewed = 1 WHERE domain = ? AND name IN (SELECT value FROM json_each(?))",
  );
  const nameDays = sqlite.prepare<NameDay, Between>(
    `SELECT name, day, sum(messages) messages, sum(aligned) aligned FROM dmarc_daily_names
      WHERE domain = ? AND day BETWEEN ? AND ? AND name IN (SELECT value FROM json_each(?))${TRUST} GROUP BY day, name`,
  );
  const silent = sqlite.prepare<{ number: number; lastReportAtMs: number }, [number, number, number]>(
    `SELECT number, last_report_at_ms lastReportAtMs FROM dmarc_domains d
      WHERE number > ? AND last_report_at_ms <= ? AND mode = 'live' AND status = 'active' AND monitoring_enabled = 1
        AND deleted_at_ms IS NULL
        AND NOT EXISTS (SELECT 1 FROM dmarc_alerts a WHERE a.domain = d.number AND a.rule = 'reports_stopped'
          AND a.subject = date(d.last_report_at_ms / 1000, 'unixepoch'))
      ORDER BY number LIMIT ?`,
  );
  const reportedDays = sqlite.prepare<{ day: number }, [number, number, number, number]>(
    `SELECT DISTINCT day FROM dmarc_daily_reporters WHERE domain = ? AND day BETWEEN ? AND ?${TRUST}
      ORDER BY day DESC LIMIT ?`,
  );
  const between = (domain: number, { fromDay, toDay }: DayRange, among: readonly (number | string)[]): Between => [
    domain,
    fromDay,
    toDay,
    JSON.stringify(among),
  ];

  return {
    /** Domains to which reports came since the rules last looked, from the number `after` on. */
    unreviewedDomains: (after: number, limit: number): number[] =>
      unreviewed.all(after, limit).map(({ number }) => number),
    clearUnreviewed: (_tx: Tx, domain: number): void => void clear.run(domain),

    /** The numbers of the stored sources that the rules have not looked at; with `trustedOnly`, of those that trusted reports name. */
    unreviewedSources: (domain: number): number[] => unreviewedSources.all(domain).map(({ number }) => number),
    markSources: (_tx: Tx, numbers: readonly number[]): void => void markSources.run(JSON.stringify(numbers)),
    /** What each of some stored sources sent on each day; with null, each of all. */
    sourceDays: (domain: number, range: DayRange, among: readonly number[] | null): SourceDay[] =>
      (among === null ? allSourceDays : someSourceDays).all(...between(domain, range, among ?? [])),

    /** Those with most mail in the range first. */
    unreviewedNames: (domain: number, { fromDay, toDay }: DayRange, limit: number): UnreviewedName[] =>
      names.all(domain, fromDay, toDay, limit),
    markNames: (_tx: Tx, domain: number, among: readonly string[]): void =>
      void markNames.run(domain, JSON.stringify(among)),
    nameDays: (domain: number, range: DayRange, among: readonly string[]): NameDay[] =>
      nameDays.all(...between(domain, range, among)),

    /** Live domains whose last report arrived at `beforeMs` or earlier, and which nobody was told of since. */
    silentDomains: (after: number, beforeMs: number, limit: number): { number: number; lastReportAtMs: number }[] =>
      silent.all(after, beforeMs, limit),
    /** The days of a range that reports tell of, the last ones of very many. */
    reportedDays: (domain: number, { fromDay, toDay }: DayRange): number[] =>
      reportedDays.all(domain, fromDay, toDay, REPORTED_DAYS_MAX).map(({ day }) => day),
  };
};

export type AlertRuleStore = ReturnType<typeof createAlertRuleStore>;
