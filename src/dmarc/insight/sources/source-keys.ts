import { sumBy } from "../../../foundation/base/sums.ts";
import { mapInSteps, type Steps } from "../../../foundation/base/in-steps.ts";
import { ipNetworkOf } from "../addresses/address-store.ts";
import type { SourceAddress } from "./rollup-rows.ts";
import {
  trustedEvidence,
  type IdentifiedSource,
  type SourceIdentities,
  organisationOf,
  type SourceIdentity,
} from "./source-identity.ts";
import { findService, hostsWebsites } from "../../records/services/services.ts";
import { forwardedByAddress, isForwardedSource, isUncheckedForwarding } from "./forwarded-mail.ts";
import { readSourceKey } from "../../reports/ingest/rollup.ts";
import type { UserClassification } from "./rollup-store.ts";
import { createRuleFinder, type SourceRule } from "../../records/domains/source-rules.ts";

/** The key of all unauthenticated mail from addresses without a proper reverse name. */
export const UNAUTHENTICATED_KEY = "unauthenticated";
/** The same while the reverse names of its addresses are being looked up. */
export const PENDING_KEY = "pending";
type UnauthenticatedKey = typeof UNAUTHENTICATED_KEY | typeof PENDING_KEY;

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
export function* findUnauthenticated(
  sources: readonly IdentifiedSource[],
  context: Context,
): Steps<UnauthenticatedMail> {
  const { addresses, identities } = context;
  const { authenticated, ownNetworks } = yield* findAuthenticated(sources, context);
  const keys = new Map<number, UnauthenticatedKey>();
  const recurring: IdentifiedSource[] = [];
  const named: IdentifiedSource[] = [];
  yield* mapInSteps(sources, (source) => {
    const { evidence, identity, totals, number } = source;
    const { ip } = evidence;
    if (totals.messages === 0 || totals.aligned > 0 || totals.forwarded > 0) return;
    if (ip === null || authenticated.has(ip) || isAuthenticated(source) || ownNetworks.has(ipNetworkOf(ip))) return;
    if (identity.kind === "organization") named.push(source);
    if (identity.kind !== "network") return;
    const key = namelessKey(ip, context);
    if (key !== null) keys.set(number, key);
    if (key === UNAUTHENTICATED_KEY && addresses.get(ip)?.name == null && isRecurring(source)) recurring.push(source);
  });
  yield;
  const networks = new Set(recurring.map(({ evidence: { ip } }) => ipNetworkOf(ip ?? "")));
  if (networks.size <= RECURRING_NETWORKS_MAX) for (const { number } of recurring) keys.delete(number);
  for (const { number } of [...compromisedHosts(named), ...openSpfSenders(sources, identities)]) {
    keys.set(number, UNAUTHENTICATED_KEY);
  }
  yield;
  return { keys, ownNetworks };
}

const isAuthenticated = ({ evidence: { signer, envelope, foreign } }: IdentifiedSource) =>
  (signer ?? envelope ?? foreign) !== null;

function* findAuthenticated(sources: readonly IdentifiedSource[], { identities, relayed }: Context) {
  const authenticated = new Set<string>();
  const ownNetworks = new Set<string>();
  const hasVouched = sources.some(({ isVouched }) => isVouched);
  yield* mapInSteps(trustedEvidence(sources), (source) => {
    const { ip, signer, envelope } = source.evidence;
    if (ip === null) return;
    if (isAuthenticated(source)) authenticated.add(ip);
    // Neither an untrusted report nor a forwarded or replayed signature makes a network the domain's own.
    if (hasVouched && !source.isVouched) return;
    const isSigned = signer !== null && !relayed.has(source.number);
    if (isSigned || identities.isOwn(envelope)) ownNetworks.add(ipNetworkOf(ip));
  });
  return { authenticated, ownNetworks };
}

const namelessKey = (ip: string, { addresses, identities }: Context) => {
  const kind = identities.reverseNameKind(ip);
  if (kind === "pending") return PENDING_KEY;
  if (kind !== "absent" && kind !== "generic") return null;
  return identities.isOwn(addresses.get(ip)?.name ?? null) ? null : UNAUTHENTICATED_KEY;
};

const isRecurring = ({ firstDay, lastDay, totals }: IdentifiedSource) =>
  lastDay - firstDay >= RECURRING_DAYS && totals.messages >= RECURRING_MESSAGES;

const byIdentity = (sources: readonly IdentifiedSource[]) => [
  ...Map.groupBy(sources, ({ identity }) => identity.key).values(),
];

/** The unauthenticated sources of organizations that send for a short time, or a small share of all such mail. */
const compromisedHosts = (named: readonly IdentifiedSource[]) => {
  const organizations = byIdentity(named);
  if (organizations.length < COMPROMISED_ORGANIZATIONS_MIN) return [];
  const messagesOf = (of: readonly IdentifiedSource[]) => sumBy(of, ({ totals }) => totals.messages);
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
const openSpfSenders = (sources: readonly IdentifiedSource[], identities: SourceIdentities) =>
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
  /** Whether its confirmed reverse name is in the domain's organization. */
  readonly isOwnName: boolean;
  /** The AS that announces its address; null when unknown. */
  readonly asn: number | null;
  /** Whether mail of the domain's own comes from the same network. */
  readonly isBesideOwn: boolean;
  /** The first of the user's rules that matches; null for none. */
  readonly rule: SourceRule | null;
  /** Whether many share the servers of its service, and nothing shows that its mail comes from the domain's own account there. */
  readonly isSenderUnknown: boolean;
}

