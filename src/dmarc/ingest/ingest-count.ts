import type { Tx } from "../../db/open.ts";
import type { DomainRow } from "../domains/domain-store.ts";
import type { RowFacts } from "./ingest-row.ts";
import type { CountStore } from "./ingest-store.ts";
import type { ReportRow } from "../report/report-row.ts";
import { type CountedRow, entryOf, nameOf, type Rollup } from "./rollup.ts";
import { kindOfSource, OTHER_SOURCES } from "./source-key.ts";

/** Addresses kept of a source that is known by its domain: the most recent ones. */
export const SOURCE_ADDRESSES_MAX = 8;
/** Names below a domain that are told apart. Who sends under random ones must not fill the database. */
export const NAMES_MAX = 1_000;
/** Addresses of one report whose names the DNS is asked for. */
export const QUEUED_PER_REPORT_MAX = 200;

/** Sources that one report may bring which the domain did not have before, and that a domain may have. */
export const NEW_SOURCES_PER_REPORT_MAX = 2_000;
export const SOURCES_MAX = 20_000;
/** Addresses that wait for the DNS: while there are so many, no more are put on the list. */
export const WAITING_ADDRESSES_MAX = 20_000;

/** What one report may still bring. */
export interface Allowance {
  /** Addresses whose names the DNS is asked for. */
  readonly addresses: number;
  readonly sources: number;
}

const FULL_ALLOWANCE: Allowance = { addresses: QUEUED_PER_REPORT_MAX, sources: NEW_SOURCES_PER_REPORT_MAX };

/** The name that stands for all beyond `NAMES_MAX`. */
export const otherNamesOf = (domain: string): string => `*.${domain}`;

