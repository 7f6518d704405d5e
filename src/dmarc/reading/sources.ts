import { isoDay, type DayRange } from "../../base/days.ts";
import { findService, type Service } from "./services.ts";
import { organisationalDomain } from "../../mail/organisational-domain.ts";
import { percentOf } from "./range.ts";
import { classifySource, type ReverseFinding } from "./source-class.ts";
import { addressKeyOf, isGenericName, networkOf, readShownKey } from "./source-groups.ts";
import type { ShownSource, SourceKind } from "./source-view.ts";
import {
  addTotals,
  type Classification,
  type FineSource,
  type NamedSource,
  NO_TOTALS,
  type ReadingStore,
  type SourceAddress,
  type SourceWord,
  type Totals,
} from "./reading-store.ts";

/** Of a domain, what reading needs. */
export interface ReadDomain {
  readonly number: number;
  readonly id: string;
  readonly domain: string;
}

/** Stored sources that are shown as one. */
interface Group {
  readonly key: string;
  totals: Totals;
  firstDay: number;
  lastDay: number;
  readonly addresses: SourceAddress[];
}

/** Addresses shown of a source. */
const ADDRESSES_MAX = 8;

/** What a domain's sources are judged with. */
interface Surroundings {
  readonly organisation: string | null;
  /** Networks that aligned mail comes from. */
  readonly alignedNetworks: ReadonlySet<string>;
  readonly words: ReadonlyMap<string, SourceWord>;
}

