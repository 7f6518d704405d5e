import { isSameOrganisation, organisationalDomain } from "../../../foundation/mail/organisational-domain.ts";
import { entryOf, readSourceKey, type SourceEvidence } from "../../reports/ingest/rollup.ts";
import { findService, serviceOfAsn, type KnownService } from "../../records/services/services.ts";
import type { SourceAddress, Totals } from "./rollup-rows.ts";
import type { RollupStore, StoredSource } from "./rollup-store.ts";
import { mapInSteps, type Steps } from "../../../foundation/base/in-steps.ts";
import { readState } from "../../records/domains/domain-state.ts";
import type { DomainRow } from "../../records/domains/domain-store.ts";
import { ipNetworkOf, isGenericName } from "../addresses/address-store.ts";

export const SOURCE_KINDS = ["own", "service", "organization", "network", "unauthenticated"] as const;
type SourceKind = (typeof SOURCE_KINDS)[number];

/** Who sends: the service or organization behind an address. */
export interface SourceIdentity {
  /** `own`, `service:<id>`, `org:<domain>`, `net:<network>`, or `other` for addresses beyond the most that are kept for a domain. */
  readonly key: string;
  readonly kind: SourceKind;
  /** For people. */
  readonly name: string;
  readonly service: KnownService | null;
}

const KEY = /^(?:own(?:\/failing)?|other|unauthenticated|pending|(?:service|org|net):\S+)$/;

/** Whether a text has the form of a source key. */
export const isSourceKey = (text: string): boolean => KEY.test(text);

/**
 * What the reverse name of an address says: `pending` until it was looked up, `absent` when no name resolves back to the
 * address, `generic` for the names that providers give to all of their customers, `hosting` for those of hosting providers.
 */
type ReverseNameKind = "pending" | "absent" | "generic" | "hosting" | "named";

/** A stored source with what its key says. */
export interface SourceWithEvidence extends StoredSource {
  readonly evidence: SourceEvidence;
}

/** A stored source with its identity, and its messages in a range of days. */
export interface IdentifiedSource extends SourceWithEvidence {
  readonly identity: SourceIdentity;
  readonly totals: Totals;
  /** The messages that trusted reports count. */
  readonly trusted: Totals;
}

/**
 * The sources whose evidence identifies an address. Anybody can send a report about anything: once trusted reports name an
 * address, untrusted reports no longer say who it is.
 */
export const trustedEvidence = <T extends SourceWithEvidence>(sources: readonly T[]): readonly T[] => {
  if (sources.every(({ isVouched }) => isVouched === sources[0]?.isVouched)) return sources;
  const vouched = new Set(sources.filter(({ isVouched }) => isVouched).map(({ evidence }) => evidence.ip));
  return sources.filter(({ isVouched, evidence }) => isVouched || !vouched.has(evidence.ip));
};

/**
 * `organisation`: the organizational domain of the monitored domain. A stored signature of the domain's own is
 * another organization's where a domain between declares itself a public suffix.
 */
export const withEvidence = (source: StoredSource, organisation: string): SourceWithEvidence => {
  const { number, key, firstDay, lastDay, firstSeenAtMs, isVouched } = source;
  const evidence = readSourceKey(key);
  const { signer, foreign } = evidence;
  const isOther = signer !== null && !isBelow(signer, organisation) && isSameOrganisation(signer, organisation);
  const read = isOther ? { ...evidence, signer: null, selector: null, foreign: foreign ?? signer } : evidence;
  return { number, key, firstDay, lastDay, firstSeenAtMs, isVouched, evidence: read };
};

const isBelow = (name: string, parent: string) => name === parent || name.endsWith(`.${parent}`);

/** The organizational domain of a domain, below the parent that declares itself a public suffix where there is one. */
export const organisationUnder = (domain: string, declaredSuffix: string | null): string =>
  declaredSuffix === null || !domain.endsWith(`.${declaredSuffix}`)
    ? organisationOf(domain)
    : domain
        .split(".")
        .slice(-declaredSuffix.split(".").length - 1)
        .join(".");

