import { sumBy } from "../../../foundation/base/sums.ts";
import {
  findUnauthenticated,
  type UnauthenticatedMail,
  assignKeys,
  type KeyedSource,
  shownIdentity,
  OWN_FAILING_KEY,
  OWN_KEY,
  UNRELATED_SUFFIX,
} from "./source-keys.ts";
import { findFailingOwn, listOwnHosts, type OwnHost } from "./own-hosts.ts";
import { sourceResponse, type Source } from "./source-response.ts";
import { type IdentifiedSource, type KnownSenders, readSenders } from "./source-identity.ts";
import type { Classification, RollupStore } from "./rollup-store.ts";
import { type SourceAddress, NO_TOTALS } from "./rollup-rows.ts";
import {
  findRelayed,
  type ClassificationReason,
  judgeMembers,
  earlierClassificationOf,
  ruleClassificationOf,
  userClassificationOf,
} from "./source-classification.ts";
import { entryOf } from "../../reports/ingest/rollup.ts";
import type { SourceRule } from "../../records/domains/source-rules.ts";
import type { DayRange } from "../../../foundation/base/days.ts";
import { systemClock } from "../../../foundation/base/clock.ts";
import { AppError } from "../../../foundation/base/errors.ts";
import { FairGate } from "../../../foundation/base/fair-gate.ts";
import { atOnce, inTurns, mapInSteps, type Steps } from "../../../foundation/base/in-steps.ts";

/** The monitored domain whose sources are read. */
export interface SourceDomain {
  readonly accountId: string;
  readonly number: number;
  readonly id: string;
  readonly domain: string;
  readonly sourceRules: readonly SourceRule[];
  /** The stored state of its DNS; null before the first check. */
  readonly state: string | null;
}

interface SourceOptions {
  /** Lists each network of unauthenticated mail as a source of its own, not all of them as one. */
  readonly byNetwork?: boolean;
}

/** The key and the name that users see a stored source under. */
export type SourceName = Pick<Source, "key" | "name">;

/** A source with what its class rests on. */
export interface ExplainedSource {
  readonly source: Source;
  /** Of the automatic class. */
  readonly reason: ClassificationReason;
  /** The user's rule that its addresses match; null for none. */
  readonly rule: SourceRule | null;
  readonly addresses: readonly SenderAddress[];
  /** The numbers of its stored sources. */
  readonly numbers: readonly number[];
}

export interface ClassifiedSources {
  readonly sources: readonly Source[];
  /** The classes of the stored sources with failing messages, by their numbers. */
  readonly failing: ReadonlyMap<number, Classification>;
}

/** An address of a source with its messages in the range. */
export interface SenderAddress {
  readonly address: SourceAddress;
  readonly messages: number;
  readonly aligned: number;
  /** Failing messages that receivers recognized as forwarded. */
  readonly forwarded: number;
  /** The last day in any report. */
  readonly lastDay: number;
}

interface ShownGroup {
  readonly source: Source;
  readonly reason: ClassificationReason;
  readonly members: readonly KeyedSource[];
}

type UserContext = Parameters<typeof userClassificationOf>[2];

/** What is computed once for a range of days. */
interface RangeSources extends UnauthenticatedMail {
  readonly identified: readonly IdentifiedSource[];
  readonly relayed: ReadonlySet<number>;
}

/**
 * Who sends in a domain's name. Reads the stored sources and addresses once. Of a domain with 20,000 sources everything takes
 * a long time, so it is done in steps: what reports add between them may be in one answer and not in the next.
 */
export class DomainSources {
  readonly #ranges = new Map<string, RangeSources>();
  /** By the range and the user's classifications, which may change while they are used. */
  readonly #keyed = new Map<string, readonly KeyedSource[]>();
  /** See `findFailingOwn`. */
  readonly #failingOwn = new Map<readonly KeyedSource[], ReadonlySet<number>>();

  private constructor(
    private readonly rollups: RollupStore,
    private readonly domain: SourceDomain,
    private readonly known: KnownSenders,
  ) {}

  static *open(rollups: RollupStore, domain: SourceDomain): Steps<DomainSources> {
    return new DomainSources(rollups, domain, yield* readSenders(rollups, domain));
  }

