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
import {
  type IdentifiedSource,
  SourceIdentities,
  type SourceWithEvidence,
  organisationUnder,
  trustedEvidence,
  withEvidence,
} from "./source-identity.ts";
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
import { readState } from "../../records/domains/domain-state.ts";
import type { SourceRule } from "../../records/domains/source-rules.ts";
import { type DayRange, dayOfTime } from "../../../foundation/base/days.ts";
import { nextTurn, type Clock } from "../../../foundation/base/clock.ts";
import { RANGE_DAYS } from "../../../foundation/http/day-range.ts";
import { orRefusal } from "../../../foundation/db/group-commit.ts";
import type { Db } from "../../../foundation/db/open.ts";
import { AppError } from "../../../foundation/base/errors.ts";

/** The monitored domain whose sources are read. */
export interface SourceDomain {
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

/** What is computed once for a range of days. */
interface RangeSources extends UnauthenticatedMail {
  readonly identified: readonly IdentifiedSource[];
  readonly relayed: ReadonlySet<number>;
}

/**
 * Who sends in a domain's name. Reads the stored sources and addresses once; everything it returns belongs to one state of the
 * database only while it is used within one transaction or snapshot.
 */
export class DomainSources {
  readonly #stored: readonly SourceWithEvidence[];
  readonly #addresses: ReadonlyMap<string, SourceAddress>;
  readonly #identities: SourceIdentities;
  readonly #ranges = new Map<string, RangeSources>();
  /** By the range and the user's classifications, which may change while they are used. */
  readonly #keyed = new Map<string, readonly KeyedSource[]>();

  constructor(
    private readonly rollups: RollupStore,
    private readonly domain: SourceDomain,
  ) {
    const suffix = readState(domain.state)?.believed.declared_suffix ?? null;
    const organisation = organisationUnder(domain.domain, suffix);
    this.#stored = rollups.storedSources(domain.number).map((source) => withEvidence(source, organisation));
    this.#addresses = rollups.addresses(domain.number);
    this.#identities = new SourceIdentities({
      domain: domain.domain,
      organisation,
      sources: trustedEvidence(this.#stored),
      addresses: this.#addresses,
    });
  }

