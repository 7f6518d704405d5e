import { isIP } from "node:net";
import type { Clock } from "../foundation/base/clock.ts";
import { type OnBehalfOf, OPERATOR } from "../foundation/base/on-behalf-of.ts";
import { type Random, shuffled } from "../foundation/base/secrets.ts";
import type { Address } from "../foundation/mail/address.ts";
import { type DnsResolver, type DnsResponse, isDefinite, resolverFor } from "../foundation/net/dns.ts";
import type { AddressPolicy } from "../foundation/net/public-address.ts";
import type { DnsQueryEvidence, DomainEvidence, MailHost } from "./evidence.ts";
import { unverifiableProvider } from "./providers.ts";

export interface DomainLookupDeps {
  readonly resolver: DnsResolver;
  readonly policy: AddressPolicy;
  readonly random: Random;
  readonly clock: Clock;
}

/** Mail hosts beyond this are skipped; the largest providers publish a handful. */
const MAIL_HOSTS_MAX = 40;

/** What filtering resolvers return for names on their lists: it says nothing about the name. */
const FILTERED: ReadonlySet<string> = new Set(["0.0.0.0", "::"]);

const isFiltered = (addresses: readonly string[]): boolean =>
  addresses.length > 0 && addresses.every((address) => FILTERED.has(address));

/** Once the best usable mail host is known, the lookups of the others get this much longer. */
const FURTHER_HOSTS_MS = 1_000;

interface Exchange {
  readonly host: string;
  readonly preference: number;
}

/** Outcomes of queries that this process never sent. */
const NOT_SENT: ReadonlySet<string> = new Set(["local_failure", "overloaded", "aborted"]);

const recordText = (record: unknown): string => {
  if (typeof record !== "object" || record === null) return String(record);
  if ("preference" in record && "exchange" in record) return `${record.preference} ${record.exchange || "."}`;
  return JSON.stringify(record);
};

const queryEvidence = (response: DnsResponse): DnsQueryEvidence => ({
  name: response.name,
  type: response.type,
  outcome: response.outcome,
  records: response.records.map(recordText),
  ttl_s: response.ttlS,
  server: response.server,
  from_cache: response.fromCache,
  elapsed_ms: Math.round(response.elapsedMs),
});

/**
 * The hosts in their order. Once a usable one and all before it are known, slow name servers of the others do not delay
 * the result: those lookups count as failed.
 */
const gatherHosts = (
  clock: Clock,
  exchanges: readonly Exchange[],
  lookups: readonly Promise<MailHost>[],
): Promise<MailHost[]> =>
  new Promise((resolve, reject) => {
    const found: Array<MailHost | null> = lookups.map(() => null);
    let cancel: (() => void) | null = null;
    const end = () => {
      cancel?.();
      resolve(exchanges.map((exchange, at) => found[at] ?? { ...exchange, addresses: [], lookup_failed: true }));
    };
    const add = (host: MailHost, at: number) => {
      found[at] = host;
      const unknown = found.indexOf(null);
      if (unknown === -1) return end();
      const known = found.slice(0, unknown);
      if (known.some((host) => host?.addresses.some(({ allowed }) => allowed)))
        cancel ??= clock.after(FURTHER_HOSTS_MS, end);
    };
    for (const [at, lookup] of lookups.entries()) lookup.then((host) => add(host, at), reject);
  });

/**
 * Finds the mail hosts of a domain (RFC 5321 §5.1): MX by preference, equal ones in random order; without MX the domain
 * itself; null MX (RFC 7505); for an address literal the address. A DNS failure is `dns_error`, never a no.
 */
export const createDomainLookup =
  (deps: DomainLookupDeps): DomainLookup =>
  ({ domain, literal }, onBehalfOf = OPERATOR) => {
    const lookup = new MailHostLookup(deps, resolverFor(deps.resolver, onBehalfOf));
    return literal === null ? lookup.ofName(domain) : lookup.ofLiteral(domain, literal);
  };

export type DomainLookup = (address: Address, onBehalfOf?: OnBehalfOf) => Promise<DomainEvidence>;

/** The mail hosts of one domain, with every DNS query that was needed. */
class MailHostLookup {
  readonly #queries: DnsQueryEvidence[] = [];

  constructor(
    private readonly deps: DomainLookupDeps,
    private readonly resolver: DnsResolver,
  ) {}

