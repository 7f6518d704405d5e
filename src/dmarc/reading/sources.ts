import { isoDay, type DayRange } from "../../base/days.ts";
import { findService, type Service } from "../services/services.ts";
import { percentOf } from "./range.ts";
import { OTHER_SOURCES } from "../ingest/source-key.ts";
import { addressKeyOf, networkOf, readShownKey } from "./source-groups.ts";
import { type Group, judge, organisationOf, type SeenAddress, type Surroundings, wordOf } from "./source-judging.ts";
import type { ShownSource, SourceKind } from "./source-view.ts";
import { addTotals, NO_TOTALS, type ReadingStore, type SourceAddress, type Totals } from "./reading-store.ts";

/** Of a domain, what reading needs. */
export interface ReadDomain {
  readonly number: number;
  readonly id: string;
  readonly domain: string;
}

/** Addresses shown of a source. */
const ADDRESSES_MAX = 8;
/** Reported days after which a source that is not told of has stayed away. */
const QUIET_DAYS = 7;

/** A stored source, the key it is shown under, and what it sent in the range; null for nothing. */
interface KnownSource {
  readonly key: string;
  readonly shownKey: string;
  readonly firstDay: number;
  readonly lastDay: number;
  readonly addresses: readonly SeenAddress[];
  readonly totals: Totals | null;
}

/** Shows who sends in a domain's name. */
export const createSourceReader = ({ store }: { readonly store: ReadingStore }) => {
  const knownOf = ({ number: domain }: ReadDomain, range: DayRange): KnownSource[] => {
    const named = store.addresses(domain);
    const bare = store.bareAddresses(domain);
    const sums = new Map(store.sources(domain, range).map((source) => [source.number, source]));
    return store.allSources(domain).map(({ number, key, firstDay, lastDay, firstSeenAtMs }) => {
      const own = bare.get(number);
      const addresses = own === undefined ? (named.get(number)?.addresses ?? []) : [own];
      return {
        key,
        shownKey: own === undefined ? key : addressKeyOf(own),
        firstDay,
        lastDay,
        addresses: addresses.map((address) => ({ ...address, firstSeenAtMs })),
        totals: sums.get(number) ?? null,
      };
    });
  };

  const surroundingsOf = ({ number, domain }: ReadDomain, known: readonly KnownSource[]): Surroundings => {
    const organisation = organisationOf(domain);
    const ownNetworks = new Set<string>();
    const alignedNetworks = new Set<string>();
    for (const { key, addresses, totals } of known) {
      const proven = readShownKey(key);
      const isOwn = proven !== null && organisationOf(proven.name) === organisation;
      const isAligned = proven === null && totals !== null && totals.aligned > 0;
      if (isOwn) for (const { ip } of addresses) ownNetworks.add(networkOf(ip));
      if (isAligned) for (const { ip } of addresses) alignedNetworks.add(networkOf(ip));
    }
    return {
      organisation,
      ownNetworks,
      alignedNetworks,
      quietSinceDay: store.lateReportedDay(number, QUIET_DAYS) ?? 0,
      words: new Map(store.words(number).map((word) => [word.key, word])),
    };
  };

  /** Shows the sources that are wanted, or without a wish all that sent something in the range. */
  const show = (domain: ReadDomain, range: DayRange, wanted?: readonly string[]): ShownSource[] => {
    const known = knownOf(domain, range);
    const keys = new Set(wanted ?? known.flatMap((one) => (one.totals === null ? [] : one.shownKey)));
    const groups = new Map<string, Group>();
    for (const source of known) if (keys.has(source.shownKey)) addTo(groups, source);
    const around = surroundingsOf(domain, known);
    return [...groups.values()].map((group) => shownOf(group, around)).sort(byWorst);
  };

  return {
    /** The sources that sent something in the range, worst first: see `byWorst`. */
    sources: (domain: ReadDomain, range: DayRange): ShownSource[] => show(domain, range),

    /** One source with its counts in the range, be they none; undefined when no report ever told of it. */
    find: (domain: ReadDomain, key: string, range: DayRange): ShownSource | undefined => show(domain, range, [key])[0],

    /** The numbers of the stored sources that are shown under a key; none when no report ever told of it. */
    numbersOf(domain: ReadDomain, key: string): number[] {
      const kind = readShownKey(key)?.kind;
      const isStored = kind === "dkim" || kind === "spf" || key === OTHER_SOURCES;
      if (isStored) return store.allSources(domain.number).flatMap((row) => (row.key === key ? [row.number] : []));
      const bare = [...store.bareAddresses(domain.number)];
      return bare.flatMap(([number, address]) => (addressKeyOf(address) === key ? [number] : []));
    },

    /**
     * The keys of the words that go when a source's word is taken back: its own, and those of its networks from the time
     * when its reverse name was not known yet, unless something else is in them.
     */
    wordKeysOf(domain: ReadDomain, { key, kind }: Pick<ShownSource, "key" | "kind">): string[] {
      if (kind !== "reverse") return [key];
      const networks = new Set<string>();
      const others = new Set<string>();
      for (const address of store.bareAddresses(domain.number).values()) {
        const isOf = addressKeyOf(address) === key;
        (isOf ? networks : others).add(`net:${networkOf(address.ip)}`);
      }
      return [key, ...networks.difference(others)];
    },
  };
};

