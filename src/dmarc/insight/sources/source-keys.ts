import { createRuleFinder, type SourceRule } from "../../records/domains/source-rules.ts";
import type { SourceAddress } from "./rollup-rows.ts";
import type { UserClassification } from "./rollup-store.ts";
import {
  organisationOf,
  type IdentifiedSource,
  type SourceIdentities,
  type SourceIdentity,
} from "./source-identity.ts";
import {
  PENDING_KEY,
  UNAUTHENTICATED_KEY,
  type UnauthenticatedKey,
  type UnauthenticatedMail,
} from "./unauthenticated-mail.ts";
import { readSourceKey } from "../../reports/ingest/rollup.ts";
import { findService } from "../../records/services/services.ts";
import { ipNetworkOf } from "../addresses/address-store.ts";

/** A stored source with the key that users see it under. */
export interface KeyedSource extends IdentifiedSource {
  readonly shownKey: string;
  /** The key when each network of unauthenticated mail is a source of its own; no other mail has the key of such a network. */
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
const NETWORK_PREFIX = "net:";
/** Ends the key of a network's unauthenticated mail where the network itself is the key of other mail. */
export const UNAUTHENTICATED_SUFFIX = "/unauthenticated";

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
  const shown = sources.map((source) => {
    const unauthenticatedKey = keys.get(source.number) ?? null;
    const rule = findRule(source);
    const { key } = source.identity;
    const identityKey = isUnrelated(source, connected, context) ? `${key}${UNRELATED_SUFFIX}` : key;
    const classifiedKey = unauthenticatedKey === null ? identityKey : classifiedNetworkKey(source, rule, context);
    return { source, unauthenticatedKey, rule, shownKey: classifiedKey ?? unauthenticatedKey ?? identityKey };
  });
  const shownKeys = new Set(shown.map(({ shownKey }) => shownKey));
  return shown.map(({ source, unauthenticatedKey, rule, shownKey }): KeyedSource => {
    const { ip, signer, envelope, foreign } = source.evidence;
    return {
      ...source,
      shownKey,
      networkKey: shownKey === unauthenticatedKey ? unauthenticatedNetworkKey(source, shownKeys) : shownKey,
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

/** The key of unauthenticated mail that the user classified, itself, by its network or by a rule; null for other such mail. */
const classifiedNetworkKey = (
  source: IdentifiedSource,
  rule: SourceRule | null,
  { userClassifications }: KeyContext,
): string | null => {
  const network = networkKeyOf(source);
  const known = [source.identity.key, network, `${network}${UNAUTHENTICATED_SUFFIX}`];
  const byRule = rule !== null && rule.classification !== "threat" ? network : null;
  return known.find((key) => userClassifications.has(key)) ?? byRule;
};

const unauthenticatedNetworkKey = (source: IdentifiedSource, shownKeys: ReadonlySet<string>): string => {
  const network = networkKeyOf(source);
  return shownKeys.has(network) ? `${network}${UNAUTHENTICATED_SUFFIX}` : network;
};

const networkKeyOf = ({ evidence: { ip } }: IdentifiedSource): string => `${NETWORK_PREFIX}${ipNetworkOf(ip ?? "")}`;

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
  if (key.endsWith(UNAUTHENTICATED_SUFFIX)) {
    const network = key.slice(NETWORK_PREFIX.length, -UNAUTHENTICATED_SUFFIX.length);
    return { key, kind: "network", name: `${network} (unauthenticated mail)`, service: null };
  }
  const name = key.endsWith(UNRELATED_SUFFIX) ? `${identity.name} (not from your account)` : identity.name;
  return { ...identity, key, name };
};

/** Keys that any source may have. */
const ALWAYS = ["own", "other", UNAUTHENTICATED_KEY, PENDING_KEY];

/**
 * All keys under which a user may have classified a stored source: those that it may be shown under, which depends on the other
 * sources of the domain, and those from before sources were identified by service.
 */
export const possibleKeysOf = (
  key: string,
  address: { readonly ip: string; readonly name: string | null; readonly isConfirmed: boolean } | null,
): readonly string[] => {
  const { signer, envelope, foreign } = readSourceKey(key);
  const reverse = address?.isConfirmed === true ? address.name : null;
  const names = [signer, envelope, foreign, reverse].filter((name) => name !== null);
  return [
    ...ALWAYS,
    ...names.flatMap((name) => {
      const service = findService(name);
      const identity = service === null ? `org:${organisationOf(name)}` : `service:${service.id}`;
      return [identity, `${identity}${UNRELATED_SUFFIX}`];
    }),
    ...(signer === null ? [] : [`dkim:${signer}`]),
    ...(envelope === null ? [] : [`spf:${envelope}`]),
    ...(reverse === null ? [] : [`ptr:${organisationOf(reverse)}`]),
    ...(address === null ? [] : networkKeys(address.ip)),
    key,
  ];
};

const networkKeys = (ip: string): readonly string[] => {
  const network = `net:${ipNetworkOf(ip)}`;
  return [network, `${network}${UNAUTHENTICATED_SUFFIX}`];
};