  async ofName(name: string): Promise<DomainEvidence> {
    const domain = await this.#byMx(name);
    // A DNS failure is ours when a query was not even sent.
    const isLocal = domain.outcome === "dns_error" && domain.dns_queries.some(({ outcome }) => NOT_SENT.has(outcome));
    return isLocal ? { ...domain, outcome: "local_failure" } : domain;
  }

  async ofLiteral(name: string, address: string): Promise<DomainEvidence> {
    const addresses = this.#withPolicy([address]);
    const host = { host: address, preference: 0, addresses, lookup_failed: false };
    return this.#evidence(name, { outcome: outcomeOfHosts([host]), hosts: [host] });
  }

  async #byMx(name: string): Promise<DomainEvidence> {
    const response = await this.resolver.resolve(name, "MX");
    this.#queries.push(queryEvidence(response));
    if (response.outcome === "nxdomain") return this.#evidence(name, { outcome: "nxdomain" });
    if (response.outcome === "no_data") return this.#implicitMx(name);
    if (response.outcome !== "response") return this.#evidence(name, { outcome: "dns_error" });
    const exchanges = response.records
      .filter(({ exchange }) => exchange !== "" && exchange !== ".")
      .map(({ exchange, preference }) => ({ host: exchange, preference }));
    return exchanges.length === 0 ? this.#evidence(name, { outcome: "null_mx" }) : this.#hostsOf(name, exchanges);
  }

  async #hostsOf(name: string, exchanges: readonly Exchange[]): Promise<DomainEvidence> {
    const { random, clock } = this.deps;
    const ordered = shuffled(exchanges, random).toSorted((a, b) => a.preference - b.preference);
    const chosen = ordered.slice(0, MAIL_HOSTS_MAX);
    const lookups = chosen.map((exchange) => this.#addressesOf(exchange));
    const hosts = await gatherHosts(clock, chosen, lookups);
    const provider = hosts.map(({ host }) => unverifiableProvider(host)).find((known) => known !== null) ?? null;
    const outcome = outcomeOfHosts(hosts, exchanges.length);
    return this.#evidence(name, { outcome, hosts, unverifiable_provider: provider });
  }

  /** Without MX, the domain itself is the mail host. */
  async #implicitMx(name: string): Promise<DomainEvidence> {
    const host = await this.#addressesOf({ host: name, preference: 0 });
    const isKnown = host.addresses.length > 0;
    const outcome = isKnown ? outcomeOfHosts([host]) : host.lookup_failed ? "dns_error" : "no_mail_server";
    return this.#evidence(name, { outcome, implicit_mx: true, hosts: isKnown ? [host] : [] });
  }

  async #addressesOf({ host, preference }: Exchange): Promise<MailHost> {
    // An address where a name is required (RFC 1035 §3.3.9): there is no such host name, and nothing to look up.
    if (isIP(host) !== 0) return { host, preference, addresses: [], lookup_failed: false };
    const responses = await Promise.all([this.resolver.resolve(host, "A"), this.resolver.resolve(host, "AAAA")]);
    this.#queries.push(...responses.map(queryEvidence));
    const found = responses.flatMap(({ outcome, records }) => (outcome === "response" ? records.map(String) : []));
    const isDefiniteForBoth = responses.every(({ outcome }) => isDefinite(outcome));
    const addresses = this.#withPolicy(found);
    return { host, preference, addresses, lookup_failed: !isDefiniteForBoth || isFiltered(found) };
  }

  #withPolicy(addresses: readonly string[]): MailHost["addresses"] {
    return addresses.map((address) => ({ address, allowed: this.deps.policy.isAllowed(address) }));
  }

  #evidence(name: string, found: Pick<DomainEvidence, "outcome"> & Partial<DomainEvidence>): DomainEvidence {
    const queries = [...this.#queries];
    return { name, implicit_mx: false, unverifiable_provider: null, hosts: [], dns_queries: queries, ...found };
  }
}

/** `unroutable` requires the addresses of all mail hosts: not if a lookup failed or was skipped. */
const outcomeOfHosts = (hosts: readonly MailHost[], hostsTotal = hosts.length): DomainEvidence["outcome"] => {
  if (hosts.some((host) => host.addresses.some(({ allowed }) => allowed))) return "mail_hosts";
  const isKnown = hosts.length === hostsTotal && !hosts.some((host) => host.lookup_failed);
  return isKnown ? "unroutable" : "dns_error";
};