/** The organizational domain of a name; the name itself where it has none. */
export const organisationOf = (name: string): string => organisationalDomain(name) ?? name;

export const reverseNameKindOf = (address: SourceAddress | undefined): ReverseNameKind => {
  if (address === undefined || !address.isAsked) return "pending";
  if (address.name === null || !address.isConfirmed) return "absent";
  const service = findService(address.name);
  const isGeneric = isGenericName(address.name, address.ip);
  if (service === null) return isGeneric ? "generic" : "named";
  if (service.kind === "hosting") return isGeneric ? "generic" : "hosting";
  // Mailbox providers are often access providers, too.
  return isGeneric && service.kind === "mailbox provider" ? "generic" : "named";
};

const OTHER: SourceIdentity = { key: "other", kind: "network", name: "Other addresses", service: null };
/** Where providers sign with a domain for every account. */
const TENANT_DOMAINS = [".gappssmtp.com", ".onmicrosoft.com"];

const serviceIdentity = (service: KnownService): SourceIdentity => ({
  key: `service:${service.id}`,
  kind: "service",
  name: service.name,
  service,
});
/** Of the host of a hosting provider that provider, whatever the host is called. */
const organisationIdentity = (host: string): SourceIdentity => {
  const service = findService(host);
  if (service !== null) return serviceIdentity(service);
  const name = organisationOf(host);
  return { key: `org:${name}`, kind: "organization", name, service: null };
};
const networkIdentity = (ip: string): SourceIdentity => {
  const network = ipNetworkOf(ip);
  return { key: `net:${network}`, kind: "network", name: network, service: null };
};

/** The service that a name belongs to, if it sends mail itself: hosting providers rent their servers to anybody. */
const sendingService = (name: string | null): KnownService | null => {
  const service = name === null ? null : findService(name);
  return service?.kind === "hosting" ? null : service;
};
const firstService = (names: readonly string[]): KnownService | null =>
  names.map(sendingService).find((service) => service !== null) ?? null;

/**
 * Identifies the sources of a domain. Every address has one identity, by the first of these rules that applies:
 *
 * 1. `own`: its confirmed reverse name is in the domain's organization, and it is not a dedicated IP of a service.
 * 2. A known service: by its confirmed reverse name, else by an envelope domain that passed SPF there, else by its AS number.
 * 3. `own`: it passed SPF for the domain, and its reverse name names no other organization.
 * 4. An organization, or a hosting provider: by its reverse name, else by an envelope domain that passed SPF there.
 * 5. `own`: it signs for the domain with a selector that no other sender uses.
 * 6. A service or organization by its own signature. Last, because signatures survive forwarding.
 * 7. A hosting provider by its reverse name, else its network.
 *
 * Mail of a service or organization on another one's servers is attributed by its envelope domain.
 */
export class SourceIdentities {
  readonly #own: SourceIdentity;
  readonly #organisation: string;
  readonly #parent: string | null;
  readonly #reverseNames = new Map<string, ReverseNameKind>();
  readonly #proven = new Map<string, { readonly identity: SourceIdentity | null }>();
  readonly #identities = new Map<string, SourceIdentity>();
  /** The keys of the proven senders that sign with a selector. */
  readonly #selectorUsers = new Map<string, Set<string>>();

  private constructor(
    private readonly deps: {
      /** The monitored domain. */
      readonly domain: string;
      /** See `organisationUnder`. */
      readonly organisation: string;
      /** See `trustedEvidence`. */
      readonly sources: readonly SourceWithEvidence[];
      readonly addresses: ReadonlyMap<string, SourceAddress>;
      readonly byAddress: ReadonlyMap<string | null, readonly SourceWithEvidence[]>;
    },
  ) {
    const { domain, organisation } = deps;
    this.#own = { key: "own", kind: "own", name: `${domain} (own servers)`, service: null };
    this.#organisation = organisation;
    this.#parent = organisationalDomain(organisation);
  }

