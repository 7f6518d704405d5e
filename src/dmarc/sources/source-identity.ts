import { organisationalDomain } from "../../mail/organisational-domain.ts";
import { readSourceKey, type SourceEvidence } from "../ingest/source-key.ts";
import { findService, type KnownService, serviceOfAsn } from "../services/services.ts";
import { ipNetworkOf } from "../addresses/ip-network.ts";
import type { SourceAddress, StoredSource } from "./rollup-store.ts";
import { isGenericName } from "../addresses/generic-reverse-name.ts";

export const SOURCE_KINDS = ["own", "service", "organization", "network", "unauthenticated"] as const;
export type SourceKind = (typeof SOURCE_KINDS)[number];

/** Who sends: the service or organization behind an address. */
export interface SourceIdentity {
  /** `own`, `service:<id>`, `org:<domain>`, `net:<network>`, or `other` for addresses that a domain had no room for. */
  readonly key: string;
  readonly kind: SourceKind;
  /** For people. */
  readonly name: string;
  readonly service: KnownService | null;
}

const KEY = /^(?:own|other|unauthenticated|pending|(?:service|org|net):\S+)$/;

/** Whether a text has the form of a key that sources are shown under. */
export const isSourceKey = (text: string): boolean => KEY.test(text);

/** What is known of the reverse name of an address. */
export type ReverseNameKind =
  /** The DNS has not said yet. */
  | "pending"
  /** The DNS says that no name leads back to the address. */
  | "absent"
  /** The name is one that providers give to customers at home. */
  | "generic"
  /** The name is one of a provider of servers. */
  | "hosting"
  | "named";

/** A stored source with what its key says. */
export interface SourceWithEvidence extends StoredSource {
  readonly evidence: SourceEvidence;
}

/**
 * The sources that say who an address is. Anybody can send a report about anything: once trusted reports name an address, what
 * others say of it does not count.
 */
export const trustedEvidence = <T extends SourceWithEvidence>(sources: readonly T[]): readonly T[] => {
  const vouched = new Set(sources.filter(({ isVouched }) => isVouched).map(({ evidence }) => evidence.ip));
  return sources.filter(({ isVouched, evidence }) => isVouched || !vouched.has(evidence.ip));
};

export const withEvidence = (source: StoredSource): SourceWithEvidence => ({
  ...source,
  evidence: readSourceKey(source.key),
});

/** The organizational domain of a name; the name itself where it has none. */
export const organisationOf = (name: string): string => organisationalDomain(name) ?? name;

/** What the reverse name of an address tells about it. */
export const reverseNameKindOf = (facts: SourceAddress | undefined): ReverseNameKind => {
  if (facts === undefined || !facts.isAsked) return "pending";
  if (facts.name === null || !facts.isConfirmed) return "absent";
  const service = findService(facts.name);
  const isGeneric = isGenericName(facts.name, facts.ip);
  if (service === null) return isGeneric ? "generic" : "named";
  if (service.kind === "hosting") return isGeneric ? "generic" : "hosting";
  // Providers of mailboxes also rent lines to homes.
  return isGeneric && service.kind === "mailbox provider" ? "generic" : "named";
};

/** What sources of one domain are identified with. */
export interface IdentityContext {
  /** The monitored domain. */
  readonly domain: string;
  /** The stored sources of the domain that say who its addresses are: see `believedSources`. */
  readonly sources: readonly SourceWithEvidence[];
  readonly facts: ReadonlyMap<string, SourceAddress>;
}

const own = (domain: string): SourceIdentity => ({
  key: "own",
  kind: "own",
  name: `${domain} (own servers)`,
  service: null,
});
const ofService = (service: KnownService): SourceIdentity => ({
  key: `service:${service.id}`,
  kind: "service",
  name: service.name,
  service,
});
const ofOrganization = (name: string): SourceIdentity => ({
  key: `org:${name}`,
  kind: "organization",
  name,
  service: null,
});
const ofNetwork = (ip: string): SourceIdentity => {
  const network = ipNetworkOf(ip);
  return { key: `net:${network}`, kind: "network", name: network, service: null };
};
const OTHER: SourceIdentity = { key: "other", kind: "network", name: "Other addresses", service: null };

