import type { Tx } from "../../../foundation/db/open.ts";
import type { ReportRow } from "../report/report-row.ts";
import type { DomainRow } from "../../records/domains/domain-store.ts";
import { VOUCHED_AS_KNOWN } from "../../records/domains/reporter-store.ts";
import {
  entryOf,
  nameOf,
  type CountedRow,
  OVERFLOW_REST,
  isUnproven,
  legacyKeyOf,
  overflowKeyOf,
  type RowFacts,
} from "./rollup.ts";
import type { FirstSight, SeenSourceStore } from "./seen-source-store.ts";

/** header_from domains of one domain that are counted apart, so that random ones cannot fill the database. */
export const NAMES_MAX = 1_000;
/** Addresses of one report that are queued for DNS lookups. */
export const QUEUED_PER_REPORT_MAX = 200;
/** While this number of addresses waits for DNS lookups, no more are queued. */
export const WAITING_ADDRESSES_MAX = 20_000;

/** Sources of one domain: reading them holds all of them in memory. */
export const SOURCES_MAX = 20_000;
/** The part of them that may be addresses for which nothing authenticated, so that forged mail cannot displace senders. */
export const UNPROVEN_PART = 1 / 2;
/** Sources without an address, which count what is beyond `SOURCES_MAX`. The last one counts everything else. */
export const OVERFLOW_SOURCES_MAX = 1_000;
/** The part of either that a domain may have before reports that are not trusted add no more. */
export const UNTRUSTED_PART = 1 / 4;
/** Sources that one report that is not trusted may add. */
export const UNTRUSTED_SOURCES_PER_REPORT_MAX = 2_000;

/** What one report may still add. */
export interface SourceAllowance {
  /** Addresses queued for DNS lookups. */
  readonly addresses: number;
  readonly sources: number;
  /** Whether the owner or a known reporter vouches for it. */
  readonly isKnown: boolean;
}

/** A report of a known reporter may add any number of sources, so that the counts do not depend on the order of reports. */
export const sourceAllowance = (voucher: number): SourceAllowance => {
  const isKnown = voucher === VOUCHED_AS_KNOWN;
  const sources = isKnown ? Number.POSITIVE_INFINITY : UNTRUSTED_SOURCES_PER_REPORT_MAX;
  return { addresses: QUEUED_PER_REPORT_MAX, sources, isKnown };
};

/** A row and its position in its report. */
export interface PlacedRow {
  readonly row: ReportRow;
  readonly position: number;
}

/** The rows in the order in which they use up the report's allowance: those with the most messages first. */
export const heaviestFirst = (rows: readonly ReportRow[]): readonly PlacedRow[] => {
  const placed = rows.map((row, position) => ({ row, position }));
  return rows.length <= QUEUED_PER_REPORT_MAX ? placed : placed.toSorted((a, b) => b.row.count - a.row.count);
};

/** The name under which all header_from domains beyond `NAMES_MAX` are counted. */
export const otherNamesOf = (domain: string): string => `*.${domain}`;

interface Source {
  readonly number: number;
  readonly key: string;
  firstDay: number;
  lastDay: number;
  /** Whether its days have to be written. */
  isExtended: boolean;
  /** Whether its address is queued for DNS lookups, or need not be. */
  isQueued: boolean;
  isVouched: boolean;
}

/** Messages of an address on a day. */
export interface SourceSighting {
  readonly ip: string;
  readonly day: number;
  /** See `sourceKeyOf`. */
  readonly key: string;
}

/** The name under which a header_from domain is counted. */
interface CountedName {
  readonly name: string;
  firstDay: number;
}

interface NamesOfDomain {
  /** By header_from domain. */
  readonly known: Map<string, CountedName>;
  /** How many the database has; null until it is needed. */
  count: number | null;
}

export interface WriteContext {
  readonly tx: Tx;
  readonly nowMs: number;
}

type CountedDomain = Pick<DomainRow, "number" | "domain" | "mode">;

/**
 * Finds or creates the sources and names under which the rows of reports are counted, within one transaction. It caches
 * them, so that what many rows have in common is looked up and written once. `flush` writes their days and empties the cache.
 */
export class RowCounter {
  readonly #sources = new Map<string, Source>();
  readonly #names = new Map<number, NamesOfDomain>();
  /** By domain. */
  readonly #sourceCounts = new Map<number, number>();
  readonly #overflowCounts = new Map<number, number>();
  readonly #hasLegacy = new Map<number, boolean>();
  readonly #queued = new Set<string>();
  #left: SourceAllowance = sourceAllowance(VOUCHED_AS_KNOWN);
  #waitingAddresses: number | null = null;

  constructor(
    private readonly store: SeenSourceStore,
    private readonly deps: WriteContext,
  ) {}

  /** To be called before the rows of each report, and before the next rows of one with what it may still add. */
  beginReport(allowance: SourceAllowance): void {
    this.#left = allowance;
  }

  /** What the report may still add. */
  allowance(): SourceAllowance {
    return this.#left;
  }

  /** The number of the source of messages. */
  sourceOf(domain: CountedDomain, sighting: SourceSighting): number {
    return this.#see(domain, sighting).number;
  }

