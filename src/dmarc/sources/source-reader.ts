import type { DayRange } from "../../base/days.ts";
import { addTotals, type Classification, NO_TOTALS, type RollupStore, type Totals } from "./rollup-store.ts";
import { classifySource } from "./source-classification.ts";
import {
  UNRELATED_SUFFIX,
  type KeyedSource,
  type SourceDomain,
  readScenes,
  shownIdentity,
  type SourceOptions,
  type SourceScenes,
} from "./source-keys.ts";
import { PENDING_KEY, UNAUTHENTICATED_KEY } from "./unauthenticated-mail.ts";
import { showSource } from "./source-response.ts";
import type { Source } from "./source-schema.ts";
import { earlierClassificationOf, userClassificationOf } from "./user-classification.ts";

/** The key and the name that a stored source is shown under. */
export type SourceName = Pick<Source, "key" | "name">;

/** Shows who sends in a domain's name. */
export const createSourceReader = ({ store }: { readonly store: RollupStore }) => {
  /** Reads a domain once for several looks at it, all within one transaction or snapshot. */
  const open = (domain: SourceDomain) => openSources(readScenes(store, domain));
  return {
    open,

    /** See `DomainSources.sources`. */
    sources: (domain: SourceDomain, range: DayRange, options: SourceOptions = {}): Source[] =>
      open(domain).sources(range, options),

    /** See `DomainSources.findAll`. */
    findAll: (domain: SourceDomain, keys: readonly string[], range: DayRange): ReadonlyMap<string, Source> =>
      open(domain).findAll(keys, range),

    /** One source, as `findAll` finds it. */
    find: (domain: SourceDomain, key: string, range: DayRange): Source | undefined =>
      open(domain).findAll([key], range).get(key),

    /** See `DomainSources.names`. */
    names: (domain: SourceDomain, range: DayRange, options: SourceOptions = {}): ReadonlyMap<number, SourceName> =>
      open(domain).names(range, options),

    /** See `DomainSources.numbersOf`. */
    numbersOf: (domain: SourceDomain, key: string, range: DayRange): number[] => open(domain).numbersOf(key, range),
  };
};

/** The sources of a domain as they are in one state of the database. */
const openSources = (scenes: SourceScenes) => {
  const show = (range: DayRange, { wanted, byNetwork = false }: ShowOptions): Source[] => {
    const { sources, ...scene } = scenes.at(range);
    const keyOf = keyIn(byNetwork);
    const placed = wanted === undefined ? sources : sources.filter((source) => wanted.has(keyOf(source)));
    const shown = [...Map.groupBy(placed, keyOf)].flatMap(([key, members]) => {
      if (wanted === undefined && members.every(({ totals }) => totals.messages === 0)) return [];
      const said = userClassificationOf(key, members, scene) ?? ruledOf(members);
      const classification = said ?? classOf(key, members);
      return showSource(
        { key, members, classification, classifiedBy: said === null ? "service" : "user" },
        scene.facts,
      );
    });
    return shown.sort(byWorst);
  };

  return {
    /** The sources that sent something in the range, worst first: see `byWorst`. */
    sources: (range: DayRange, options: SourceOptions = {}): Source[] => show(range, options),

    /**
     * Sources by their keys, with their counts in the range, be they none. Absent are those that no report names. Networks of
     * unauthenticated mail have keys of their own, although they are listed as one.
     */
    findAll(keys: readonly string[], range: DayRange): ReadonlyMap<string, Source> {
      const [networks, others] = partition(keys);
      const found = [
        ...(others.size === 0 ? [] : show(range, { wanted: others })),
        ...(networks.size === 0 ? [] : show(range, { wanted: networks, byNetwork: true })),
      ];
      return new Map(found.map((source) => [source.key, source]));
    },

    /** The keys of the user's classifications that sources have: their own, and those from before they were identified as they are. */
    classifiedKeysOf(keys: readonly string[], range: DayRange): ReadonlySet<string> {
      const { sources, ...scene } = scenes.at(range);
      const held = new Set(keys);
      for (const byNetwork of [false, true]) {
        const keyOf = keyIn(byNetwork);
        for (const source of sources) {
          const earlier = held.has(keyOf(source)) ? earlierClassificationOf(source, scene) : undefined;
          if (earlier !== undefined) held.add(earlier.key);
        }
      }
      return held;
    },

    /** The stored sources of the domain, with the keys that they are shown under in a range. */
    placed: (range: DayRange): readonly KeyedSource[] => scenes.at(range).sources,

    /** How stored sources are shown in a range, by their numbers. */
    names(range: DayRange, { byNetwork = false }: SourceOptions = {}): ReadonlyMap<number, SourceName> {
      const keyOf = keyIn(byNetwork);
      return new Map(
        scenes.at(range).sources.map((source) => {
          const { key, name } = shownIdentity(keyOf(source), source);
          return [source.number, { key, name }];
        }),
      );
    },

    /** The numbers of the stored sources that are shown under a key in a range; none when no report ever told of it. */
    numbersOf(key: string, range: DayRange): number[] {
      const keyOf = keyIn(isNetwork(key));
      return scenes.at(range).sources.flatMap((source) => (keyOf(source) === key ? [source.number] : []));
    },
  };
};

