import { isLegacyKey } from "../../reports/ingest/source-key.ts";
import { ipNetworkOf } from "../addresses/ip-network.ts";
import type { SourceAddress } from "./rollup-rows.ts";
import type { Classification, UserClassification } from "./rollup-store.ts";
import { type IdentifiedSource, organisationOf } from "./source-identity.ts";
import type { KeyedSource } from "./source-keys.ts";

/** The user's classifications by key, and what is known about addresses. */
export interface UserClassificationContext {
  readonly userClassifications: ReadonlyMap<string, UserClassification>;
  readonly addresses: ReadonlyMap<string, SourceAddress>;
}

/**
 * The user's classification of a source: that of its key; else the one that all of its stored sources have under an earlier key:
 * from before sources were identified by service (`dkim:`, `spf:`, `ptr:`), or of their network before a name was known. It does
 * not extend to sources that appeared after it was made. Null for none.
 */
export const userClassificationOf = (
  key: string,
  members: readonly IdentifiedSource[],
  context: UserClassificationContext,
): Classification | null => {
  const { userClassifications } = context;
  const own = userClassifications.get(key);
  if (own !== undefined || userClassifications.size === 0) return own?.classification ?? null;
  const found = members.map((member) => earlierClassificationOf(member, context));
  const [first] = found;
  if (first === undefined || found.some((one) => one?.classification !== first.classification)) return null;
  const isOlder = members.some(({ firstSeenAtMs }, n) => firstSeenAtMs <= (found[n]?.atMs ?? 0));
  return isOlder ? first.classification : null;
};

/** The user's classification of a stored source under a key that it had earlier. */
export const earlierClassificationOf = (
  { key, evidence: { ip, signer, envelope }, firstSeenAtMs }: IdentifiedSource,
  { userClassifications, addresses }: UserClassificationContext,
): UserClassification | undefined => {
  if (signer !== null) return userClassifications.get(`dkim:${signer}`);
  if (envelope !== null) return userClassifications.get(`spf:${envelope}`);
  if (ip === null) return isLegacyKey(key) ? userClassifications.get(key) : undefined;
  const address = addresses.get(ip);
  const reverse = address?.isConfirmed === true && address.name !== null ? `ptr:${organisationOf(address.name)}` : "";
  const found = userClassifications.get(reverse) ?? userClassifications.get(`net:${ipNetworkOf(ip)}`);
  return found !== undefined && firstSeenAtMs <= found.atMs ? found : undefined;
};

/** The classification that the user's rules give to all stored sources that sent something; null where they differ. */
export const ruleClassificationOf = (members: readonly KeyedSource[]): Classification | null => {
  const active = members.filter(({ totals }) => totals.messages > 0);
  const [first = null, ...others] = new Set(active.map(({ rule }) => rule?.classification ?? null));
  return others.length === 0 ? first : null;
};
