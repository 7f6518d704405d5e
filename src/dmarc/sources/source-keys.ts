import type { DayRange } from "../../base/days.ts";
import { createRuleFinder, type RuledAddress, type SourceRule } from "../domains/source-rules.ts";
import { entryOf } from "../ingest/rollup.ts";
import { ipNetworkOf } from "../addresses/ip-network.ts";
import {
  addTotals,
  type SourceAddress,
  NO_TOTALS,
  type RollupStore,
  type UserClassification,
  type Totals,
} from "./rollup-store.ts";
import {
  trustedEvidence,
  createIdentities,
  type Identities,
  type SourceIdentity,
  withEvidence,
} from "./source-identity.ts";
import {
  createPools,
  type MeasuredSource,
  PENDING_KEY,
  type UnauthenticatedKey,
  UNAUTHENTICATED_KEY,
} from "./unauthenticated-mail.ts";
import { findRelayed } from "./relayed-mail.ts";

/** Of a domain, what reading needs. */
export interface SourceDomain {
  readonly number: number;
  readonly id: string;
  readonly domain: string;
  readonly sourceRules: readonly SourceRule[];
}

/** How sources are shown. */
export interface SourceOptions {
  /** Shows every network of the unauthenticated mail as a source of its own, not all of them as one. */
  readonly byNetwork?: boolean;
}

/** A stored source with the key that it is shown under. */
export interface KeyedSource extends MeasuredSource {
  readonly shownKey: string;
  /** The key when every network of the unauthenticated mail is a source of its own. */
  readonly networkKey: string;
  /** Set for unauthenticated mail, whether it is shown as one or by network. */
  readonly pool: UnauthenticatedKey | null;
  readonly isRelayed: boolean;
  /** Whether what it proves, if anything, fits its mail being aligned: reports about another `From` name foreign proofs. */
  readonly isPlausible: boolean;
  /** Whether the reverse name of its address is still being looked up. */
  readonly isNamePending: boolean;
  /** Whether mail of the domain's own comes from the same network. */
  readonly isBesideOwn: boolean;
  /** The first of the user's rules that fits it; null for none. */
  readonly rule: SourceRule | null;
}

/** A domain's stored sources as they are seen in a range. */
export interface SourceScene {
  readonly sources: readonly KeyedSource[];
  readonly facts: ReadonlyMap<string, SourceAddress>;
  readonly words: ReadonlyMap<string, UserClassification>;
}

/** Ends the key of what comes from a service without being connected with the domain's own account there. */
export const UNRELATED_SUFFIX = "/others";

/**
 * Reads the stored sources of a domain once, and decides for ranges of days which source each of them is shown as. Everything that
 * it answers is of one state of the database only when it is used within one transaction or snapshot.
 */
export const readScenes = (store: RollupStore, { number, domain, sourceRules }: SourceDomain) => {
  const facts = store.addressFacts(number);
  const stored = store.allSources(number).map(withEvidence);
  const identities = createIdentities({ domain, sources: trustedEvidence(stored), facts });
  const context: SceneContext = {
    facts,
    identities,
    findRule: sourceRules.length === 0 ? null : createRuleFinder(sourceRules),
  };
  const scenes = new Map<string, Measured>();
  const measure = (range: DayRange): Measured => {
    const sums = Map.groupBy(store.sources(number, range), (sum) => sum.number);
    const measured = stored.map((source): MeasuredSource => {
      const own = sums.get(source.number) ?? [];
      const [totals = NO_TOTALS] = own.length > 1 ? [own.reduce<Totals>(addTotals, NO_TOTALS)] : own;
      const trusted = own.find(({ isTrusted }) => isTrusted) ?? NO_TOTALS;
      return { ...source, identity: identities.identityOf(source), totals, trusted };
    });
    const relayed = findRelayed(measured, identities);
    return { measured, pools: createPools(measured, facts, { identities, relayed }), relayed };
  };
  return {
    /** What was counted in the range is read once; what the user says of sources is read every time. */
    at(range: DayRange): SourceScene {
      const measured = entryOf(scenes, `${range.fromDay}-${range.toDay}`, () => measure(range));
      const words = new Map(store.words(number).map((word) => [word.key, word]));
      return { sources: placeSources(measured, words, context), facts, words };
    },
  };
};

export type SourceScenes = ReturnType<typeof readScenes>;