/** What a source is shown under, with every network of the unauthenticated mail as a source of its own or not. */
const keyIn =
  (byNetwork: boolean) =>
  ({ shownKey, networkKey }: KeyedSource): string =>
    byNetwork ? networkKey : shownKey;

/** A domain's sources, read once: see `SourceReader.open`. */
export type DomainSources = ReturnType<typeof openSources>;
export type SourceReader = ReturnType<typeof createSourceReader>;

interface ShowOptions extends SourceOptions {
  /** Only sources with these keys, whether or not they sent anything in the range. */
  readonly wanted?: ReadonlySet<string>;
}

const isNetwork = (key: string): boolean => key.startsWith("net:");
const partition = (keys: readonly string[]): readonly [networks: ReadonlySet<string>, others: ReadonlySet<string>] => [
  new Set(keys.filter(isNetwork)),
  new Set(keys.filter((key) => !isNetwork(key))),
];

/** Names of hosts that do nothing but serve mailing lists. */
const LIST = /(?:^|\.)(?:lists?|listes|listen|listserv|mailman|majordomo|sympa|googlegroups)\./;

const classOf = (key: string, members: readonly KeyedSource[]): Classification => {
  if (key === PENDING_KEY) return "unknown";
  const [first] = members;
  if (first === undefined) return "unknown";
  const active = members.filter(({ totals }) => totals.messages > 0);
  if (active.length > 0 && active.every(({ pool }) => pool === UNAUTHENTICATED_KEY)) return "threat";
  const sum = (totals: (member: KeyedSource) => Totals): Totals =>
    members.reduce<Totals>((total, member) => addTotals(total, totals(member)), NO_TOTALS);
  const trusted = sum((member) => member.trusted);
  const isVouched = trusted.messages > 0;
  const of = (member: KeyedSource): Totals => {
    const totals = isVouched ? member.trusted : member.totals;
    return member.isPlausible ? totals : { ...totals, aligned: 0 };
  };
  const { messages, aligned, forwarded, authenticated } = sum(of);
  return classifySource({
    ...{ messages, aligned, forwarded, authenticated, isVouched },
    relayed: sum((member) => (member.isRelayed ? of(member) : NO_TOTALS)).aligned,
    identity: first.identity,
    isList: members.some(({ evidence }) => evidence.envelope !== null && LIST.test(evidence.envelope)),
    isOfOthers: key.endsWith(UNRELATED_SUFFIX),
  });
};

/** The classification that the user's rules give to all stored sources that sent something. */
const ruledOf = (members: readonly KeyedSource[]): Classification | null => {
  const active = members.filter(({ totals }) => totals.messages > 0);
  const ruled = new Set(active.map(({ rule }) => rule?.classification ?? null));
  const [only = null] = ruled;
  return ruled.size === 1 ? only : null;
};

/** Failing messages that ask for somebody to act: those that were forwarded, and forged ones, do not. */
export const actionableFailures = ({ classification, failing, forwarded }: Source): number =>
  classification === "forwarder" || classification === "threat" ? 0 : failing - forwarded;

/** Whether mail of a source is none of the domain's senders': it is forwarded, forged, or of another account at a provider. */
export const isForeign = ({ key, kind, classification }: Source): boolean =>
  kind === "unauthenticated" ||
  key.endsWith(UNRELATED_SUFFIX) ||
  classification === "forwarder" ||
  classification === "threat";

/** The most trouble first, then the most messages, then by key. */
export const byWorst = (a: Source, b: Source): number =>
  actionableFailures(b) - actionableFailures(a) || b.messages - a.messages || (a.key < b.key ? -1 : 1);