/** The key of the domain's own servers; where some of them fail, of those that pass. */
export const OWN_KEY = "own";
/** The key of own servers that fail where others pass: see `findFailingOwn`. */
export const OWN_FAILING_KEY = "own/failing";
/** Ends the key of mail from a service that cannot be attributed to the domain's own account there. */
export const UNRELATED_SUFFIX = "/others";
const NETWORK_PREFIX = "net:";
/** Ends the key of a network's unauthenticated mail where the network itself is the key of other mail. */
const UNAUTHENTICATED_SUFFIX = "/unauthenticated";

/** What all sources of a range say together, and what the user says about them. */
interface KeyContext extends UnauthenticatedMail {
  readonly addresses: ReadonlyMap<string, SourceAddress>;
  readonly identities: SourceIdentities;
  /** See `findRelayed`. */
  readonly relayed: ReadonlySet<number>;
  readonly rules: readonly SourceRule[];
  readonly userClassifications: ReadonlyMap<string, UserClassification>;
}

/** Decides under which key users see each stored source of a domain. */
export function* assignKeys(sources: readonly IdentifiedSource[], context: KeyContext): Steps<readonly KeyedSource[]> {
  const { addresses, identities, relayed, keys, ownNetworks } = context;
  const connected = connectedKeys(sources, context);
  const findRule = ruleFinder(context);
  const forwarded = forwardedByAddress(sources, relayed);
  yield;
  const shown = yield* mapInSteps(sources, (source) => {
    const unauthenticatedKey = keys.get(source.number) ?? null;
    const rule = findRule(source);
    const { key, service } = source.identity;
    const isHoster = service !== null && hostsWebsites(service);
    const earlierKey = isHoster ? classifiedEarlierKey(source, connected, context) : null;
    const isOthers = isUnrelated(source, connected, context) || isUncheckedForwarding(source, forwarded);
    const identityKey = earlierKey ?? (isOthers ? `${key}${UNRELATED_SUFFIX}` : key);
    const classifiedKey = unauthenticatedKey === null ? identityKey : classifiedNetworkKey(source, rule, context);
    const shownKey = classifiedKey ?? unauthenticatedKey ?? identityKey;
    const isSenderUnknown = shownKey.endsWith(UNRELATED_SUFFIX) || (isHoster && !connected.has(key));
    return { source, unauthenticatedKey, rule, shownKey, isSenderUnknown };
  });
  const shownKeys = new Set(shown.map(({ shownKey }) => shownKey));
  return yield* mapInSteps(shown, ({ source, unauthenticatedKey, rule, shownKey, isSenderUnknown }) => {
    const { ip, signer, envelope, foreign } = source.evidence;
    const address = ip === null ? undefined : addresses.get(ip);
    return {
      ...source,
      shownKey,
      networkKey: shownKey === unauthenticatedKey ? unauthenticatedNetworkKey(source, shownKeys) : shownKey,
      unauthenticatedKey,
      rule,
      isSenderUnknown,
      isPlausible: signer !== null || identities.isOwn(envelope) || (envelope === null && foreign === null),
      isRelayed: relayed.has(source.number),
      isNamePending: ip !== null && address?.isAsked !== true,
      isOwnName: address?.isConfirmed === true && identities.isOwn(address.name),
      asn: address?.asn ?? null,
      isBesideOwn: ip !== null && ownNetworks.has(ipNetworkOf(ip)),
    };
  });
}

/** The keys of senders that sign for the domain, or use it in the envelope. */
const connectedKeys = (sources: readonly IdentifiedSource[], { identities, relayed }: KeyContext) =>
  new Set(
    sources
      .filter(({ number, evidence: { signer, envelope } }) => {
        return (signer !== null && !relayed.has(number)) || identities.isOwn(envelope);
      })
      .map(({ identity }) => identity.key),
  );

/**
 * Whether mail of a shared service is not the domain's own. Users of mailbox providers forward mail, and gateways filter it on its way
 * to receivers: their mail was signed elsewhere, or neither the signature nor the envelope is the domain's. A form on the domain's
 * own website fails in the same way, so of services that host websites only forwarded mail is somebody else's.
 */
const isUnrelated = (source: IdentifiedSource, connected: ReadonlySet<string>, { identities, relayed }: KeyContext) => {
  const { service } = source.identity;
  if (service === null) return false;
  if (hostsWebsites(service)) return isForwardedSource(source, relayed);
  if (service.kind === "gateway") return relayed.has(source.number);
  return service.kind === "mailbox provider" && isOfAnotherAccount(source, connected, { identities, relayed });
};