  /** A row with its source and the name under which it is counted. */
  place(domain: DomainRow, day: number, row: ReportRow, facts: RowFacts): CountedRow {
    const source = this.#see(domain, { ip: row.sourceIp, day, key: facts.key });
    const name = nameOf(row.headerFrom, domain.domain);
    return { row, facts, source: source.number, name: name === "" ? name : this.#countedName(domain, name, day) };
  }

  /** Writes the days of the sources. */
  flush(): void {
    for (const source of this.#sources.values()) if (source.isExtended) this.store.extend(this.deps.tx, source);
    for (const cache of [this.#sources, this.#names, this.#sourceCounts, this.#overflowCounts, this.#hasLegacy]) {
      cache.clear();
    }
  }

  #see(domain: CountedDomain, sighting: SourceSighting): Source {
    const source = this.#source(domain.number, sighting);
    const { day } = sighting;
    const isLater = day > source.lastDay;
    if (isLater || day < source.firstDay) {
      source.firstDay = Math.min(source.firstDay, day);
      source.lastDay = Math.max(source.lastDay, day);
      source.isExtended = true;
    }
    if (this.#left.isKnown && !source.isVouched) {
      this.store.vouch(this.deps.tx, source.number);
      source.isVouched = true;
    }
    if (source.key.startsWith("*")) return source;
    // Tried again each day: the allowance may have been used up.
    if (isLater) source.isQueued = false;
    source.isQueued ||= this.#queue(domain, sighting.ip);
    return source;
  }

  /** The source with a key, or the one for everything beyond the limit of the domain. */
  #source(domain: number, sighting: Omit<SourceSighting, "ip">): Source {
    const { key } = sighting;
    const id = `${domain} ${key}`;
    const found = this.#sources.get(id) ?? this.#findOrInsert(domain, sighting);
    if (found === null) {
      const next = overflowKeyOf(key);
      // Not cached under this key: the limit may not apply to the next report.
      return this.#source(domain, { ...sighting, key: next === key ? OVERFLOW_REST : next });
    }
    this.#sources.set(id, found);
    return found;
  }

  /** Null when the domain has reached its limit. */
  #findOrInsert(domain: number, { key, day }: Omit<SourceSighting, "ip">): Source | null {
    const found = this.store.find(domain, key);
    if (found !== null) return { ...found, key, isExtended: false, isQueued: true };
    const isOverflow = key.startsWith("*");
    if (isOverflow ? key !== OVERFLOW_REST && !this.#takeOverflow(domain) : !this.#takeSource(domain, key)) return null;
    const isVouched = this.#left.isKnown;
    const number = this.store.insert(this.deps.tx, domain, key, { ...this.#firstSight(domain, key), day, isVouched });
    return { number, key, firstDay: day, lastDay: day, isExtended: false, isQueued: isOverflow, isVouched };
  }

  /** A source that the rebuild has not moved to its new key yet is not new. */
  #firstSight(domain: number, key: string): Pick<FirstSight, "atMs" | "isReviewed"> {
    const hasLegacy = entryOf(this.#hasLegacy, domain, () => this.store.hasLegacy(domain));
    const before = hasLegacy ? this.store.findLegacy(domain, legacyKeyOf(key)) : null;
    return before ?? { atMs: this.deps.nowMs, isReviewed: false };
  }

  /** Takes one source off what the domain and the report may have; false when nothing is left. */
  #takeSource(domain: number, key: string) {
    const count = entryOf(this.#sourceCounts, domain, () => this.store.count(domain));
    const max = isUnproven(key) ? SOURCES_MAX * UNPROVEN_PART : SOURCES_MAX;
    if (this.#left.sources <= 0 || count >= this.#limitOf(max)) return false;
    this.#left = { ...this.#left, sources: this.#left.sources - 1 };
    this.#sourceCounts.set(domain, count + 1);
    return true;
  }

  #takeOverflow(domain: number) {
    const count = entryOf(this.#overflowCounts, domain, () => this.store.countOverflow(domain));
    if (count >= this.#limitOf(OVERFLOW_SOURCES_MAX)) return false;
    this.#overflowCounts.set(domain, count + 1);
    return true;
  }

  #limitOf(max: number) {
    return this.#left.isKnown ? max : Math.floor(max * UNTRUSTED_PART);
  }

  /** Queues an address for DNS lookups; false when the report has used up its allowance. */
  #queue(domain: CountedDomain, ip: string) {
    // No DNS lookups for test keys.
    if (domain.mode === "test" || this.#queued.has(ip)) return true;
    this.#waitingAddresses ??= this.store.countQueued(this.deps.nowMs, WAITING_ADDRESSES_MAX);
    if (this.#left.addresses <= 0 || this.#waitingAddresses >= WAITING_ADDRESSES_MAX) return false;
    this.#queued.add(ip);
    if (!this.store.queueAddress(this.deps.tx, ip, this.deps.nowMs)) return true;
    this.#left = { ...this.#left, addresses: this.#left.addresses - 1 };
    this.#waitingAddresses += 1;
    return true;
  }

  #countedName(domain: DomainRow, name: string, day: number) {
    const names = entryOf(this.#names, domain.number, () => ({ known: new Map<string, CountedName>(), count: null }));
    const counted = entryOf(names.known, name, () => this.#findOrInsertName(domain, names, { name, day }));
    if (day < counted.firstDay) {
      counted.firstDay = day;
      this.store.setFirstDayOfName(this.deps.tx, domain.number, counted.name, day);
    }
    return counted.name;
  }

  #findOrInsertName(domain: DomainRow, names: NamesOfDomain, seen: { name: string; day: number }): CountedName {
    const { name, day } = seen;
    const firstDay = this.store.firstDayOfName(domain.number, name);
    if (firstDay !== null) return { name, firstDay };
    names.count ??= this.store.countNames(domain.number);
    const others = otherNamesOf(domain.domain);
    // The domain itself and the name for all others are exempt from the limit.
    if (names.count >= NAMES_MAX && name !== domain.domain && name !== others) {
      return entryOf(names.known, others, () => this.#findOrInsertName(domain, names, { name: others, day }));
    }
    this.store.insertName(this.deps.tx, domain.number, name, { day, atMs: this.deps.nowMs });
    names.count += 1;
    return { name, firstDay: day };
  }
}