interface Source {
  readonly number: number;
  readonly key: string;
  firstDay: number;
  lastDay: number;
  /** Whether its days are others than the database has. */
  isExtended: boolean;
  /** Whether the DNS is, or will be, asked for the name of its address; of use for `ip:` only. */
  isQueued: boolean;
  /** Address → last day; null where none are kept. */
  readonly addresses: Map<string, number> | null;
  readonly changed: Set<string>;
  readonly gone: Set<string>;
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

export interface Context {
  readonly tx: Tx;
  readonly nowMs: number;
}

/**
 * Finds sources and names for the rows of some reports inside one transaction, and remembers them until its end, so that
 * what many rows have in common is looked up and written once. What it knows is void when the transaction is undone.
 */
export const createCounting = (store: CountStore, { tx, nowMs }: Context) => {
  const sources = new Map<string, Source>();
  const namesByDomain = new Map<number, Names>();
  /** How many sources the domains have; asked for only when one more turns up. */
  const sourceCounts = new Map<number, number>();
  let addressesLeft = 0;
  let newSourcesLeft = 0;
  let waiting: number | null = null;

  /** False when the report has had its share. */
  const queue = (domain: DomainRow, ip: string): boolean => {
    // Nothing is asked of the DNS for test keys.
    if (domain.mode === "test") return true;
    waiting ??= store.countWaiting(nowMs, WAITING_ADDRESSES_MAX);
    if (addressesLeft <= 0 || waiting >= WAITING_ADDRESSES_MAX) return false;
    addressesLeft -= 1;
    waiting += 1;
    store.queueAddress(tx, ip, nowMs);
    return true;
  };

  /** Whether the domain may have one more source, which is then counted. */
  const hasRoom = (domain: number): boolean => {
    const count = entryOf(sourceCounts, domain, () => store.countSources(domain));
    if (newSourcesLeft <= 0 || count >= SOURCES_MAX) return false;
    newSourcesLeft -= 1;
    sourceCounts.set(domain, count + 1);
    return true;
  };

  /** Null for one that the domain does not have and may not have. */
  const openSource = (domain: number, key: string, day: number): Source | null => {
    const found = store.findSource(domain, key);
    const isNew = found === null;
    if (isNew && key !== OTHER_SOURCES && !hasRoom(domain)) return null;
    const number = found?.number ?? store.insertSource(tx, domain, key, { day, atMs: nowMs });
    const kept = isNew ? [] : store.addressesOf(number);
    const addresses =
      kindOfSource(key) === "ip" || key === OTHER_SOURCES
        ? null
        : new Map(kept.map(({ ip, lastDay }) => [ip, lastDay]));
    const { firstDay, lastDay } = found ?? { firstDay: day, lastDay: day };
    const memory = { addresses, changed: new Set<string>(), gone: new Set<string>() };
    return { number, key, firstDay, lastDay, isExtended: false, isQueued: !isNew, ...memory };
  };

  /** The source of a key; what there is no room for is counted together. */
  const sourceOf = (domain: DomainRow, key: string, day: number): Source => {
    const id = `${domain.number} ${key}`;
    const found = sources.get(id) ?? openSource(domain.number, key, day) ?? sourceOf(domain, OTHER_SOURCES, day);
    // What has no room in this report may have some in the next.
    if (found.key === key) sources.set(id, found);
    return found;
  };

  /** Follows a source to a day and an address of it. */
  const follow = (source: Source, day: number, see: { readonly domain: DomainRow; readonly ip: string }): void => {
    const { domain, ip } = see;
    // Once a day, in case its share was used up before.
    if (day > source.lastDay) source.isQueued = false;
    if (day > source.lastDay || day < source.firstDay) {
      source.firstDay = Math.min(source.firstDay, day);
      source.lastDay = Math.max(source.lastDay, day);
      source.isExtended = true;
    }
    // Many addresses in one: none of them is its own.
    if (source.key === OTHER_SOURCES) return;
    if (source.addresses === null) source.isQueued ||= queue(domain, ip);
    else if (keepAddress(source, source.addresses, { ip, day })) queue(domain, ip);
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
    /** Called before the rows of each report, or of the next part of one with what it may still bring. */
    beginReport({ addresses, sources: more }: Allowance = FULL_ALLOWANCE): void {
      addressesLeft = addresses;
      newSourcesLeft = more;
    },
    /** What the report may still bring. */
    allowance: (): Allowance => ({ addresses: addressesLeft, sources: newSourcesLeft }),
    /** The source of a row and the name it is counted under, both stored from now on. */
    place(domain: DomainRow, day: number, row: ReportRow, facts: RowFacts): CountedRow {
      const source = sourceOf(domain, facts.key, day);
      follow(source, day, { domain, ip: row.sourceIp });
      const name = nameOf(row.headerFrom, domain.domain);
      return { row, facts, source: source.number, name: name === "" ? name : countedName(domain, name, day) };
    },
    /** Writes what is known of the sources, and what was counted. */
    flush(rollup: Rollup): void {
      for (const source of sources.values()) {
        if (source.isExtended) store.extendSource(tx, source);
        for (const ip of source.gone) store.removeAddress(tx, source.number, ip);
        for (const ip of source.changed) store.putAddress(tx, source.number, ip, source.addresses?.get(ip) ?? 0);
      }
      sources.clear();
      namesByDomain.clear();
      sourceCounts.clear();
      writeRollup(store, tx, rollup);
    },
  };
};

const noNames = (): Names => ({ known: new Map(), count: null });

/** Keeps an address of a source unless there are more recent ones enough; true when that is news. */
const keepAddress = (source: Source, addresses: Map<string, number>, see: { ip: string; day: number }): boolean => {
  const { ip, day } = see;
  const lastDay = addresses.get(ip);
  if (lastDay === undefined && addresses.size >= SOURCE_ADDRESSES_MAX) {
    const [oldest] = [...addresses].toSorted((a, b) => a[1] - b[1]);
    if (oldest === undefined || oldest[1] >= day) return false;
    addresses.delete(oldest[0]);
    source.changed.delete(oldest[0]);
    source.gone.add(oldest[0]);
  }
  if (lastDay !== undefined && lastDay >= day) return false;
  addresses.set(ip, day);
  source.changed.add(ip);
  source.gone.delete(ip);
  return true;
};

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

export type Counting = ReturnType<typeof createCounting>;
