import type { Tx } from "../../db/open.ts";
import type { DomainRow } from "../domains/domain-store.ts";
import type { RowFacts } from "./row-facts.ts";
import type { CountStore } from "./count-store.ts";
import type { ReportRow } from "../report/report-row.ts";
import { type CountedRow, entryOf, nameOf, type Rollup } from "./rollup.ts";
import { legacyKeyOf, OVERFLOW_REST, overflowKeyOf, isUnproven } from "./source-key.ts";

/** Names below a domain that are told apart. Who sends under random ones must not fill the database. */
export const NAMES_MAX = 1_000;
/** Addresses of one report that are queued for the DNS. */
export const QUEUED_PER_REPORT_MAX = 200;
/** Addresses that wait for the DNS: while there are so many, no more are queued. */
export const WAITING_ADDRESSES_MAX = 20_000;

/** Sources that a domain may have: reading sources holds all of them in memory. */
export const SOURCES_MAX = 20_000;
/** Addresses that proved nothing get no more than this part of it, so that a flood of forged mail leaves room for senders. */
export const UNPROVEN_PART = 1 / 2;
/** Sources without an address that count what a domain has no room for. The last of them takes everything. */
export const OVERFLOW_SOURCES_MAX = 1_000;
/** Reports that are not trusted add no source to a domain that has more than this part of either. */
export const UNTRUSTED_PART = 1 / 4;
/** Sources that a report that is not trusted may add. */
export const UNTRUSTED_SOURCES_PER_REPORT_MAX = 2_000;

/** What one report may still add. */
export interface SourceAllowance {
  /** Addresses queued for the DNS. */
  readonly addresses: number;
  readonly sources: number;
  readonly isTrusted: boolean;
}

/** A trusted report may add any number of sources, so that what is counted does not depend on the order of reports. */
export const sourceAllowance = ({ isTrusted }: Pick<SourceAllowance, "isTrusted">): SourceAllowance => ({
  addresses: QUEUED_PER_REPORT_MAX,
  sources: isTrusted ? Number.POSITIVE_INFINITY : UNTRUSTED_SOURCES_PER_REPORT_MAX,
  isTrusted,
});

/** A row and its place in its report. */
export interface PlacedRow {
  readonly row: ReportRow;
  readonly position: number;
}

/** The rows in the order in which they use up what a report may add: those with the most messages first. */
export const heaviestFirst = (rows: readonly ReportRow[]): readonly PlacedRow[] => {
  const placed = rows.map((row, position) => ({ row, position }));
  return rows.length <= QUEUED_PER_REPORT_MAX ? placed : placed.toSorted((a, b) => b.row.count - a.row.count);
};

/** The name that stands for all beyond `NAMES_MAX`. */
export const otherNamesOf = (domain: string): string => `*.${domain}`;

interface Source {
  readonly number: number;
  readonly key: string;
  firstDay: number;
  lastDay: number;
  /** Whether its days are others than the database has. */
  isExtended: boolean;
  /** Whether its address is known to the DNS job, or need not be. */
  isQueued: boolean;
  /** Whether a trusted report names it. */
  isVouched: boolean;
}

/** Messages of an address on a day. */
export interface SourceSighting {
  readonly ip: string;
  readonly day: number;
  /** As `sourceKeyOf` says. */
  readonly key: string;
}

/** The name that a name in `From` is counted under. */
interface Name {
  readonly name: string;
  firstDay: number;
}

interface Names {
  /** By the name in `From`. */
  readonly known: Map<string, Name>;
  /** How many the database has; null while nobody needed to know. */
  count: number | null;
}

export interface WriteContext {
  readonly tx: Tx;
  readonly nowMs: number;
}

type CountedDomain = Pick<DomainRow, "number" | "domain" | "mode">;

/**
 * Finds sources and names for the rows of some reports inside one transaction, and caches them until its end, so that
 * what many rows have in common is looked up and written once. The cache is void when the transaction is undone.
 */
