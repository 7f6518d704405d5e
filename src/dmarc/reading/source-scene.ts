import type { DayRange } from "../../base/days.ts";
import { fitsRule, type SourceRule } from "../domains/source-rules.ts";
import { networkOf } from "./network.ts";
import {
  addTotals,
  type AddressFacts,
  NO_TOTALS,
  type ReadingStore,
  type SourceWord,
  type Totals,
} from "./reading-store.ts";
import { createIdentities, reverseOf, type SourceIdentity, withEvidence } from "./source-identity.ts";
import { createPools, type MeasuredSource, PENDING, type Pool, UNAUTHENTICATED_MAIL } from "./source-pool.ts";
import { findRelayed } from "./source-relays.ts";

/** Of a domain, what reading needs. */
export interface ReadDomain {
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
export interface PlacedSource extends MeasuredSource {
  readonly shownKey: string;
  /** Set for unauthenticated mail, whether it is shown as one or by network. */
  readonly pool: Pool | null;
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
  readonly sources: readonly PlacedSource[];
  readonly facts: ReadonlyMap<string, AddressFacts>;
  readonly words: ReadonlyMap<string, SourceWord>;
}

/** Ends the key of what comes from a service without being connected with the domain's own account there. */
export const OTHERS = "/others";

/** Reads the stored sources of a domain, and decides which source each of them is shown as. */
export const readScene = (
  store: ReadingStore,
  { number, domain, sourceRules }: ReadDomain,
  range: DayRange,
  { byNetwork = false }: SourceOptions,
): SourceScene => {
  const sums = Map.groupBy(store.sources(number, range), (sum) => sum.number);
  const facts = store.addressFacts(number);
  const words = new Map(store.words(number).map((word) => [word.key, word]));
  const stored = store.allSources(number).map(withEvidence);
  const identities = createIdentities({ domain, sources: stored, facts });
  const measured = stored.map((source): MeasuredSource => {
    const own = sums.get(source.number) ?? [];
    const totals = own.reduce<Totals>(addTotals, NO_TOTALS);
    const trusted = own.find(({ isTrusted }) => isTrusted) ?? NO_TOTALS;
    return { ...source, identity: identities.identityOf(source), totals, trusted };
  });
  const pools = createPools(measured, facts, identities);
  const relayed = findRelayed(measured, identities);
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

  const shownKeyOf = (source: MeasuredSource, pool: Pool | null, rule: SourceRule | null): string => {
    const { key } = source.identity;
    if (pool === null) return isOfOthers(source) ? `${key}${OTHERS}` : key;
    // A network that the user classified stands for itself.
    const network = `net:${networkOf(source.evidence.ip ?? "")}`;
    if (words.has(key)) return key;
    const isClassified = words.has(network) || (rule !== null && rule.classification !== "threat");
    return byNetwork || isClassified ? network : pool;
  };

  const sources = measured.map((source): PlacedSource => {
    const pool = pools.poolOf(source);
    const rule = ruleFor(source, sourceRules, facts);
    const { signer, envelope, foreign } = source.evidence;
    const isOwn = signer !== null || identities.isOwn(envelope);
    const isPlausible = isOwn || (envelope === null && foreign === null);
    const shownKey = shownKeyOf(source, pool, rule);
    const { ip } = source.evidence;
    return {
      ...{ ...source, pool, rule, shownKey, isPlausible },
      isRelayed: relayed.has(source.number),
      isNamePending: ip !== null && facts.get(ip)?.isAsked !== true,
      isBesideOwn: ip !== null && pools.isBesideOwn(ip),
    };
  });
  return { sources, facts, words };
};

const ruleFor = (
  { evidence }: MeasuredSource,
  rules: readonly SourceRule[],
  facts: ReadonlyMap<string, AddressFacts>,
): SourceRule | null => {
  const { ip, signer, envelope, foreign } = evidence;
  if (rules.length === 0 || ip === null) return null;
  const known = facts.get(ip);
  const address = {
    ip,
    name: known?.isConfirmed === true ? known.name : null,
    isAsked: known?.isAsked ?? false,
    isGeneric: reverseOf(known) === "generic",
    asn: known?.asn ?? null,
    country: known?.country ?? null,
    isAuthenticated: signer !== null || envelope !== null || foreign !== null,
  };
  return rules.find((rule) => fitsRule(rule, address)) ?? null;
};

const POOL_NAMES: Readonly<Record<Pool, string>> = {
  [UNAUTHENTICATED_MAIL]: "Unauthenticated mail",
  [PENDING]: "Unauthenticated mail, reverse DNS lookups pending",
};

/** The identity that people see under a key: that of its sources, or a pool. */
export const shownIdentity = (key: string, { identity }: Pick<MeasuredSource, "identity">): SourceIdentity => {
  if (key === UNAUTHENTICATED_MAIL || key === PENDING) {
    return { key, kind: "unauthenticated", name: POOL_NAMES[key], service: null };
  }
  if (key.endsWith(OTHERS)) return { ...identity, key, name: `${identity.name} (not from your account)` };
  return { ...identity, key };
};