export type SourceReader = ReturnType<typeof createSourceReader>;

/** Failing messages that ask for somebody to act: those that were passed on, or come from a forwarder, do not. */
export const troubleOf = ({ classification, failing, forwarded }: ShownSource): number =>
  classification === "forwarder" ? 0 : failing - forwarded;

/** The most trouble first, then the most messages, then by key. */
export const byWorst = (a: ShownSource, b: ShownSource): number =>
  troubleOf(b) - troubleOf(a) || b.messages - a.messages || (a.key < b.key ? -1 : 1);

const addTo = (groups: Map<string, Group>, source: KnownSource): void => {
  const { shownKey: key, firstDay, lastDay, addresses, totals } = source;
  const group = groups.get(key);
  if (group === undefined) {
    groups.set(key, { key, totals: totals ?? NO_TOTALS, firstDay, lastDay, addresses: [...addresses] });
    return;
  }
  if (totals !== null) group.totals = addTotals(group.totals, totals);
  group.firstDay = Math.min(group.firstDay, firstDay);
  group.lastDay = Math.max(group.lastDay, lastDay);
  group.addresses.push(...addresses);
};

const shownOf = (group: Group, around: Surroundings): ShownSource => {
  const { key, totals, addresses } = group;
  const { kind, name } = readShownKey(key) ?? { kind: "network", name: key };
  const service = serviceOf(kind, name, addresses);
  const word = wordOf(group, around.words);
  const shown = addresses.toSorted((a, b) => b.lastDay - a.lastDay).slice(0, ADDRESSES_MAX);
  return {
    key,
    kind,
    name: nameOf(kind, name),
    service: service?.name ?? null,
    services: [...new Set(hostServices(shown).flatMap((host) => host?.name ?? []))],
    classification: word ?? judge(group, { kind, name, service }, around),
    classified_by: word === null ? "service" : "user",
    ...countsOf(totals),
    first_day: isoDay(group.firstDay),
    last_day: isoDay(group.lastDay),
    addresses: shown.map(({ ip, name: reverse_name, isConfirmed: confirmed }) => ({ ip, reverse_name, confirmed })),
  };
};

const countsOf = (totals: Totals) => {
  const { messages, aligned } = totals;
  return {
    messages,
    aligned,
    failing: messages - aligned,
    aligned_percent: percentOf(aligned, messages),
    dkim_aligned: totals.alignedDkim,
    spf_aligned: totals.alignedSpf,
    forwarded: totals.forwarded,
    authenticated_unaligned: totals.authenticated,
    quarantined: totals.quarantined,
    rejected: totals.rejected,
  };
};

/** What a source is called: a known service by its name, all else by what its key says. */
export const nameOf = (kind: SourceKind, name: string): string =>
  kind === "network" ? name : (findService(name)?.name ?? name);

/** The service of the name itself; of an aligned signature, that of its hosts when all named ones are of the same. */
const serviceOf = (kind: SourceKind, name: string, addresses: readonly SourceAddress[]): Service | null => {
  const own = kind === "network" ? null : findService(name);
  if (own !== null || kind !== "dkim") return own;
  const [first = null, ...others] = new Set(hostServices(addresses));
  return others.length === 0 ? first : null;
};

/** The service of every address with a confirmed reverse name; null for unknown ones. */
const hostServices = (addresses: readonly SourceAddress[]): (Service | null)[] =>
  addresses.flatMap(({ name, isConfirmed }) => (isConfirmed && name !== null ? [findService(name)] : []));