  /**
   * Reads and works for a request, a part in each turn of the event loop; the accounts in turn. 503 `unavailable` when too
   * many requests of this account wait.
   */
  static use<T>(rollups: RollupStore, domain: SourceDomain, work: (sources: DomainSources) => Promise<T>): Promise<T> {
    return inReadingTurn(domain, async () => work(await inTurns(DomainSources.open(rollups, domain))));
  }

  /** The same for what is only read. */
  static read<T>(rollups: RollupStore, domain: SourceDomain, look: (sources: DomainSources) => Steps<T>): Promise<T> {
    return DomainSources.use(rollups, domain, (sources) => inTurns(look(sources)));
  }

  /** The sources that sent something in the range, worst first: see `byWorst`. */
  *sources(range: DayRange, { byNetwork = false }: SourceOptions = {}): Steps<Source[]> {
    return (yield* this.#show(range, { byNetwork, wanted: null })).map(({ source }) => source);
  }

  /** The same, with the classes of those that have failing messages. */
  *classified(range: DayRange): Steps<ClassifiedSources> {
    const shown = yield* this.#show(range, { byNetwork: false, wanted: null });
    return {
      sources: shown.map(({ source }) => source),
      failing: new Map(
        shown.flatMap(({ source, members }) =>
          members
            .filter(({ totals }) => totals.messages > totals.aligned)
            .map(({ number }) => [number, source.classification] as const),
        ),
      ),
    };
  }

  /** A source by its key with what its class rests on; undefined for a key that no report names. */
  *explain(key: string, range: DayRange): Steps<ExplainedSource | undefined> {
    const [shown] = yield* this.#show(range, { byNetwork: isNetwork(key), wanted: new Set([key]) });
    if (shown === undefined) return undefined;
    const { source, reason, members } = shown;
    const rule = members.find((member) => member.rule !== null)?.rule ?? null;
    const numbers = members.map(({ number }) => number);
    yield;
    return { source, reason, rule, addresses: sendersOf(members, this.known.addresses), numbers };
  }

  /**
   * Sources by their keys with their counts in the range, even if they are zero. Keys that no report names are absent. A network
   * of unauthenticated mail can be found by its own key although it is listed with the others.
   */
  *findAll(keys: readonly string[], range: DayRange): Steps<ReadonlyMap<string, Source>> {
    const found = new Map<string, Source>();
    for (const byNetwork of [false, true]) {
      const wanted = new Set(keys.filter((key) => isNetwork(key) === byNetwork));
      if (wanted.size === 0) continue;
      for (const { source } of yield* this.#show(range, { byNetwork, wanted })) found.set(source.key, source);
    }
    return found;
  }

  /** The domain's own servers one by one, those with the most failing messages first. */
  *ownHosts(range: DayRange): Steps<readonly OwnHost[]> {
    return listOwnHosts(yield* this.keyed(range), this.known.addresses);
  }

  /** The keys of the user's classifications that apply to sources: their own, and those that they had earlier. */
  *classifiedKeysOf(keys: readonly string[], range: DayRange): Steps<ReadonlySet<string>> {
    const context = this.#userContext();
    const sources = yield* this.keyed(range);
    const held = new Set(keys);
    for (const keyOf of [this.#listedKeyOf(sources, false), networkKeyOf]) {
      for (const source of sources) {
        const earlier = held.has(keyOf(source)) ? earlierClassificationOf(source, context) : undefined;
        if (earlier !== undefined) held.add(earlier.key);
      }
    }
    return held;
  }

  /** The stored sources with the keys that they have in the range. */
  keyed(range: DayRange): Steps<readonly KeyedSource[]> {
    return this.#key(range, this.#userContext());
  }

  /** Some stored sources of one key, as a source with a name of its own; undefined for none. */
  part(members: readonly KeyedSource[], name: string): Source | undefined {
    const key = members[0]?.shownKey ?? "";
    const classes = { classification: judgeMembers(members).classification, classifiedBy: "service" } as const;
    const [source] = atOnce(sourceResponse({ key, members, ...classes }, this.known.addresses));
    return source === undefined ? undefined : { ...source, name };
  }

  /** The names of stored sources in the range, by their numbers. */
  *names(range: DayRange, { byNetwork = false }: SourceOptions = {}): Steps<ReadonlyMap<number, SourceName>> {
    const keyed = yield* this.keyed(range);
    const keyOf = this.#listedKeyOf(keyed, byNetwork);
    return new Map(
      keyed.map((source) => {
        const { key, name } = shownIdentity(keyOf(source), source);
        return [source.number, { key, name }];
      }),
    );
  }

  /** The numbers of the stored sources that have one of these keys in the range; none when no report names it. */
  *numbersOf(keys: readonly string[], range: DayRange): Steps<number[]> {
    const keyed = yield* this.keyed(range);
    return [false, true].flatMap((byNetwork) => {
      const wanted = new Set(keys.filter((key) => isNetwork(key) === byNetwork));
      const keyOf = this.#listedKeyOf(keyed, byNetwork);
      return wanted.size === 0 ? [] : keyed.flatMap((source) => (wanted.has(keyOf(source)) ? [source.number] : []));
    });
  }

  /** The stored sources that are listed under one of these keys in the range: key by number. */
  *keysOf(keys: ReadonlySet<string>, range: DayRange): Steps<ReadonlyMap<number, string>> {
    const keyed = yield* this.keyed(range);
    const keyOf = this.#listedKeyOf(keyed, false);
    const found = new Map<number, string>();
    for (const source of keyed) {
      const key = keyOf(source);
      if (keys.has(key)) found.set(source.number, key);
    }
    return found;
  }

  /** The key that a stored source is listed under: own servers that fail have one of their own. */
  #listedKeyOf(keyed: readonly KeyedSource[], byNetwork: boolean): (source: KeyedSource) => string {
    const failing = entryOf(this.#failingOwn, keyed, () => findFailingOwn(keyed));
    const keyOf = byNetwork ? networkKeyOf : shownKeyOf;
    return (source) => (failing.has(source.number) ? OWN_FAILING_KEY : keyOf(source));
  }

  #userContext() {
    const userClassifications = this.rollups.userClassifications(this.domain.number);
    return { userClassifications, addresses: this.known.addresses };
  }

  *#key(range: DayRange, { userClassifications }: UserContext): Steps<readonly KeyedSource[]> {
    const name = `${range.fromDay}-${range.toDay}`;
    const id = `${name} ${JSON.stringify([...userClassifications.values()])}`;
    const [before, { sourceRules: rules }] = [this.#keyed.get(id), this.domain];
    if (before !== undefined) return before;
    const read = this.#ranges.get(name) ?? (yield* this.#read(range));
    this.#ranges.set(name, read);
    const { identified, ...context } = read;
    const { addresses, identities } = this.known;
    const keyed = yield* assignKeys(identified, { ...context, addresses, identities, rules, userClassifications });
    this.#keyed.set(id, keyed);
    return keyed;
  }

  *#read(range: DayRange): Steps<RangeSources> {
    const { stored, addresses, identities } = this.known;
    const sums = yield* this.rollups.sourceTotals(this.domain.number, range);
    yield;
    const identified = yield* mapInSteps(stored, (source) => {
      const { number, key, firstDay, lastDay, firstSeenAtMs, isVouched, evidence } = source;
      const { totals, trusted } = sums.get(number) ?? NOTHING;
      const identity = identities.identityOf(source);
      return { number, key, firstDay, lastDay, firstSeenAtMs, isVouched, evidence, identity, totals, trusted };
    });
    const relayed = findRelayed(identified, identities);
    yield;
    return { identified, relayed, ...(yield* findUnauthenticated(identified, { addresses, identities, relayed })) };
  }

  *#show(
    range: DayRange,
    { byNetwork, wanted }: { readonly byNetwork: boolean; readonly wanted: ReadonlySet<string> | null },
  ): Steps<ShownGroup[]> {
    const context = this.#userContext();
    const all = yield* this.#key(range, context);
    yield;
    const keyOf = this.#listedKeyOf(all, byNetwork);
    yield;
    const keyed = all.filter((source) => wanted?.has(keyOf(source)) !== false);
    const shown: ShownGroup[] = [];
    let members = MEMBERS_PER_STEP;
    for (const [key, of] of Map.groupBy(keyed, keyOf)) {
      if (members >= MEMBERS_PER_STEP) yield;
      members = members >= MEMBERS_PER_STEP ? of.length : members + of.length;
      if (wanted === null && of.every(({ totals }) => totals.messages === 0)) continue;
      shown.push(...(yield* this.#group(key, of, context)));
    }
    return shown.sort((a, b) => byWorst(a.source, b.source));
  }

  *#group(key: string, members: readonly KeyedSource[], context: UserContext): Steps<readonly ShownGroup[]> {
    const byKey = userClassificationOf(key, members, context);
    // The class of own servers holds for all of them, unless those that fail have one of their own.
    const byOwn = key === OWN_FAILING_KEY ? userClassificationOf(OWN_KEY, members, context) : null;
    const byUser = byKey ?? byOwn ?? ruleClassificationOf(members);
    const { classification, reason } = judgeMembers(members);
    const classes = {
      classification: byUser ?? classification,
      classifiedBy: byUser === null ? "service" : "user",
    } as const;
    if (members.length >= MEMBERS_PER_STEP) yield;
    const described = yield* sourceResponse({ key, members, ...classes }, this.known.addresses);
    return described.map((source) => ({ source, reason, members }));
  }
}

/** Does the work of some requests at a time, the accounts in turn. */
const createReadingTurns = (concurrencyMax: number) => {
  const gate = new FairGate({ concurrencyMax, waitingMax: 1_000, waitMsMax: 30_000 }, systemClock);
  return async <T>({ accountId }: Pick<SourceDomain, "accountId">, work: () => Promise<T>): Promise<T> => {
    const leave = await gate.enter(accountId);
    if (leave === null)
      throw new AppError("unavailable", {
        message: "Too many requests read the sources of domains. Try again later.",
        headers: { "retry-after": "5" },
      });
    try {
      return await work();
    } finally {
      leave();
    }
  };
};

/** Requests that read the sums of a domain: of 20,000 sources each takes 40 MB and a quarter of a second of the event loop. */
export const inReadingTurn = createReadingTurns(1);
/** Advice also waits for the DNS. */
export const inAdviceTurn = createReadingTurns(2);

const MEMBERS_PER_STEP = 2_000;
const NOTHING = { totals: NO_TOTALS, trusted: NO_TOTALS };

/** The addresses of a source, those with the most messages first. */
const sendersOf = (
  members: readonly KeyedSource[],
  known: ReadonlyMap<string, SourceAddress>,
): readonly SenderAddress[] => {
  const byIp = Map.groupBy(
    members.filter(({ evidence }) => evidence.ip !== null),
    ({ evidence }) => evidence.ip ?? "",
  );
  return [...byIp]
    .map(([ip, of]) => ({
      address: known.get(ip) ?? { ...UNKNOWN_ADDRESS, ip },
      messages: sumBy(of, ({ totals }) => totals.messages),
      aligned: sumBy(of, ({ totals }) => totals.aligned),
      forwarded: sumBy(of, ({ totals }) => totals.forwarded),
      lastDay: Math.max(...of.map(({ lastDay }) => lastDay)),
    }))
    .toSorted((a, b) => b.messages - a.messages || b.lastDay - a.lastDay);
};

const UNKNOWN_ADDRESS = { name: null, isConfirmed: false, isAsked: false, asn: null, asName: null, country: null };

const shownKeyOf = ({ shownKey }: KeyedSource) => shownKey;
const networkKeyOf = ({ networkKey }: KeyedSource) => networkKey;
const isNetwork = (key: string) => key.startsWith("net:");

/** Failing messages that somebody must act on: neither forwarded nor forged ones. */
export const actionableFailures = ({ classification, failing, forwarded }: Source): number =>
  classification === "forwarder" || classification === "threat" ? 0 : failing - forwarded;

/** Whether mail of a source is not sent for the domain: it is forwarded, forged, or of another account at a provider. */
export const isForeign = ({ key, kind, classification }: Source): boolean =>
  kind === "unauthenticated" ||
  key.endsWith(UNRELATED_SUFFIX) ||
  classification === "forwarder" ||
  classification === "threat";

/** The most actionable failures first, then the most messages, then by key. */
export const byWorst = (a: Source, b: Source): number =>
  actionableFailures(b) - actionableFailures(a) || b.messages - a.messages || (a.key < b.key ? -1 : 1);
