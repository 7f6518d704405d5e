import { networkOf } from "./network.ts";
import type { AddressFacts, Totals } from "./reading-store.ts";
import {
  type Identities,
  type ReadSource,
  type ReverseFinding,
  reverseOf,
  type SourceIdentity,
} from "./source-identity.ts";

/** Unauthenticated mail of addresses without a proper name, taken together: a threat. */
export const UNAUTHENTICATED_MAIL = "unauthenticated";
/** The same from addresses whose reverse names are still being looked up. */
export const PENDING = "pending";
export type Pool = typeof UNAUTHENTICATED_MAIL | typeof PENDING;

/** A stored source with its identity, and what it sent in the range that is read. */
export interface MeasuredSource extends ReadSource {
  readonly identity: SourceIdentity;
  readonly totals: Totals;
  /** The part of it that trusted reports name: see `Standing` in `ingest/ingest-work.ts`. */
  readonly trusted: Totals;
}

/**
 * Finds the mail that is nobody's: unauthenticated, from an address without a reverse name or with one that providers give to
 * customers at home. Every address is judged for itself, by what it sent in the range. It is left out when the address sent aligned
 * mail or proved anything at any time, when its network is one of the domain's own, when its reverse name claims to be the domain's
 * own, and when a receiver recognized it as forwarded.
 */
export const createPools = (
  sources: readonly ReadSource[],
  facts: ReadonlyMap<string, AddressFacts>,
  identities: Identities,
) => {
  const proving = new Set<string>();
  const ownNetworks = new Set<string>();
  for (const { evidence } of sources) {
    const { ip, signer, envelope, foreign } = evidence;
    if (ip === null) continue;
    if (signer !== null || envelope !== null || foreign !== null) proving.add(ip);
    if (signer !== null || identities.isOwn(envelope)) ownNetworks.add(networkOf(ip));
  }

  const nameless = new Map<string, ReverseFinding>();
  const findingOf = (ip: string): ReverseFinding => {
    const finding = nameless.get(ip) ?? reverseOf(facts.get(ip));
    nameless.set(ip, finding);
    return finding;
  };

  const poolOf = ({ evidence, totals, identity }: MeasuredSource): Pool | null => {
    const { ip } = evidence;
    if (identity.kind !== "network" || ip === null || proving.has(ip) || ownNetworks.has(networkOf(ip))) return null;
    if (totals.messages === 0 || totals.aligned > 0 || totals.forwarded > 0) return null;
    const finding = findingOf(ip);
    if (finding === "pending") return PENDING;
    if (finding !== "absent" && finding !== "generic") return null;
    return identities.isOwn(facts.get(ip)?.name ?? null) ? null : UNAUTHENTICATED_MAIL;
  };

  return {
    /** The pool of a source, or null for a source that stands for itself. */
    poolOf,
    /** Whether mail of the domain's own comes from the network of an address. */
    isBesideOwn: (ip: string): boolean => ownNetworks.has(networkOf(ip)),
  };
};