/** What all the sources of a range say together. */
interface Measured {
  readonly measured: readonly MeasuredSource[];
  readonly pools: ReturnType<typeof createPools>;
  readonly relayed: ReadonlySet<number>;
}

interface SceneContext {
  readonly facts: ReadonlyMap<string, SourceAddress>;
  readonly identities: Identities;
  readonly findRule: ((address: RuledAddress) => SourceRule | null) | null;
}

const placeSources = (
  { measured, pools, relayed }: Measured,
  words: SourceScene["words"],
  { facts, identities, findRule }: SceneContext,
): readonly KeyedSource[] => {
  const connected = new Set(
    measured
      .filter(({ number: source, evidence: { signer, envelope } }) => {
        return (signer !== null && !relayed.has(source)) || identities.isOwn(envelope);
      })
      .map(({ identity }) => identity.key),
  );

  /**
   * Whether mail of a mailbox provider or gateway is not the domain's own: it was signed elsewhere, or neither a signature nor the
   * envelope is the domain's. Users of mailbox providers forward mail, and gateways filter it on its way to receivers.
   */
  const isOfOthers = ({ number: source, identity, evidence, totals }: MeasuredSource): boolean => {
    const kind = identity.service?.kind;
    if (kind === "gateway") return relayed.has(source);
    if (kind !== "mailbox provider") return false;
    // Where nothing else connects the domain with the provider, a reporter that leaves results out does not either.
    if (relayed.has(source) || !connected.has(identity.key)) return !identities.isTenant(evidence.foreign);
    const isConnected = evidence.signer !== null || identities.isOwn(evidence.envelope) || totals.aligned > 0;
    return !isConnected && !identities.isTenant(evidence.foreign);
  };

  const keysOf = (source: MeasuredSource, pool: UnauthenticatedKey | null, rule: SourceRule | null) => {
    const { key } = source.identity;
    if (pool === null) {
      const shownKey = isOfOthers(source) ? `${key}${UNRELATED_SUFFIX}` : key;
      return { shownKey, networkKey: shownKey };
    }
    // A network that the user classified stands for itself.
    const network = `net:${ipNetworkOf(source.evidence.ip ?? "")}`;
    if (words.has(key)) return { shownKey: key, networkKey: key };
    const isClassified = words.has(network) || (rule !== null && rule.classification !== "threat");
    return { shownKey: isClassified ? network : pool, networkKey: network };
  };

  const ruleFor = ({ evidence: { ip, signer, envelope, foreign } }: MeasuredSource): SourceRule | null => {
    if (findRule === null || ip === null) return null;
    const known = facts.get(ip);
    return findRule({
      ip,
      name: known?.isConfirmed === true ? known.name : null,
      isAsked: known?.isAsked ?? false,
      isGeneric: identities.findingOf(ip) === "generic",
      asn: known?.asn ?? null,
      country: known?.country ?? null,
      isAuthenticated: signer !== null || envelope !== null || foreign !== null,
    });
  };

  return measured.map((source): KeyedSource => {
    const pool = pools.poolOf(source);
    const rule = ruleFor(source);
    const { signer, envelope, foreign } = source.evidence;
    const isOwn = signer !== null || identities.isOwn(envelope);
    const isPlausible = isOwn || (envelope === null && foreign === null);
    const { ip } = source.evidence;
    return {
      ...source,
      ...keysOf(source, pool, rule),
      ...{ pool, rule, isPlausible },
      isRelayed: relayed.has(source.number),
      isNamePending: ip !== null && facts.get(ip)?.isAsked !== true,
      isBesideOwn: ip !== null && pools.isBesideOwn(ip),
    };
  });
};

const POOL_NAMES: Readonly<Record<UnauthenticatedKey, string>> = {
  [UNAUTHENTICATED_KEY]: "Unauthenticated mail",
  [PENDING_KEY]: "Unauthenticated mail, reverse DNS lookups pending",
};

/** The identity that people see under a key: that of its sources, or a pool. */
export const shownIdentity = (key: string, { identity }: Pick<MeasuredSource, "identity">): SourceIdentity => {
  if (key === UNAUTHENTICATED_KEY || key === PENDING_KEY) {
    return { key, kind: "unauthenticated", name: POOL_NAMES[key], service: null };
  }
  if (key.endsWith(UNRELATED_SUFFIX)) return { ...identity, key, name: `${identity.name} (not from your account)` };
  return { ...identity, key };
};