  /**
   * Identifies every source, a few in each turn of the event loop: of 20,000 that is half of what the first range takes. Later
   * readers find the identities. A source that is added meanwhile is not among those that are read.
   */
  async identifyAll(): Promise<void> {
    for (let at = 0; at < this.#stored.length; at += IDENTIFIED_PER_TURN) {
      await nextTurn();
      for (const source of this.#stored.slice(at, at + IDENTIFIED_PER_TURN)) this.#identities.identityOf(source);
    }
  }

  /** The sources that sent something in the range, worst first: see `byWorst`. */
  sources(range: DayRange, { byNetwork = false }: SourceOptions = {}): Source[] {
    return this.#show(range, { byNetwork, wanted: null }).map(({ source }) => source);
  }

  /** The same, with the classes of those that have failing messages. */
  classified(range: DayRange): {
    readonly sources: readonly Source[];
    /** The classes of the stored sources with failing messages, by their numbers. */
    readonly failing: ReadonlyMap<number, Classification>;
  } {
    const shown = this.#show(range, { byNetwork: false, wanted: null });
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
  explain(key: string, range: DayRange): ExplainedSource | undefined {
    const [shown] = this.#show(range, { byNetwork: isNetwork(key), wanted: new Set([key]) });
    if (shown === undefined) return undefined;
    const { source, reason, members } = shown;
    const rule = members.find((member) => member.rule !== null)?.rule ?? null;
    const numbers = members.map(({ number }) => number);
    return { source, reason, rule, addresses: sendersOf(members, this.#addresses), numbers };
  }

  /**
   * Sources by their keys with their counts in the range, even if they are zero. Keys that no report names are absent. A network
   * of unauthenticated mail can be found by its own key although it is listed with the others.
   */
  findAll(keys: readonly string[], range: DayRange): ReadonlyMap<string, Source> {
    const found = [false, true].flatMap((byNetwork) => {
      const wanted = new Set(keys.filter((key) => isNetwork(key) === byNetwork));
      return wanted.size === 0 ? [] : this.#show(range, { byNetwork, wanted });
    });
    return new Map(found.map(({ source }) => [source.key, source]));
  }

  find(key: string, range: DayRange): Source | undefined {
    return this.findAll([key], range).get(key);
  }

  /** The domain's own servers one by one, those with the most failing messages first. */
  ownHosts(range: DayRange): readonly OwnHost[] {
    return listOwnHosts(this.keyed(range), this.#addresses);
  }

  /** The keys of the user's classifications that apply to sources: their own, and those that they had earlier. */
  classifiedKeysOf(keys: readonly string[], range: DayRange): ReadonlySet<string> {
    const context = this.#userContext();
    const sources = this.keyed(range);
    const held = new Set(keys);
    for (const keyOf of [listedKeyOf(sources, false), networkKeyOf]) {
      for (const source of sources) {
        const earlier = held.has(keyOf(source)) ? earlierClassificationOf(source, context) : undefined;
        if (earlier !== undefined) held.add(earlier.key);
      }
    }
    return held;
  }

  /** The stored sources with the keys that they have in the range. */
  keyed(range: DayRange): readonly KeyedSource[] {
    const { userClassifications } = this.#userContext();
    const name = `${range.fromDay}-${range.toDay}`;
    return entryOf(this.#keyed, `${name} ${JSON.stringify([...userClassifications.values()])}`, () => {
      const { identified, ...context } = entryOf(this.#ranges, name, () => this.#read(range));
      const [rules, addresses, identities] = [this.domain.sourceRules, this.#addresses, this.#identities];
      return assignKeys(identified, { ...context, addresses, identities, rules, userClassifications });
    });
  }

  /** Some stored sources of one key, as a source with a name of its own; undefined for none. */
  part(members: readonly KeyedSource[], name: string): Source | undefined {
    const key = members[0]?.shownKey ?? "";
    const classes = { classification: judgeMembers(members).classification, classifiedBy: "service" } as const;
    const [source] = sourceResponse({ key, members, ...classes }, this.#addresses);
    return source === undefined ? undefined : { ...source, name };
  }

  /** The names of stored sources in the range, by their numbers. */
  names(range: DayRange, { byNetwork = false }: SourceOptions = {}): ReadonlyMap<number, SourceName> {
    const keyed = this.keyed(range);
    const keyOf = listedKeyOf(keyed, byNetwork);
    return new Map(
      keyed.map((source) => {
        const { key, name } = shownIdentity(keyOf(source), source);
        return [source.number, { key, name }];
      }),
    );
  }

  /** The numbers of the stored sources that have a key in the range; none when no report names it. */
  numbersOf(key: string, range: DayRange): number[] {
    const keyed = this.keyed(range);
    const keyOf = listedKeyOf(keyed, isNetwork(key));
    return keyed.flatMap((source) => (keyOf(source) === key ? [source.number] : []));
  }

  #userContext() {
    const userClassifications = this.rollups.userClassifications(this.domain.number);
    return { userClassifications, addresses: this.#addresses };
  }

  #read(range: DayRange) {
    const [addresses, identities] = [this.#addresses, this.#identities];
    const sums = this.rollups.sourceTotals(this.domain.number, range);
    const identified = this.#stored.map((source) => {
      const { number, key, firstDay, lastDay, firstSeenAtMs, isVouched, evidence } = source;
      const { totals, trusted } = sums.get(number) ?? NOTHING;
      const identity = identities.identityOf(source);
      return { number, key, firstDay, lastDay, firstSeenAtMs, isVouched, evidence, identity, totals, trusted };
    });
    const relayed = findRelayed(identified, identities);
    return { identified, relayed, ...findUnauthenticated(identified, { addresses, identities, relayed }) };
  }

  #show(
    range: DayRange,
    { byNetwork, wanted }: { readonly byNetwork: boolean; readonly wanted: ReadonlySet<string> | null },
  ): ShownGroup[] {
    const all = this.keyed(range);
    const keyOf = listedKeyOf(all, byNetwork);
    const context = this.#userContext();
    const keyed = all.filter((source) => wanted?.has(keyOf(source)) !== false);
    const shown = [...Map.groupBy(keyed, keyOf)].flatMap(([key, members]) => {
      if (wanted === null && members.every(({ totals }) => totals.messages === 0)) return [];
      const byKey = userClassificationOf(key, members, context);
      // The class of own servers holds for all of them, unless those that fail have one of their own.
      const byOwn = key === OWN_FAILING_KEY ? userClassificationOf(OWN_KEY, members, context) : null;
      const byUser = byKey ?? byOwn ?? ruleClassificationOf(members);
      const { classification, reason } = judgeMembers(members);
      const classes = {
        classification: byUser ?? classification,
        classifiedBy: byUser === null ? "service" : "user",
      } as const;
      return sourceResponse({ key, members, ...classes }, this.#addresses).map((source) => ({
        source,
        reason,
        members,
      }));
    });
    return shown.sort((a, b) => byWorst(a.source, b.source));
  }
}

const IDENTIFIED_PER_TURN = 1_000;
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
/** The key that a stored source is listed under: own servers that fail have one of their own. */
const listedKeyOf = (keyed: readonly KeyedSource[], byNetwork: boolean): ((source: KeyedSource) => string) => {
  const failing = findFailingOwn(keyed);
  const keyOf = byNetwork ? networkKeyOf : shownKeyOf;
  return (source) => (failing.has(source.number) ? OWN_FAILING_KEY : keyOf(source));
};
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

/** Keys named in one error. */
const NAMED_KEYS_MAX = 5;

/** Stores the user's classification of sources, of all of them or of none. */
export class SourceClassifier {
  constructor(
    private readonly runtime: { readonly db: Db; readonly clock: Clock },
    private readonly rollups: RollupStore,
  ) {}

  /**
   * Returns the sources in the order of the keys, with their counts of the last 30 days. Throws `not_found` when no report names
   * a key. `findDomain` is called inside the transaction, because the domain may be deleted meanwhile; it then throws an AppError.
   */
  async classify(
    findDomain: () => SourceDomain,
    {
      keys,
      classification,
      note = null,
    }: {
      readonly keys: readonly string[];
      /** Null restores the automatic classification. */
      readonly classification: Classification | null;
      /** Why, in the user's words. */
      readonly note?: string | null;
    },
  ): Promise<Source[]> {
    const { db, clock } = this.runtime;
    const classified = await db.commit((tx) => {
      const domain = orRefusal(findDomain);
      if (domain instanceof AppError) return domain;
      const atMs = clock.nowMs();
      const toDay = dayOfTime(atMs);
      const range = { fromDay: toDay - RANGE_DAYS + 1, toDay };
      const sources = new DomainSources(this.rollups, domain);
      const before = sources.findAll(keys, range);
      const unknown = keys.filter((key) => !before.has(key));
      if (unknown.length > 0) return unknownKeys(unknown);
      if (classification === null) {
        const classifiedKeys = sources.classifiedKeysOf(keys, range);
        for (const key of classifiedKeys) this.rollups.removeUserClassification(tx, domain.number, key);
      } else {
        const word = { classification, atMs, note };
        for (const key of keys) this.rollups.setUserClassification(tx, domain.number, { ...word, key });
      }
      const after = sources.findAll(keys, range);
      return keys.flatMap((key) => after.get(key) ?? []);
    });
    if (classified instanceof AppError) throw classified;
    return classified;
  }
}

const unknownKeys = (keys: readonly string[]) => {
  const named = keys.slice(0, NAMED_KEYS_MAX).join(", ");
  const more = keys.length > NAMED_KEYS_MAX ? ` and ${keys.length - NAMED_KEYS_MAX} more` : "";
  return new AppError("not_found", {
    message: `No report names the source ${named}${more}. Use the keys that GET …/sources returns, URL-encoded in paths.`,
  });
};
