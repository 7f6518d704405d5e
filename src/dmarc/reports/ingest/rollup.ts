import type { ReportRow } from "../report/report-row.ts";
import type { RowFacts } from "./source-key.ts";

/** Messages by their results: of a source on a day in `dmarc_daily`, whose columns have these names. Not aligned: failed DMARC. */
export interface Counts {
  messages: number;
  /** Passed DMARC: by aligned DKIM or aligned SPF. */
  aligned: number;
  alignedDkim: number;
  alignedSpf: number;
  /** Not aligned, but forwarded by a host that the receiver trusts. */
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

/** A reporter, by the name in its reports and by who sent them. */
export interface CountedReporter {
  /** In lower case; empty for one without. */
  readonly reporter: string;
  /** The organizational domain that its mail is authenticated as, or `UNAUTHENTICATED`; empty for what the owner uploaded. */
  readonly author: string;
}

/** The author of all mail that is not authenticated. Never a domain. */
export const UNAUTHENTICATED = "unauthenticated";

export interface NameCounts {
  messages: number;
  aligned: number;
}

/** A day of a domain, with who vouches for what is counted: see `ReporterStore`. */
export interface CountedDay {
  readonly day: number;
  readonly voucher: number;
}

/** What reports contribute to one day of one domain. */
export interface DayRollup extends CountedDay {
  /** By `number` of the source. */
  readonly sources: Map<number, Counts>;
  /** By name and author together. */
  readonly reporters: Map<string, CountedReporter & ReporterCounts>;
  /** By header_from domain, as `nameOf` returns it. */
  readonly names: Map<string, NameCounts>;
}

/** By `number` of the domain, then by day and trust. */
export type Rollup = Map<number, Map<string, DayRollup>>;

/** A row with its facts, its source, and the name under which it is counted. */
export interface CountedRow {
  readonly row: Pick<ReportRow, "count" | "disposition">;
  readonly facts: RowFacts;
  readonly source: number;
  readonly name: string;
}

/** The header_from domain under which a row is counted: the domain or one below it; empty for all others and for none. */
export const nameOf = (headerFrom: string | null, domain: string): string =>
  headerFrom !== null && (headerFrom === domain || headerFrom.endsWith(`.${domain}`)) ? headerFrom : "";

/** The rollup of a day; created if there is none yet. */
export const dayIn = (rollup: Rollup, domain: number, { day, voucher }: CountedDay): DayRollup =>
  entryOf(
    entryOf(rollup, domain, () => new Map()),
    `${day} ${voucher}`,
    () => ({ day, voucher, sources: new Map(), reporters: new Map(), names: new Map() }),
  );

/** Counts a report of a reporter. Its messages are counted with its rows. */
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

/** The value of a key; created if there is none yet. */
export const entryOf = <K, V>(map: Map<K, V>, key: K, create: () => V): V => {
  const found = map.get(key);
  if (found !== undefined) return found;
  const made = create();
  map.set(key, made);
  return made;
};

const noReports = (): ReporterCounts => ({ reports: 0, messages: 0, aligned: 0 });
const noMessages = (): NameCounts => ({ messages: 0, aligned: 0 });
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