/** A service that sends mail itself: providers of servers rent them to anybody. */
const sendingService = (name: string | null): KnownService | null => {
  const service = name === null ? null : findService(name);
  return service?.kind === "hosting" ? null : service;
};

/**
 * Identifies the sources of a domain. Every address has one identity, and the first of these that applies is it:
 *
 * 1. `own`: its confirmed reverse name lies in the organization of the domain, and it is not rented from a service.
 * 2. A known service: by its confirmed reverse name, else by an envelope domain that passed SPF there, else by its AS number.
 * 3. `own`: it passed SPF for the domain, and its reverse name names nobody else.
 * 4. An organization: by its reverse name, else by an envelope domain that passed SPF there.
 * 5. `own`: it signs for the domain, and no other sender uses that selector.
 * 6. A service or organization by a signature of its own. Last, because signatures survive forwarding.
 * 7. Its network.
 *
 * Mail of a service or organization that rents another one's servers is told apart by its envelope domain.
 */
export const createIdentities = ({ domain, sources, facts }: IdentityContext) => {
  const organisation = organisationOf(domain);
  const byAddress = Map.groupBy(sources, ({ evidence }) => evidence.ip);
  const known = new Map<string, SourceIdentity | null>();
  let selectors: ReadonlyMap<string, ReadonlySet<string>> | null = null;

  const parent = organisationalDomain(organisation);
  // What does not end in it cannot lie in it: most names need no look at the public suffixes.
  const isOwn = (name: string | null): boolean =>
    name !== null &&
    (name === organisation || (parent !== null && name.endsWith(parent) && organisationalDomain(name) === parent));
  const findings = new Map<string, ReverseNameKind>();
  const findingOf = (ip: string): ReverseNameKind => {
    const known = findings.get(ip);
    if (known !== undefined) return known;
    const finding = reverseNameKindOf(facts.get(ip));
    findings.set(ip, finding);
    return finding;
  };
  const foreignOf = (of: readonly SourceWithEvidence[], part: "envelope" | "foreign"): readonly string[] =>
    of.flatMap(({ evidence }) => {
      const name = evidence[part];
      return name === null || isOwn(name) ? [] : [name];
    });
  const firstService = (names: readonly string[]): KnownService | null =>
    names.map(sendingService).find((service) => service !== null) ?? null;

  /** Services give addresses of their own to large customers, who name them: the AS or the service's signature beside ours tells. */
  const rentedOf = (address: SourceAddress | undefined, of: readonly SourceWithEvidence[]): KnownService | null => {
    const signed = of.flatMap(({ evidence: { signer, foreign } }) =>
      signer === null || foreign === null ? [] : foreign,
    );
    const services = [address?.asn == null ? null : serviceOfAsn(address.asn), ...signed.map(sendingService)];
    return services.find((service) => service?.kind === "bulk sender") ?? null;
  };

  /** The identity that more than a surviving signature proves; null for none. */
  const provenOf = (ip: string): SourceIdentity | null => {
    const address = facts.get(ip);
    const reverse = findingOf(ip);
    const name = address?.isConfirmed === true ? address.name : null;
    const of = byAddress.get(ip) ?? [];
    const rented = isOwn(name) ? rentedOf(address, of) : null;
    if (rented !== null) return ofService(rented);
    if (isOwn(name)) return own(domain);
    const envelopes = foreignOf(of, "envelope");
    const service =
      (reverse === "named" ? sendingService(name) : null) ??
      firstService(envelopes) ??
      (address?.asn == null || reverse === "generic" ? null : serviceOfAsn(address.asn));
    if (service !== null) return ofService(service);
    if (reverse !== "named" && of.some(({ evidence }) => isOwn(evidence.envelope))) return own(domain);
    if (reverse === "named" && name !== null) return ofOrganization(organisationOf(name));
    const [envelope] = envelopes;
    return envelope === undefined ? null : ofOrganization(organisationOf(envelope));
  };

  const proven = (ip: string): SourceIdentity | null => {
    const found = known.get(ip);
    if (found !== undefined) return found;
    const identity = provenOf(ip);
    known.set(ip, identity);
    return identity;
  };

  /** Who uses a selector, among those that are proven. */
  const usersOf = (signer: string, selector: string | null): ReadonlySet<string> => {
    selectors ??= usersBySelector();
    return selectors.get(`${signer}/${selector ?? "-"}`) ?? NOBODY;
  };
  const usersBySelector = (): ReadonlyMap<string, ReadonlySet<string>> => {
    const users = new Map<string, Set<string>>();
    const hasVouched = sources.some(({ isVouched }) => isVouched);
    for (const { evidence, isVouched } of sources) {
      if (hasVouched && !isVouched) continue;
      const identity = evidence.signer === null || evidence.ip === null ? null : proven(evidence.ip);
      if (identity === null) continue;
      const signature = `${evidence.signer}/${evidence.selector ?? "-"}`;
      const of = users.get(signature);
      if (of === undefined) users.set(signature, new Set([identity.key]));
      else of.add(identity.key);
    }
    return users;
  };

  const unprovenOf = (ip: string): SourceIdentity => {
    const of = byAddress.get(ip) ?? [];
    const signs = of.some(({ evidence: { signer, selector } }) => {
      if (signer === null) return false;
      const users = usersOf(signer, selector);
      return users.size === 0 || users.has("own");
    });
    if (signs) return own(domain);
    const foreign = foreignOf(of, "foreign");
    const service = firstService(foreign);
    if (service !== null) return ofService(service);
    const [signer] = foreign;
    return signer === undefined ? ofNetwork(ip) : ofOrganization(organisationOf(signer));
  };

  const unproven = new Map<string, SourceIdentity>();
  const ofAddress = (ip: string): SourceIdentity => {
    const found = proven(ip) ?? unproven.get(ip);
    if (found !== undefined) return found;
    const identity = unprovenOf(ip);
    unproven.set(ip, identity);
    return identity;
  };

  return {
    /** Whether a name lies in the organization of the domain. */
    isOwn,
    /** What the reverse name of an address tells about it; every address is looked at once. */
    findingOf,
    /**
     * Whether a signature is that of the domain's own account at a provider which signs with a domain of its own for every account:
     * `example-com.20230601.gappssmtp.com` at Google, `example.onmicrosoft.com` at Microsoft.
     */
    isTenant(foreign: string | null): boolean {
      if (foreign === null || !TENANTS.some((parent) => foreign.endsWith(parent))) return false;
      const [tenant = ""] = foreign.split(".");
      const [label = ""] = organisation.split(".");
      return tenant === domain.replaceAll(".", "-") || tenant === organisation.replaceAll(".", "-") || tenant === label;
    },
    identityOf({ evidence }: Pick<SourceWithEvidence, "evidence">): SourceIdentity {
      const { ip, envelope, signer } = evidence;
      const tenant = isOwn(envelope) ? null : sendingService(envelope);
      if (ip === null) return tenant !== null ? ofService(tenant) : isOwn(signer ?? envelope) ? own(domain) : OTHER;
      const identity = ofAddress(ip);
      return tenant === null || identity.kind === "own" ? identity : ofService(tenant);
    },
  };
};

export type Identities = ReturnType<typeof createIdentities>;

/** Where providers have a domain for every account. */
const TENANTS = [".gappssmtp.com", ".onmicrosoft.com"];

const NOBODY: ReadonlySet<string> = new Set();
