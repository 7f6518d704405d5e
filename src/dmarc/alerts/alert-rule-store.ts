import type { DayRange } from "../../base/days.ts";
import type { Db, Tx } from "../../db/open.ts";
import type { DayMail } from "./alert-rules.ts";

/** A stored source that the rules have not looked at. */
export interface UnreviewedSource {
  readonly number: number;
  readonly key: string;
  readonly firstDay: number;
  readonly firstSeenAtMs: number;
}

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

type Between = [domain: number, fromDay: number, toDay: number, among: string];

/** What the alert rules read and remember. `domain` is always the `number` of a domain. */
export const createAlertRuleStore = ({ sqlite }: Db) => {
  const unreviewed = sqlite.prepare<{ number: number }, [number, number]>(
    "SELECT number FROM dmarc_domains WHERE is_unreviewed = 1 AND deleted_at_ms IS NULL AND number > ? ORDER BY number LIMIT ?",
  );
  const clear = sqlite.prepare<unknown, [number]>("UPDATE dmarc_domains SET is_unreviewed = 0 WHERE number = ?");
  const sources = sqlite.prepare<UnreviewedSource, [number, number]>(
    `SELECT number, key, first_day firstDay, first_seen_at_ms firstSeenAtMs FROM dmarc_sources
      WHERE domain = ? AND is_reviewed = 0 LIMIT ?`,
  );
  const markSources = sqlite.prepare<unknown, [string]>(
    "UPDATE dmarc_sources SET is_reviewed = 1 WHERE number IN (SELECT value FROM json_each(?))",
  );
  const sourceDays = sqlite.prepare<SourceDay, Between>(
    `SELECT source, day, messages, aligned, forwarded FROM dmarc_daily
      WHERE domain = ? AND day BETWEEN ? AND ? AND source IN (SELECT value FROM json_each(?))`,
  );
  const names = sqlite.prepare<UnreviewedName, [number, number]>(
    "SELECT name, first_day firstDay FROM dmarc_names WHERE domain = ? AND is_reviewed = 0 LIMIT ?",
  );
  const markNames = sqlite.prepare<unknown, [number, string]>(
    "UPDATE dmarc_names SET is_reviewed = 1 WHERE domain = ? AND name IN (SELECT value FROM json_each(?))",
  );
  const nameDays = sqlite.prepare<NameDay, Between>(
    `SELECT name, day, messages, aligned FROM dmarc_daily_names
      WHERE domain = ? AND day BETWEEN ? AND ? AND name IN (SELECT value FROM json_each(?))`,
  );
  const silent = sqlite.prepare<{ number: number; lastReportAtMs: number }, [number, number, number]>(
    `SELECT number, last_report_at_ms lastReportAtMs FROM dmarc_domains d
      WHERE number > ? AND last_report_at_ms <= ? AND mode = 'live' AND status = 'active' AND monitoring_enabled = 1
        AND deleted_at_ms IS NULL
        AND NOT EXISTS (SELECT 1 FROM dmarc_alerts a WHERE a.domain = d.number AND a.rule = 'reports_stopped'
          AND a.subject = date(d.last_report_at_ms / 1000, 'unixepoch'))
      ORDER BY number LIMIT ?`,
  );
  const reportedDays = sqlite.prepare<{ days: number }, [number, number]>(
    "SELECT count(*) days FROM (SELECT DISTINCT day FROM dmarc_daily_reporters WHERE domain = ? LIMIT ?)",
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

    unreviewedSources: (domain: number, limit: number): UnreviewedSource[] => sources.all(domain, limit),
    markSources: (_tx: Tx, numbers: readonly number[]): void => void markSources.run(JSON.stringify(numbers)),
    /** What each of some sources sent on each day. */
    sourceDays: (domain: number, range: DayRange, among: readonly number[]): SourceDay[] =>
      sourceDays.all(...between(domain, range, among)),

    unreviewedNames: (domain: number, limit: number): UnreviewedName[] => names.all(domain, limit),
    markNames: (_tx: Tx, domain: number, among: readonly string[]): void =>
      void markNames.run(domain, JSON.stringify(among)),
    nameDays: (domain: number, range: DayRange, among: readonly string[]): NameDay[] =>
      nameDays.all(...between(domain, range, among)),

    /** Live domains whose last report arrived at `beforeMs` or earlier, and which nobody was told of since. */
    silentDomains: (after: number, beforeMs: number, limit: number): { number: number; lastReportAtMs: number }[] =>
      silent.all(after, beforeMs, limit),
    /** On how many days there were reports; counted up to `max`. */
    countReportedDays: (domain: number, max: number): number => reportedDays.get(domain, max)?.days ?? 0,
  };
};

export type AlertRuleStore = ReturnType<typeof createAlertRuleStore>;
