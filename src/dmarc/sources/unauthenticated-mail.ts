import { ipNetworkOf } from "../addresses/ip-network.ts";
import type { SourceAddress, Totals } from "./rollup-store.ts";
import { trustedEvidence, type Identities, type SourceWithEvidence, type SourceIdentity } from "./source-identity.ts";

/** Unauthenticated mail of addresses without a proper name, taken together: a threat. */
export const UNAUTHENTICATED_KEY = "unauthenticated";
/** The same from addresses whose reverse names are still being looked up. */
export const PENDING_KEY = "pending";
export type UnauthenticatedKey = typeof UNAUTHENTICATED_KEY | typeof PENDING_KEY;

/** A stored source with its identity, and what it sent in the range that is read. */
export interface MeasuredSource extends SourceWithEvidence {
  readonly identity: SourceIdentity;
  readonly totals: Totals;
  /** The part of it that trusted reports name: see `Standing` in `ingest/ingest-work.ts`. */
  readonly trusted: Totals;
}

/** An address that sends so much over so many days, beside few others of the kind, may be a server of the user's without a name. */
const RECURRING_DAYS = 14;
const RECURRING_MESSAGES = 10;
const RECURRING_NETWORKS_MAX = 3;
/** So many unrelated organizations with a little unauthenticated mail each are hosts that somebody broke into. */
const CAMPAIGN_ORGANIZATIONS_MIN = 10;
const CAMPAIGN_SHARE_MAX = 0.05;
/** No sender has nameless hosts in so many networks: an envelope domain that passes SPF from all of them lets everybody pass. */
const OPEN_SPF_NETWORKS_MIN = 3;

/**
 * Finds the mail that is nobody's: unauthenticated, from an address without a reverse name or with one that providers give to all of
 * theirs. Every address is judged for itself, by what it sent in the range. It is left out when the address sent aligned mail or proved
 * anything at any time, when its network is one of the domain's own, when its reverse name claims to be the domain's own, and when a
 * receiver recognized it as forwarded.
 *
 * Three things need a look at all of them: the few nameless addresses that send again and again for weeks stand for themselves;
 * unauthenticated mail of many unrelated organizations, a little of each, belongs to the pool; and so does mail that proves nothing but
 * an SPF record which lets everybody pass.
 */
export const createPools = (
  sources: readonly MeasuredSource[],
  facts: ReadonlyMap<string, SourceAddress>,
  { identities, relayed }: { readonly identities: Identities; readonly relayed: ReadonlySet<number> },
) => {
  const proving = new Set<string>();
  const ownNetworks = new Set<string>();
  const hasVouched = sources.some(({ isVouched }) => isVouched);
  for (const { number, evidence, isVouched } of trustedEvidence(sources)) {
    const { ip, signer, envelope, foreign } = evidence;
    if (ip === null) continue;
    if (signer !== null || envelope !== null || foreign !== null) proving.add(ip);
    // Neither a report that is not trusted nor a signature that was forwarded or replayed makes a network the domain's own.
    if (hasVouched && !isVouched) continue;
    const isSigned = signer !== null && !relayed.has(number);
    if (isSigned || identities.isOwn(envelope)) ownNetworks.add(ipNetworkOf(ip));
  }

  const provesNothing = ({ evidence: { ip, signer, envelope, foreign }, totals }: MeasuredSource): boolean =>
    ip !== null &&
    (signer ?? envelope ?? foreign) === null &&
    !proving.has(ip) &&
    !ownNetworks.has(ipNetworkOf(ip)) &&
    totals.messages > 0 &&
    totals.aligned === 0 &&
    totals.forwarded === 0;

  const namelessPool = (ip: string): UnauthenticatedKey | null => {
    const finding = identities.findingOf(ip);
    if (finding === "pending") return PENDING_KEY;
    if (finding !== "absent" && finding !== "generic") return null;
    return identities.isOwn(facts.get(ip)?.name ?? null) ? null : UNAUTHENTICATED_KEY;
  };

  const pools = new Map<number, UnauthenticatedKey>();
  const recurring: MeasuredSource[] = [];
  const named: MeasuredSource[] = [];
  for (const source of sources) {
    const { ip } = source.evidence;
    if (ip === null || !provesNothing(source)) continue;
    if (source.identity.kind === "organization") named.push(source);
    if (source.identity.kind !== "network") continue;
    const pool = namelessPool(ip);
    if (pool !== null) pools.set(source.number, pool);
    if (pool === UNAUTHENTICATED_KEY && facts.get(ip)?.name == null && isRecurring(source)) recurring.push(source);
  }
  const networks = new Set(recurring.map(({ evidence: { ip } }) => ipNetworkOf(ip ?? "")));
  if (networks.size <= RECURRING_NETWORKS_MAX) for (const { number } of recurring) pools.delete(number);
  for (const number of campaignOf(named)) pools.set(number, UNAUTHENTICATED_KEY);
  for (const number of openSpfOf(sources, identities)) pools.set(number, UNAUTHENTICATED_KEY);

  return {
    /** The pool of a source, or null for a source that stands for itself. */
    poolOf: ({ number }: MeasuredSource): UnauthenticatedKey | null => pools.get(number) ?? null,
    /** Whether mail of the domain's own comes from the network of an address. */
    isBesideOwn: (ip: string): boolean => ownNetworks.has(ipNetworkOf(ip)),
  };
};

/** The numbers of the sources of organizations that are known by an SPF record alone which lets any address pass. */
const openSpfOf = (sources: readonly MeasuredSource[], { findingOf }: Identities): readonly number[] => {
  const organizations = Map.groupBy(
    sources.filter(({ identity }) => identity.kind === "organization"),
    ({ identity }) => identity.key,
  );
  return [...organizations.values()].flatMap((of) => {
    const isBare = of.every(({ evidence: { ip, signer, foreign }, totals }) => {
      const finding = ip === null ? "pending" : findingOf(ip);
      const isNameless = finding === "absent" || finding === "generic";
      return isNameless && signer === null && foreign === null && totals.aligned === 0 && totals.forwarded === 0;
    });
    const networks = new Set(of.map(({ evidence: { ip } }) => ipNetworkOf(ip ?? "0.0.0.0")));
    return isBare && networks.size >= OPEN_SPF_NETWORKS_MIN ? of.map(({ number }) => number) : [];
  });
};

const isRecurring = ({ firstDay, lastDay, totals }: MeasuredSource): boolean =>
  lastDay - firstDay >= RECURRING_DAYS && totals.messages >= RECURRING_MESSAGES;

/** The numbers of sources that are part of a campaign through hosts of many organizations. */
const campaignOf = (named: readonly MeasuredSource[]): readonly number[] => {
  const organizations = Map.groupBy(named, ({ identity }) => identity.key);
  if (organizations.size < CAMPAIGN_ORGANIZATIONS_MIN) return [];
  const sum = (of: readonly MeasuredSource[]): number => of.reduce((total, { totals }) => total + totals.messages, 0);
  const all = sum(named);
  return [...organizations.values()].flatMap((of) => {
    const first = Math.min(...of.map(({ firstDay }) => firstDay));
    const last = Math.max(...of.map(({ lastDay }) => lastDay));
    const isBrief = last - first < RECURRING_DAYS;
    return isBrief || sum(of) <= all * CAMPAIGN_SHARE_MAX ? of.map(({ number }) => number) : [];
  });
};