/** Shows who sends in a domain's name. */
export const createSourceReader = ({ store }: { readonly store: ReadingStore }) => {
  const surroundingsOf = ({ number, domain }: ReadDomain, named: ReadonlyMap<number, NamedSource>): Surroundings => {
    const alignedNetworks = new Set<string>();
    for (const { key, addresses } of named.values())
      if (key.startsWith("dkim:")) for (const { ip } of addresses) alignedNetworks.add(networkOf(ip));
    return {
      organisation: organisationalDomain(domain) ?? domain,
      alignedNetworks,
      words: new Map(store.words(number).map((word) => [word.key, word])),
    };
  };

  /** Shows sources out of their sums; `isShown` says which groups are wanted at all. */
  const show = (domain: ReadDomain, fine: readonly FineSource[], isShown: (key: string) => boolean): ShownSource[] => {
    const named = store.addresses(domain.number);
    const bare = store.bareAddresses(domain.number);
    const groups = new Map<string, Group>();
    for (const source of fine) {
      const own = bare.get(source.number);
      const key = own === undefined ? source.key : addressKeyOf(own);
      if (isShown(key))
        addTo(groups, key, source, own === undefined ? (named.get(source.number)?.addresses ?? []) : [own]);
    }
    const around = surroundingsOf(domain, named);
    return [...groups.values()].map((group) => shownOf(group, around)).sort(byWorst);
  };

  return {
    /** The sources that sent something in the range, worst first: see `byWorst`. */
    sources: (domain: ReadDomain, range: DayRange): ShownSource[] =>
      show(domain, store.sources(domain.number, range), () => true),

    /** One source with its counts in the range, be they none; undefined when no report ever told of it. */
    find(domain: ReadDomain, key: string, range: DayRange): ShownSource | undefined {
      const sums = new Map(store.sources(domain.number, range).map((source) => [source.number, source]));
      const all = store.allSources(domain.number);
      const fine = all.map((source) => sums.get(source.number) ?? { ...NO_TOTALS, ...source });
      return show(domain, fine, (shown) => shown === key)[0];
    },

    /** The numbers of the stored sources that are shown under a key; none when no report ever told of it. */
    numbersOf(domain: ReadDomain, key: string): number[] {
      const isStored = readShownKey(key)?.kind === "dkim" || readShownKey(key)?.kind === "spf";
      if (isStored) return store.allSources(domain.number).flatMap((row) => (row.key === key ? [row.number] : []));
      const bare = [...store.bareAddresses(domain.number)];
      return bare.flatMap(([number, address]) => (addressKeyOf(address) === key ? [number] : []));
    },

    /**
     * The keys of words that hold for a source: its own, and those of its networks from the time when its reverse name was
     * not known yet, unless something else is shown under them now.
     */
    wordKeysOf(domain: ReadDomain, { key, kind }: Pick<ShownSource, "key" | "kind">): string[] {
      if (kind !== "reverse") return [key];
      const networks = new Set<string>();
      const others = new Set<string>();
      for (const address of store.bareAddresses(domain.number).values()) {
        const shown = addressKeyOf(address);
        if (shown === key) networks.add(`net:${networkOf(address.ip)}`);
        else others.add(shown);
      }
      return [key, ...[...networks].filter((network) => !others.has(network))];
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

const addTo = (
  groups: Map<string, Group>,
  key: string,
  source: FineSource,
  addresses: readonly SourceAddress[],
): void => {
  const { firstDay, lastDay } = source;
  const group = groups.get(key);
  if (group === undefined) {
    groups.set(key, { key, totals: source, firstDay, lastDay, addresses: [...addresses] });
    return;
  }
  group.totals = addTotals(group.totals, source);
  group.firstDay = Math.min(group.firstDay, firstDay);
  group.lastDay = Math.max(group.lastDay, lastDay);
  group.addresses.push(...addresses);
};

const shownOf = (group: Group, around: Surroundings): ShownSource => {
  const { key, totals, addresses } = group;
  const { kind, name } = readShownKey(key) ?? { kind: "network", name: key };
  const service = serviceOf(kind, name, addresses);
  const word = wordOf(group, kind, around.words);
  return {
    key,
    kind,
    name: nameOf(kind, name),
    service: service?.name ?? null,
    classification: word ?? classificationOf(group, { kind, name, service }, around),
    classified_by: word === null ? "service" : "user",
    ...countsOf(totals),
    first_day: isoDay(group.firstDay),
    last_day: isoDay(group.lastDay),
    addresses: addresses
      .toSorted((a, b) => b.lastDay - a.lastDay)
      .slice(0, ADDRESSES_MAX)
      .map(({ ip, name: reverse_name, isConfirmed: confirmed }) => ({ ip, reverse_name, confirmed })),
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
  const names = addresses.flatMap((address) => (address.isConfirmed && address.name !== null ? [address.name] : []));
  const [first = null, ...others] = new Set(names.map(findService));
  return others.length === 0 ? first : null;
};

const classificationOf = (
  { totals, addresses }: Group,
  { kind, name, service }: { kind: SourceKind; name: string; service: Service | null },
  { organisation, alignedNetworks }: Surroundings,
): Classification => {
  const isOwn = kind !== "network" && name !== "" && (organisationalDomain(name) ?? name) === organisation;
  const isNearAligned = addresses.some(({ ip }) => alignedNetworks.has(networkOf(ip)));
  const { messages, aligned, forwarded, authenticated } = totals;
  const reverse = reverseOf(addresses);
  return classifySource({ kind, messages, aligned, forwarded, authenticated, service, isOwn, isNearAligned, reverse });
};

const reverseOf = (addresses: readonly SourceAddress[]): ReverseFinding => {
  if (addresses.length === 0 || addresses.some(({ isAsked }) => !isAsked)) return "unasked";
  const names = addresses.filter(({ name, isConfirmed }) => name !== null && isConfirmed);
  if (names.length === 0) return "absent";
  return names.every(({ name, ip }) => isGenericName(name ?? "", ip)) ? "generic" : "named";
};

const wordOf = (group: Group, kind: SourceKind, words: Surroundings["words"]): Classification | null => {
  const own = words.get(group.key);
  if (own !== undefined || kind !== "reverse" || words.size === 0) return own?.classification ?? null;
  const earlier = [...new Set(group.addresses.map(({ ip }) => `net:${networkOf(ip)}`))].flatMap(
    (key) => words.get(key) ?? [],
  );
  return earlier.toSorted((a, b) => b.atMs - a.atMs)[0]?.classification ?? null;
};