export const createRowCounter = (store: CountStore, { tx, nowMs }: WriteContext) => {
  const sources = new Map<string, Source>();
  const namesByDomain = new Map<number, Names>();
  /** How many sources the domains have; asked for only when one more turns up. */
  const sourceCounts = new Map<number, number>();
  const overflowCounts = new Map<number, number>();
  const legacyDomains = new Map<number, boolean>();
  const queued = new Set<string>();
  let left: SourceAllowance = sourceAllowance({ isTrusted: true });
  let waiting: number | null = null;

  /** False when the report has had its share. */
  const queue = (domain: CountedDomain, ip: string): boolean => {
    // Nothing is asked of the DNS for test keys.
    if (domain.mode === "test" || queued.has(ip)) return true;
    waiting ??= store.countWaiting(nowMs, WAITING_ADDRESSES_MAX);
    if (left.addresses <= 0 || waiting >= WAITING_ADDRESSES_MAX) return false;
    queued.add(ip);
    if (!store.queueAddress(tx, ip, nowMs)) return true;
    left = { ...left, addresses: left.addresses - 1 };
    waiting += 1;
    return true;
  };

  const limitOf = (max: number): number => (left.isTrusted ? max : Math.floor(max * UNTRUSTED_PART));

  /** Whether the domain may have one more source, which is then counted. */
  const hasRoom = (domain: number, key: string): boolean => {
    const count = entryOf(sourceCounts, domain, () => store.countSources(domain));
    const max = isUnproven(key) ? SOURCES_MAX * UNPROVEN_PART : SOURCES_MAX;
    if (left.sources <= 0 || count >= limitOf(max)) return false;
    left = { ...left, sources: left.sources - 1 };
    sourceCounts.set(domain, count + 1);
    return true;
  };

  const hasOverflowRoom = (domain: number): boolean => {
    const count = entryOf(overflowCounts, domain, () => store.countOverflowSources(domain));
    if (count >= limitOf(OVERFLOW_SOURCES_MAX)) return false;
    overflowCounts.set(domain, count + 1);
    return true;
  };

  /** A source that the rebuild has not reached yet under its new key is not new. */
  const firstSightOf = (domain: number, { key, day }: Omit<SourceSighting, "ip">) => {
    const hasLegacy = entryOf(legacyDomains, domain, () => store.hasLegacySources(domain));
    const before = hasLegacy ? store.findLegacySource(domain, legacyKeyOf(key)) : null;
    return { day, isVouched: left.isTrusted, ...(before ?? { atMs: nowMs, isReviewed: false }) };
  };

  /** Null for one that the domain does not have and may not have. */
  const openSource = (domain: number, see: Omit<SourceSighting, "ip">): Source | null => {
    const { key, day } = see;
    const found = store.findSource(domain, key);
    if (found !== null) return { ...found, key, isExtended: false, isQueued: true };
    const isOverflow = key.startsWith("*");
    if (isOverflow ? key !== OVERFLOW_REST && !hasOverflowRoom(domain) : !hasRoom(domain, key)) return null;
    const number = store.insertSource(tx, domain, key, firstSightOf(domain, see));
    return {
      number,
      key,
      firstDay: day,
      lastDay: day,
      isExtended: false,
      isQueued: isOverflow,
      isVouched: left.isTrusted,
    };
  };

  /** The source of a key; what there is no room for is counted together. */
  const sourceOf = (domain: number, see: Omit<SourceSighting, "ip">): Source => {
    const { key } = see;
    const id = `${domain} ${key}`;
    const overflow = (): Source => {
      const next = overflowKeyOf(key);
      return sourceOf(domain, { ...see, key: next === key ? OVERFLOW_REST : next });
    };
    const found = sources.get(id) ?? openSource(domain, see) ?? overflow();
    // What has no room in this report may have some in the next.
    if (found.key === key) sources.set(id, found);
    return found;
  };

  /** The source of messages, stored from now on; its days reach to that of the messages. */
  const find = (domain: CountedDomain, see: SourceSighting): Source => {
    const source = sourceOf(domain.number, see);
    const { day } = see;
    const isLater = day > source.lastDay;
    if (isLater || day < source.firstDay) {
      source.firstDay = Math.min(source.firstDay, day);
      source.lastDay = Math.max(source.lastDay, day);
      source.isExtended = true;
    }
    if (left.isTrusted && !source.isVouched) {
      store.vouch(tx, source.number);
      source.isVouched = true;
    }
    if (source.key.startsWith("*")) return source;
    // Once a day, in case its share was used up before.
    if (isLater) source.isQueued = false;
    source.isQueued ||= queue(domain, see.ip);
    return source;
  };

  const countedName = (domain: DomainRow, name: string, day: number): string => {
    const names = entryOf(namesByDomain, domain.number, noNames);
    const counted = entryOf(names.known, name, () => rememberName(domain, names, { name, day }));
    if (day < counted.firstDay) {
      counted.firstDay = day;
      store.putBackName(tx, domain.number, counted.name, day);
    }
    return counted.name;
  };

  /** Finds a name, or writes it down; when there are too many, the one for all others. */
  const rememberName = (domain: DomainRow, names: Names, { name, day }: { name: string; day: number }): Name => {
    const firstDay = store.firstDayOfName(domain.number, name);
    if (firstDay !== null) return { name, firstDay };
    names.count ??= store.countNames(domain.number);
    const others = otherNamesOf(domain.domain);
    // The domain's own name and the one for all others always have a place.
    if (names.count >= NAMES_MAX && name !== domain.domain && name !== others) {
      return entryOf(names.known, others, () => rememberName(domain, names, { name: others, day }));
    }
    store.insertName(tx, domain.number, name, { day, atMs: nowMs });
    names.count += 1;
    return { name, firstDay: day };
  };

  return {
    /** Called before the rows of each report, or of the next part of one with what it may still add. */
    beginReport(allowance: SourceAllowance): void {
      left = allowance;
    },
    /** What the report may still add. */
    allowance: (): SourceAllowance => left,
    /** The number of the source of messages, stored from now on. */
    sourceOf: (domain: CountedDomain, see: SourceSighting): number => find(domain, see).number,
    /** The source of a row and the name it is counted under, both stored from now on. */
    place(domain: DomainRow, day: number, row: ReportRow, facts: RowFacts): CountedRow {
      const source = find(domain, { ip: row.sourceIp, day, key: facts.key });
      const name = nameOf(row.headerFrom, domain.domain);
      return { row, facts, source: source.number, name: name === "" ? name : countedName(domain, name, day) };
    },
    /** Writes what is known of the sources, and what was counted. */
    flush(rollup: Rollup): void {
      for (const source of sources.values()) if (source.isExtended) store.extendSource(tx, source);
      for (const cached of [sources, namesByDomain, sourceCounts, overflowCounts, legacyDomains]) cached.clear();
      writeRollup(store, tx, rollup);
    },
  };
};

const noNames = (): Names => ({ known: new Map(), count: null });

const writeRollup = (store: CountStore, tx: Tx, rollup: Rollup): void => {
  for (const [domain, days] of rollup) {
    for (const { day, isTrusted, sources, reporters, names } of days.values()) {
      const place = { domain, day, isTrusted };
      for (const [key, counts] of sources) store.count(tx, { ...place, key }, counts);
      for (const counts of reporters.values()) store.countReporter(tx, { ...place, key: counts }, counts);
      for (const [key, counts] of names) store.countName(tx, { ...place, key }, counts);
    }
  }
};

export type RowCounter = ReturnType<typeof createRowCounter>;
