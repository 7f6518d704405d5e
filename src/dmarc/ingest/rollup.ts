import type { RowFacts } from "./row-facts.ts";
import type { ReportRow } from "../report/report-row.ts";

/** How messages fared; of a source on a day in `dmarc_daily`, whose columns have these names. What is not aligned failed DMARC. */
export interface Counts {
  messages: number;
  /** Passed DMARC: by aligned DKIM or aligned SPF. */
  aligned: number;
  alignedDkim: number;
  alignedSpf: number;
  /** Not aligned, but passed on by somebody the receiver knows. */
  forwarded: number;
  /** Not aligned, although DKIM or SPF passed for some other domain. */
  authenticated: number;
  quarantined: number;
  rejected: number;
}

export interface ReporterCounts {
  reports: number;
  messages: number;
  aligned: number;
}

/** A reporter by the name that its reports give and by who sent them. */
export interface CountedReporter {
  /** In lower case; empty for one without. */
  readonly reporter: string;
  /** The organisational domain that its mail is authenticated as, or `UNAUTHENTICATED`; empty for what the owner handed in. */
  readonly author: string;
}

/** The author of all whose mail is not authenticated. Never a domain. */
export const UNAUTHENTICATED = "unauthenticated";

export interface NameCounts {
  messages: number;
  aligned: number;
}

/** A day of a domain, of reports that are trusted or of others: they are counted apart. */
export interface CountedDay {
  readonly day: number;
  readonly isTrusted: boolean;
}

/** What reports say of one day of one domain. */
export interface DayRollup extends CountedDay {
  /** By `number` of the source. */
  readonly sources: Map<number, Counts>;
  /** By name and author together. */
  readonly reporters: Map<string, CountedReporter & ReporterCounts>;
  /** By the name in `From`, as `nameOf` says. */
  readonly names: Map<string, NameCounts>;
}

/** By `number` of the domain, then by day and trust. */
export type Rollup = Map<number, Map<string, DayRollup>>;

/** A row with what follows from it, its source, and the name that it is counted under. */
export interface CountedRow {
  readonly row: Pick<ReportRow, "count" | "disposition">;
  readonly facts: RowFacts;
  readonly source: number;
  readonly name: string;
}

/** The name in `From` that a row is counted under: the domain's or one below it; empty for all others and for none. */
export const nameOf = (headerFrom: string | null, domain: string): string =>
  headerFrom !== null && (headerFrom === domain || headerFrom.endsWith(`.${domain}`)) ? headerFrom : "";

/** The rollup of a day, empty where there is none yet. */
export const dayIn = (rollup: Rollup, domain: number, { day, isTrusted }: CountedDay): DayRollup =>
  entryOf(
    entryOf(rollup, domain, () => new Map()),
    `${day} ${isTrusted}`,
    () => ({ day, isTrusted, sources: new Map(), reporters: new Map(), names: new Map() }),
  );

/** Counts a report of a reporter; its messages come with its rows. */
export const addReport = (day: DayRollup, of: CountedReporter): ReporterCounts => {
  const counts = entryOf(day.reporters, `${of.author} ${of.reporter}`, () => ({ ...of, ...noReports() }));
  counts.reports += 1;
  return counts;
};

/** Counts the messages of a row. */
export const addMessages = (counts: Counts, { row, facts }: Pick<CountedRow, "row" | "facts">): void => {
  const { count, disposition } = row;
  counts.messages += count;
  if (facts.isAligned) counts.aligned += count;
  if (facts.isDkimAligned) counts.alignedDkim += count;
  if (facts.isSpfAligned) counts.alignedSpf += count;
  if (facts.isForwarded) counts.forwarded += count;
  if (facts.isAuthenticated) counts.authenticated += count;
  if (disposition === "quarantine") counts.quarantined += count;
  if (disposition === "reject") counts.rejected += count;
};

/** Counts a row of a report of `reporter`. */
export const addRow = (day: DayRollup, reporter: ReporterCounts, { row, facts, source, name }: CountedRow): void => {
  const { count } = row;
  const aligned = facts.isAligned ? count : 0;
  addMessages(entryOf(day.sources, source, noCounts), { row, facts });
  reporter.messages += count;
  reporter.aligned += aligned;
  const named = entryOf(day.names, name, noMessages);
  named.messages += count;
  named.aligned += aligned;
};

/** The value of a key, made where there is none yet. */
export const entryOf = <K, V>(map: Map<K, V>, key: K, create: () => V): V => {
  const found = map.get(key);
  if (found !== undefined) return found;
  const made = create();
  map.set(key, made);
  return made;
};

const noReports = (): ReporterCounts => ({ reports: 0, messages: 0, aligned: 0 });
const noMessages = (): NameCounts => ({ messages: 0, aligned: 0 });
/** Nothing was sent, as yet. */
export const noCounts = (): Counts => ({
  messages: 0,
  aligned: 0,
  alignedDkim: 0,
  alignedSpf: 0,
  forwarded: 0,
  authenticated: 0,
  quarantined: 0,
  rejected: 0,
});
