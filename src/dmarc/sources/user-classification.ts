import { isLegacyKey } from "../ingest/source-key.ts";
import { ipNetworkOf } from "../addresses/ip-network.ts";
import type { SourceAddress, Classification, UserClassification } from "./rollup-store.ts";
import { organisationOf } from "./source-identity.ts";
import type { MeasuredSource } from "./unauthenticated-mail.ts";

/** What the user said of sources, by key, and what is known of their addresses. */
export interface UserClassificationContext {
  readonly words: ReadonlyMap<string, UserClassification>;
  readonly facts: ReadonlyMap<string, SourceAddress>;
}

/**
 * The user's classification of a source: the one given to its key; else the one that all of its stored sources have from before
 * sources were identified by service (`dkim:`, `spf:`, `ptr:`), or that was given to their networks before a name was known. Whoever
 * comes to a network later is not meant. Null when there is none.
 */
export const userClassificationOf = (
  key: string,
  members: readonly MeasuredSource[],
  user: UserClassificationContext,
): Classification | null => {
  const own = user.words.get(key);
  if (own !== undefined || user.words.size === 0) return own?.classification ?? null;
  const found = members.map((member) => earlierClassificationOf(member, user));
  const [first] = found;
  if (first === undefined || found.some((word) => word?.classification !== first.classification)) return null;
  // A service that began to sign for the domain later is not meant either.
  const isMeant = members.some(({ firstSeenAtMs }, n) => firstSeenAtMs <= (found[n]?.atMs ?? 0));
  return isMeant ? first.classification : null;
};

/** What was said of a stored source under a key that it had before. */
export const earlierClassificationOf = (
  { key, evidence: { ip, signer, envelope }, firstSeenAtMs }: MeasuredSource,
  { words, facts }: UserClassificationContext,
): UserClassification | undefined => {
  if (signer !== null) return words.get(`dkim:${signer}`);
  if (envelope !== null) return words.get(`spf:${envelope}`);
  if (ip === null) return isLegacyKey(key) ? words.get(key) : undefined;
  const address = facts.get(ip);
  const reverse = address?.isConfirmed === true && address.name !== null ? `ptr:${organisationOf(address.name)}` : "";
  const word = words.get(reverse) ?? words.get(`net:${ipNetworkOf(ip)}`);
  return word !== undefined && firstSeenAtMs <= word.atMs ? word : undefined;
};
