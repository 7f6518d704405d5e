import { trustedEvidence, type IdentifiedSource, type SourceIdentities } from "./source-identity.ts";
import type { SourceAddress } from "./rollup-rows.ts";
import { ipNetworkOf } from "../addresses/address-store.ts";

/** The key of all unauthenticated mail from addresses without a proper reverse name. */
export const UNAUTHENTICATED_KEY = "unauthenticated";
/** The same while the reverse names of its addresses are being looked up. */
export const PENDING_KEY = "pending";
export type UnauthenticatedKey = typeof UNAUTHENTICATED_KEY | typeof PENDING_KEY;

/**
 * An address that sends this much over this many days, from one of a few networks, may be a server of the user without a name.
 */
const RECURRING_DAYS = 14;
const RECURRING_MESSAGES = 10;
const RECURRING_NETWORKS_MAX = 3;
/** Unauthenticated mail of this many unrelated organizations, a little each, comes from compromised hosts. */
const COMPROMISED_ORGANIZATIONS_MIN = 10;
const COMPROMISED_SHARE_MAX = 0.05;
/** An envelope domain that passes SPF from nameless hosts in this many networks has a record that authorizes everybody. */
const OPEN_SPF_NETWORKS_MIN = 3;

export interface UnauthenticatedMail {
  /** The key of each unauthenticated source, by its number. */
  readonly keys: ReadonlyMap<number, UnauthenticatedKey>;
  /** The networks that mail of the domain's own comes from. */
  readonly ownNetworks: ReadonlySet<string>;
}

interface Context {
  readonly addresses: ReadonlyMap<string, SourceAddress>;
  readonly identities: SourceIdentities;
  /** See `findRelayed`. */
  readonly relayed: ReadonlySet<number>;
}

/**
 * Finds unauthenticated mail: nothing passed, and its address has no confirmed reverse name or a generic one. Each address is
 * judged by what it sent in the range. Exempt are addresses that ever sent aligned mail or authenticated anything, networks of
 * the domain's own senders, reverse names that claim to be the domain's own, and mail that a receiver recognized as forwarded.
 *
 * Three rules look at all addresses together: a few nameless addresses that send for weeks are sources of their own; a little
 * unauthenticated mail from each of many unrelated organizations counts as unauthenticated; and so does mail whose only proof
 * is an SPF record that authorizes everybody.
 */
export const findUnauthenticated = (sources: readonly IdentifiedSource[], context: Context): UnauthenticatedMail => {
  const { addresses, identities } = context;
  const { authenticated, ownNetworks } = findAuthenticated(sources, context);
  const keys = new Map<number, UnauthenticatedKey>();
  const recurring: IdentifiedSource[] = [];
  const named: IdentifiedSource[] = [];
  for (const source of sources) {
    const { evidence, identity, totals, number } = source;
    const { ip } = evidence;
    if (ip === null || authenticated.has(ip) || ownNetworks.has(ipNetworkOf(ip)) || isAuthenticated(source)) continue;
    if (totals.messages === 0 || totals.aligned > 0 || totals.forwarded > 0) continue;
    if (identity.kind === "organization") named.push(source);
    if (identity.kind !== "network") continue;
    const key = namelessKey(ip, context);
    if (key !== null) keys.set(number, key);
    if (key === UNAUTHENTICATED_KEY && addresses.get(ip)?.name == null && isRecurring(source)) recurring.push(source);
  }
  const networks = new Set(recurring.map(({ evidence: { ip } }) => ipNetworkOf(ip ?? "")));
  if (networks.size <= RECURRING_NETWORKS_MAX) for (const { number } of recurring) keys.delete(number);
  for (const { number } of [...compromisedHosts(named), ...openSpfSenders(sources, identities)]) {
    keys.set(number, UNAUTHENTICATED_KEY);
  }
  return { keys, ownNetworks };
};

const isAuthenticated = ({ evidence: { signer, envelope, foreign } }: IdentifiedSource): boolean =>
  (signer ?? envelope ?? foreign) !== null;

const findAuthenticated = (sources: readonly IdentifiedSource[], { identities, relayed }: Context) => {
  const authenticated = new Set<string>();
  const ownNetworks = new Set<string>();
  const hasVouched = sources.some(({ isVouched }) => isVouched);
  for (const source of trustedEvidence(sources)) {
    const { ip, signer, envelope } = source.evidence;
    if (ip === null) continue;
    if (isAuthenticated(source)) authenticated.add(ip);
    // Neither an untrusted report nor a forwarded or replayed signature makes a network the domain's own.
    if (hasVouched && !source.isVouched) continue;
    const isSigned = signer !== null && !relayed.has(source.number);
    if (isSigned || identities.isOwn(envelope)) ownNetworks.add(ipNetworkOf(ip));
  }
  return { authenticated, ownNetworks };
};

const namelessKey = (ip: string, { addresses, identities }: Context): UnauthenticatedKey | null => {
  const kind = identities.reverseNameKind(ip);
  if (kind === "pending") return PENDING_KEY;
  if (kind !== "absent" && kind !== "generic") return null;
  return identities.isOwn(addresses.get(ip)?.name ?? null) ? null : UNAUTHENTICATED_KEY;
};

const isRecurring = ({ firstDay, lastDay, totals }: IdentifiedSource): boolean =>
  lastDay - firstDay >= RECURRING_DAYS && totals.messages >= RECURRING_MESSAGES;

const byIdentity = (sources: readonly IdentifiedSource[]): readonly (readonly IdentifiedSource[])[] => [
  ...Map.groupBy(sources, ({ identity }) => identity.key).values(),
];

/** The unauthenticated sources of organizations that send for a short time, or a small share of all such mail. */
const compromisedHosts = (named: readonly IdentifiedSource[]): readonly IdentifiedSource[] => {
  const organizations = byIdentity(named);
  if (organizations.length < COMPROMISED_ORGANIZATIONS_MIN) return [];
  const messagesOf = (of: readonly IdentifiedSource[]) => of.reduce((sum, { totals }) => sum + totals.messages, 0);
  const most = messagesOf(named) * COMPROMISED_SHARE_MAX;
  return organizations
    .filter((of) => {
      const first = Math.min(...of.map(({ firstDay }) => firstDay));
      const last = Math.max(...of.map(({ lastDay }) => lastDay));
      return last - first < RECURRING_DAYS || messagesOf(of) <= most;
    })
    .flat();
};

/** The sources of organizations of which nothing but an SPF pass from nameless hosts in several networks is known. */
const openSpfSenders = (
  sources: readonly IdentifiedSource[],
  identities: SourceIdentities,
): readonly IdentifiedSource[] =>
  byIdentity(sources.filter(({ identity }) => identity.kind === "organization"))
    .filter((of) => {
      const networks = new Set(of.map(({ evidence: { ip } }) => ipNetworkOf(ip ?? "0.0.0.0")));
      return (
        networks.size >= OPEN_SPF_NETWORKS_MIN &&
        of.every(({ evidence: { ip, signer, foreign }, totals }) => {
          const kind = ip === null ? "pending" : identities.reverseNameKind(ip);
          const isNameless = kind === "absent" || kind === "generic";
          return isNameless && signer === null && foreign === null && totals.aligned === 0 && totals.forwarded === 0;
        })
      );
    })
    .flat();
