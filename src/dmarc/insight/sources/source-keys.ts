import { ipNetworkOf } from "../addresses/ip-network.ts";
import { createRuleFinder, type SourceRule } from "../../records/domains/source-rules.ts";
import type { SourceAddress } from "./rollup-rows.ts";
import type { UserClassification } from "./rollup-store.ts";
import type { IdentifiedSource, SourceIdentities, SourceIdentity } from "./source-identity.ts";
import {
  PENDING_KEY,
  UNAUTHENTICATED_KEY,
  type UnauthenticatedKey,
  type UnauthenticatedMail,
} from "./unauthenticated-mail.ts";

/** A stored source with the key that users see it under. */
export interface KeyedSource extends IdentifiedSource {
  readonly shownKey: string;
  /** The key when each network of unauthenticated mail is a source of its own. */
  readonly networkKey: string;
  /** Set for unauthenticated mail, also where its network has a key of its own. */
  readonly unauthenticatedKey: UnauthenticatedKey | null;
  readonly isRelayed: boolean;
  /** Whether its evidence is consistent with aligned mail: evidence from a report about another header_from domain is not. */
  readonly isPlausible: boolean;
  /** Whether the reverse name of its address is still being looked up. */
  readonly isNamePending: boolean;
  /** Whether mail of the domain's own comes from the same network. */
  readonly isBesideOwn: boolean;
  /** The first of the user's rules that matches; null for none. */
  readonly rule: SourceRule | null;
}

/** Ends the key of mail from a service that cannot be attributed to the domain's own account there. */
export const UNRELATED_SUFFIX = "/others";

/** What all sources of a range say together, and what the user says about them. */
export interface KeyContext extends UnauthenticatedMail {
  readonly addresses: ReadonlyMap<string, SourceAddress>;
  readonly identities: SourceIdentities;
  /** See `findRelayed`. */
  readonly relayed: ReadonlySet<number>;
  readonly rules: readonly SourceRule[];
  readonly userClassifications: ReadonlyMap<string, UserClassification>;
}

/** Decides under which key users see each stored source of a domain. */
export const assignKeys = (sources: readonly IdentifiedSource[], context: KeyContext): readonly KeyedSource[] => {
  const { addresses, identities, relayed, keys, ownNetworks } = context;
  const connected = connectedKeys(sources, context);
  const findRule = ruleFinder(context);
  return sources.map((source): KeyedSource => {
    const { ip, signer, envelope, foreign } = source.evidence;
    const unauthenticatedKey = keys.get(source.number) ?? null;
    const rule = findRule(source);
    const identityKey = isUnrelated(source, connected, context)
      ? `${source.identity.key}${UNRELATED_SUFFIX}`
      : source.identity.key;
    const { shownKey, networkKey } =
      unauthenticatedKey === null
        ? { shownKey: identityKey, networkKey: identityKey }
        : unauthenticatedKeys(source, unauthenticatedKey, { rule, context });
    return {
      ...source,
      shownKey,
      networkKey,
      unauthenticatedKey,
      rule,
      isPlausible: signer !== null || identities.isOwn(envelope) || (envelope === null && foreign === null),
      isRelayed: relayed.has(source.number),
      isNamePending: ip !== null && addresses.get(ip)?.isAsked !== true,
      isBesideOwn: ip !== null && ownNetworks.has(ipNetworkOf(ip)),
    };
  });
};

/** The keys of senders that sign for the domain, or use it in the envelope. */
const connectedKeys = (
  sources: readonly IdentifiedSource[],
  { identities, relayed }: KeyContext,
): ReadonlySet<string> =>
  new Set(
    sources
      .filter(({ number, evidence: { signer, envelope } }) => {
        return (signer !== null && !relayed.has(number)) || identities.isOwn(envelope);
      })
      .map(({ identity }) => identity.key),
  );

/**
 * Whether mail of a mailbox provider or gateway is not the domain's own: it was signed elsewhere, or neither the signature nor
 * the envelope is the domain's. Users of mailbox providers forward mail, and gateways filter it on its way to receivers.
 */
const isUnrelated = (
  { number, identity, evidence, totals }: IdentifiedSource,
  connected: ReadonlySet<string>,
  { identities, relayed }: KeyContext,
): boolean => {
  const kind = identity.service?.kind;
  if (kind === "gateway") return relayed.has(number);
  if (kind !== "mailbox provider" || identities.isTenant(evidence.foreign)) return false;
  // Where nothing else connects the domain with the provider, neither does a reporter that leaves results out.
  if (relayed.has(number) || !connected.has(identity.key)) return true;
  return evidence.signer === null && !identities.isOwn(evidence.envelope) && totals.aligned === 0;
};

/** A network that the user classified, itself or by a rule, is a source of its own. */
const unauthenticatedKeys = (
  { identity: { key }, evidence: { ip } }: IdentifiedSource,
  unauthenticatedKey: UnauthenticatedKey,
  { rule, context }: { readonly rule: SourceRule | null; readonly context: KeyContext },
): Pick<KeyedSource, "shownKey" | "networkKey"> => {
  const { userClassifications } = context;
  if (userClassifications.has(key)) return { shownKey: key, networkKey: key };
  const networkKey = `net:${ipNetworkOf(ip ?? "")}`;
  const isClassified = userClassifications.has(networkKey) || (rule !== null && rule.classification !== "threat");
  return { shownKey: isClassified ? networkKey : unauthenticatedKey, networkKey };
};

const ruleFinder = ({
  rules,
  addresses,
  identities,
}: KeyContext): ((source: IdentifiedSource) => SourceRule | null) => {
  if (rules.length === 0) return () => null;
  const findRule = createRuleFinder(rules);
  return ({ evidence: { ip, signer, envelope, foreign } }) => {
    if (ip === null) return null;
    const address = addresses.get(ip);
    return findRule({
      ip,
      name: address?.isConfirmed === true ? address.name : null,
      isAsked: address?.isAsked ?? false,
      isGeneric: identities.reverseNameKind(ip) === "generic",
      asn: address?.asn ?? null,
      country: address?.country ?? null,
      isAuthenticated: (signer ?? envelope ?? foreign) !== null,
    });
  };
};

const UNAUTHENTICATED_NAMES: Readonly<Record<UnauthenticatedKey, string>> = {
  [UNAUTHENTICATED_KEY]: "Unauthenticated mail",
  [PENDING_KEY]: "Unauthenticated mail, reverse DNS lookups pending",
};

/** The identity that users see under a key of a source. */
export const shownIdentity = (key: string, { identity }: Pick<IdentifiedSource, "identity">): SourceIdentity => {
  if (key === UNAUTHENTICATED_KEY || key === PENDING_KEY) {
    return { key, kind: "unauthenticated", name: UNAUTHENTICATED_NAMES[key], service: null };
  }
  const name = key.endsWith(UNRELATED_SUFFIX) ? `${identity.name} (not from your account)` : identity.name;
  return { ...identity, key, name };
};