/** Whether nothing ties mail of a mailbox provider to the domain's own account there. */
const isOfAnotherAccount = (
  { number, identity, evidence, totals }: IdentifiedSource,
  connected: ReadonlySet<string>,
  { identities, relayed }: Pick<KeyContext, "identities" | "relayed">,
) => {
  if (identities.isTenant(evidence.foreign)) return false;
  // Where nothing else connects the domain with the provider, neither does a reporter that leaves results out.
  if (relayed.has(number) || !connected.has(identity.key)) return true;
  return evidence.signer === null && !identities.isOwn(evidence.envelope) && totals.aligned === 0;
};

/**
 * The key under which the user classified mail of a service that hosts websites before all of its hosts were one source: as somebody
 * else's, by the name of the host, or by the network. A classification keeps its mail apart until it is removed. Null for none.
 */
const classifiedEarlierKey = (
  source: IdentifiedSource,
  connected: ReadonlySet<string>,
  { userClassifications, addresses, identities, relayed }: KeyContext,
) => {
  if (userClassifications.size === 0) return null;
  const { identity, evidence } = source;
  const isMailbox = identity.service?.kind === "mailbox provider";
  const isOthers = isMailbox && isOfAnotherAccount(source, connected, { identities, relayed });
  const address = evidence.ip === null ? undefined : addresses.get(evidence.ip);
  const names = isMailbox ? [] : [address?.isConfirmed === true ? address.name : null, evidence.envelope];
  const earlier = [
    ...(isOthers ? [`${identity.key}${UNRELATED_SUFFIX}`] : []),
    ...names.flatMap((name) => (name === null ? [] : [`org:${organisationOf(name)}`])),
    ...(isMailbox ? [] : [networkKeyOf(source)]),
  ];
  return earlier.find((key) => userClassifications.has(key)) ?? null;
};

/** The key of unauthenticated mail that the user classified: apart, itself, with its network, or by a rule; null for other such mail. */
const classifiedNetworkKey = (
  source: IdentifiedSource,
  rule: SourceRule | null,
  { userClassifications }: KeyContext,
) => {
  const network = networkKeyOf(source);
  const known = [`${network}${UNAUTHENTICATED_SUFFIX}`, source.identity.key, network];
  const byRule = rule !== null && rule.classification !== "threat" ? network : null;
  return known.find((key) => userClassifications.has(key)) ?? byRule;
};

const unauthenticatedNetworkKey = (source: IdentifiedSource, shownKeys: ReadonlySet<string>) => {
  const network = networkKeyOf(source);
  return shownKeys.has(network) ? `${network}${UNAUTHENTICATED_SUFFIX}` : network;
};

const networkKeyOf = ({ evidence: { ip } }: IdentifiedSource) => `${NETWORK_PREFIX}${ipNetworkOf(ip ?? "")}`;

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
export const shownIdentity = (
  key: string,
  { identity, isSenderUnknown }: Pick<KeyedSource, "identity" | "isSenderUnknown">,
): SourceIdentity => {
  if (key === UNAUTHENTICATED_KEY || key === PENDING_KEY) {
    return { key, kind: "unauthenticated", name: UNAUTHENTICATED_NAMES[key], service: null };
  }
  if (key === OWN_FAILING_KEY) return { ...identity, key, name: identity.name.replace(/\)$/, ", failing)") };
  if (key.endsWith(UNAUTHENTICATED_SUFFIX)) {
    const network = key.slice(NETWORK_PREFIX.length, -UNAUTHENTICATED_SUFFIX.length);
    return { key, kind: "network", name: `${network} (unauthenticated mail)`, service: null };
  }
  return { ...identity, key, name: `${identity.name}${nameEnding(key, { identity, isSenderUnknown })}` };
};

const nameEnding = (key: string, { identity, isSenderUnknown }: Pick<KeyedSource, "identity" | "isSenderUnknown">) => {
  const { service } = identity;
  const isHoster = service !== null && hostsWebsites(service);
  if (isHoster && key.endsWith(UNRELATED_SUFFIX)) return " (forwarded mail)";
  if (isHoster && key !== identity.key) return ` (${key.slice(key.indexOf(":") + 1)})`;
  return isSenderUnknown ? " (sender not known)" : "";
};

/** Keys that any source may have. */
const ALWAYS = [OWN_KEY, OWN_FAILING_KEY, "other", UNAUTHENTICATED_KEY, PENDING_KEY];

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
      const identities = [`org:${organisationOf(name)}`, ...(service === null ? [] : [`service:${service.id}`])];
      return identities.flatMap((identity) => [identity, `${identity}${UNRELATED_SUFFIX}`]);
    }),
    ...(signer === null ? [] : [`dkim:${signer}`]),
    ...(envelope === null ? [] : [`spf:${envelope}`]),
    ...(reverse === null ? [] : [`ptr:${organisationOf(reverse)}`]),
    ...(address === null ? [] : networkKeys(address.ip)),
    key,
  ];
};

const networkKeys = (ip: string) => {
  const network = `net:${ipNetworkOf(ip)}`;
  return [network, `${network}${UNAUTHENTICATED_SUFFIX}`];
};