  /** In steps: the senders that sign are identified first, because rule 5 is about all of them. */
  static *of(deps: Omit<SourceIdentities["deps"], "byAddress">): Steps<SourceIdentities> {
    const byAddress = new Map<string | null, SourceWithEvidence[]>();
    yield* mapInSteps(deps.sources, (source) => entryOf(byAddress, source.evidence.ip, () => []).push(source));
    const identities = new SourceIdentities({ ...deps, byAddress });
    yield* identities.#findSelectorUsers();
    return identities;
  }

  identityOf({ evidence: { ip, envelope, signer } }: Pick<SourceWithEvidence, "evidence">): SourceIdentity {
    const tenant = this.isOwn(envelope) ? null : sendingService(envelope);
    if (ip === null) {
      if (tenant !== null) return serviceIdentity(tenant);
      return this.isOwn(signer ?? envelope) ? this.#own : OTHER;
    }
    const identity = entryOf(this.#identities, ip, () => this.#provenIdentity(ip) ?? this.#identityBySignature(ip));
    return tenant === null || identity.kind === "own" ? identity : serviceIdentity(tenant);
  }

  /** Whether a name is in the organization of the domain. */
  isOwn(name: string | null): boolean {
    if (name === null || name === this.#organisation) return name !== null;
    if (this.#parent !== null && this.#parent !== this.#organisation) return isBelow(name, this.#organisation);
    // The suffix test comes first: most names need no look at the public suffix list.
    return this.#parent !== null && name.endsWith(this.#parent) && organisationalDomain(name) === this.#parent;
  }

  reverseNameKind(ip: string): ReverseNameKind {
    return entryOf(this.#reverseNames, ip, () => reverseNameKindOf(this.deps.addresses.get(ip)));
  }

  /**
   * Whether an unaligned signature is that of the domain's own account at a provider that signs with a domain for every
   * account: `example-com.20230601.gappssmtp.com` at Google, `example.onmicrosoft.com` at Microsoft.
   */
  isTenant(foreign: string | null): boolean {
    if (foreign === null || !TENANT_DOMAINS.some((parent) => foreign.endsWith(parent))) return false;
    const [tenant = ""] = foreign.split(".");
    const [label = ""] = this.#organisation.split(".");
    return [this.deps.domain.replaceAll(".", "-"), this.#organisation.replaceAll(".", "-"), label].includes(tenant);
  }

  /** Rules 1 to 4: the identity that does not rest on a signature, which may have been forwarded. */
  #provenIdentity(ip: string): SourceIdentity | null {
    return entryOf(this.#proven, ip, () => ({ identity: this.#proveIdentity(ip) })).identity;
  }

  #proveIdentity(ip: string): SourceIdentity | null {
    const address = this.deps.addresses.get(ip);
    const sources = this.deps.byAddress.get(ip) ?? [];
    const name = address?.isConfirmed === true ? address.name : null;
    if (this.isOwn(name)) {
      const service = dedicatedIpService(address, sources);
      return service === null ? this.#own : serviceIdentity(service);
    }
    const kind = this.reverseNameKind(ip);
    const envelopes = this.#foreignNames(sources, "envelope");
    const service =
      (kind === "named" ? sendingService(name) : null) ??
      firstService(envelopes) ??
      (address?.asn == null || kind === "generic" ? null : serviceOfAsn(address.asn));
    if (service !== null) return serviceIdentity(service);
    if (kind !== "named" && sources.some(({ evidence }) => this.isOwn(evidence.envelope))) return this.#own;
    const organisation = kind === "named" ? name : (envelopes[0] ?? null);
    return organisation === null ? null : organisationIdentity(organisation);
  }

  /** Rules 5 to 7. */
  #identityBySignature(ip: string): SourceIdentity {
    const sources = this.deps.byAddress.get(ip) ?? [];
    const signsAsOwn = sources.some(({ evidence: { signer, selector } }) => {
      const users = signer === null ? null : this.#selectorUsers.get(selectorId(signer, selector));
      return users !== null && (users === undefined || users.has(this.#own.key));
    });
    if (signsAsOwn) return this.#own;
    const signers = this.#foreignNames(sources, "foreign");
    const service = firstService(signers);
    if (service !== null) return serviceIdentity(service);
    const name = this.reverseNameKind(ip) === "hosting" ? this.deps.addresses.get(ip)?.name : null;
    const organisation = signers[0] ?? name ?? null;
    return organisation === null ? networkIdentity(ip) : organisationIdentity(organisation);
  }

  #foreignNames(sources: readonly SourceWithEvidence[], part: "envelope" | "foreign"): readonly string[] {
    return sources.flatMap(({ evidence }) => {
      const name = evidence[part];
      return name === null || this.isOwn(name) ? [] : [name];
    });
  }

  *#findSelectorUsers(): Steps<void> {
    const { sources } = this.deps;
    const hasVouched = sources.some(({ isVouched }) => isVouched);
    yield* mapInSteps(sources, ({ evidence: { ip, signer, selector }, isVouched }) => {
      if ((hasVouched && !isVouched) || signer === null || ip === null) return;
      const identity = this.#provenIdentity(ip);
      if (identity !== null)
        entryOf(this.#selectorUsers, selectorId(signer, selector), () => new Set()).add(identity.key);
    });
  }
}

const selectorId = (signer: string, selector: string | null) => `${signer}/${selector ?? "-"}`;

/** Services let large customers name their dedicated IPs: the AS or the service's own signature beside the customer's shows it. */
const dedicatedIpService = (
  address: SourceAddress | undefined,
  sources: readonly SourceWithEvidence[],
): KnownService | null => {
  const signed = sources.flatMap(({ evidence: { signer, foreign } }) =>
    signer === null || foreign === null ? [] : foreign,
  );
  const services = [address?.asn == null ? null : serviceOfAsn(address.asn), ...signed.map(sendingService)];
  return services.find((service) => service?.kind === "bulk sender") ?? null;
};

/** The stored sources of a domain with what is known of their addresses. */
export interface KnownSenders {
  readonly stored: readonly SourceWithEvidence[];
  readonly addresses: ReadonlyMap<string, SourceAddress>;
  readonly identities: SourceIdentities;
}

const ADDRESSES_PER_STEP = 4_000;

export function* readSenders(
  rollups: Pick<RollupStore, "storedSources" | "addresses">,
  { number, domain, state }: Pick<DomainRow, "number" | "domain" | "state">,
): Steps<KnownSenders> {
  const organisation = organisationUnder(domain, readState(state)?.believed.declared_suffix ?? null);
  const sources = rollups.storedSources(number);
  yield;
  const stored = yield* mapInSteps(sources, (source) => withEvidence(source, organisation));
  const ips = [...new Set(stored.flatMap(({ evidence: { ip } }) => ip ?? []))];
  const addresses = new Map<string, SourceAddress>();
  for (let at = 0; at < ips.length; at += ADDRESSES_PER_STEP) {
    yield;
    for (const address of rollups.addresses(ips.slice(at, at + ADDRESSES_PER_STEP))) addresses.set(address.ip, address);
  }
  yield;
  const trusted = trustedEvidence(stored);
  yield;
  const identities = yield* SourceIdentities.of({ domain, organisation, sources: trusted, addresses });
  return { stored, addresses, identities };
}

/** How long new sources wait for the reverse name of their address. */
export const NAME_WAIT_MS = 60 * 60_000;

/** Whether to wait for the reverse name, an hour at most: it may show a known service. Test domains have none. */
export const isNameAwaited = (
  source: Pick<StoredSource, "firstSeenAtMs"> & { readonly isNamePending: boolean },
  { mode }: Pick<DomainRow, "mode">,
  nowMs: number,
): boolean => mode === "live" && source.isNamePending && nowMs - source.firstSeenAtMs < NAME_WAIT_MS;
