import { isIP } from "node:net";
import { type Clock, isoTime } from "../foundation/base/clock.ts";
import { type OnBehalfOf, OPERATOR } from "../foundation/base/on-behalf-of.ts";
import { type Random, shuffled } from "../foundation/base/secrets.ts";
import type { Address } from "../foundation/mail/address.ts";
import { type DnsResolver, type DnsResponse, isDefinite, resolverFor } from "../foundation/net/dns.ts";
import type { AddressPolicy } from "../foundation/net/public-address.ts";
import type { DnsQueryEvidence, DomainEvidence, MailHost, Attempt, ProbeFinding, SessionEvidence } from "./evidence.ts";
import { organisationalDomain } from "../foundation/mail/organisational-domain.ts";
import { mostTelling, noFinding } from "./findings.ts";
import type { HostAddress, HostProber } from "./host-probe.ts";

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

interface Provider {
  /** The mail hosts' names end in it. */
  readonly suffix: string;
  readonly name: string;
  /** The servers of the provider give the same reply for every recipient: no reply to RCPT is conclusive. */
  readonly unverifiable?: true;
  /** Connections to all its hosts together that it is known to tolerate. */
  readonly connectionsMax?: number;
}

/** Providers that many domains share, by the suffix of their mail hosts' names. */
const PROVIDERS: readonly Provider[] = [
  { suffix: "google.com", name: "Google", connectionsMax: 10 },
  { suffix: "googlemail.com", name: "Google", connectionsMax: 10 },
  { suffix: "protection.outlook.com", name: "Microsoft 365", connectionsMax: 10 },
  { suffix: "olc.protection.outlook.com", name: "Outlook.com", connectionsMax: 4 },
  { suffix: "mx.microsoft", name: "Microsoft 365", connectionsMax: 10 },
  { suffix: "yahoodns.net", name: "Yahoo", unverifiable: true, connectionsMax: 4 },
  { suffix: "icloud.com", name: "Apple", connectionsMax: 4 },
  { suffix: "mimecast.com", name: "Mimecast", connectionsMax: 6 },
  { suffix: "pphosted.com", name: "Proofpoint", connectionsMax: 6 },
  { suffix: "ppe-hosted.com", name: "Proofpoint Essentials", connectionsMax: 6 },
  { suffix: "barracudanetworks.com", name: "Barracuda", connectionsMax: 6 },
  { suffix: "iphmx.com", name: "Cisco", connectionsMax: 6 },
  { suffix: "messagelabs.com", name: "Symantec", connectionsMax: 4 },
  { suffix: "gmx.net", name: "GMX", connectionsMax: 3 },
  { suffix: "web.de", name: "web.de", connectionsMax: 3 },
  { suffix: "kundenserver.de", name: "IONOS", connectionsMax: 4 },
  { suffix: "ionos.com", name: "IONOS", connectionsMax: 4 },
  { suffix: "t-online.de", name: "T-Online", connectionsMax: 2 },
  { suffix: "orange.fr", name: "Orange", connectionsMax: 2 },
  { suffix: "laposte.net", name: "La Poste", connectionsMax: 2 },
  { suffix: "free.fr", name: "Free", connectionsMax: 2 },
  { suffix: "ovh.net", name: "OVH", connectionsMax: 6 },
  { suffix: "mail.ru", name: "Mail.ru", connectionsMax: 4 },
  { suffix: "yandex.ru", name: "Yandex", connectionsMax: 4 },
  { suffix: "yandex.net", name: "Yandex", connectionsMax: 4 },
  { suffix: "qq.com", name: "QQ", connectionsMax: 3 },
  { suffix: "netease.com", name: "163", connectionsMax: 3 },
  { suffix: "naver.com", name: "Naver", connectionsMax: 3 },
  { suffix: "zoho.com", name: "Zoho", connectionsMax: 4 },
  { suffix: "secureserver.net", name: "GoDaddy", connectionsMax: 4 },
  { suffix: "emailsrvr.com", name: "Rackspace", connectionsMax: 4 },
  { suffix: "comcast.net", name: "Comcast", connectionsMax: 3 },
  { suffix: "prodigy.net", name: "AT&T", connectionsMax: 2 },
];

const BY_SUFFIX: ReadonlyMap<string, Provider> = new Map(PROVIDERS.map((provider) => [provider.suffix, provider]));

/** The longest suffix counts: `olc.protection.outlook.com` is not `protection.outlook.com`. */
const find = (mailHost: string): Provider | undefined => {
  let rest = mailHost.toLowerCase();
  for (;;) {
    const provider = BY_SUFFIX.get(rest);
    const dot = rest.indexOf(".");
    if (provider !== undefined || dot === -1) return provider;
    rest = rest.slice(dot + 1);
  }
};

/** The name of the unverifiable provider that a mail host belongs to, or null. */
export const unverifiableProvider = (mailHost: string): string | null => {
  const provider = find(mailHost);
  return provider?.unverifiable ? provider.name : null;
};

/** Whose host it is: a known provider's name, else the organisational domain of the host's name. */
export const providerOf = (mailHost: string): string =>
  find(mailHost)?.name ?? organisationalDomain(mailHost) ?? mailHost;

const CONNECTIONS_MAX: ReadonlyMap<string, number> = new Map(
  PROVIDERS.flatMap(({ name, connectionsMax }) =>
    connectionsMax === undefined ? [] : [[name, connectionsMax] as const],
  ),
);

/** How many connections all hosts of a provider tolerate together; infinite for an unknown provider. */
export const connectionsPerProviderMax = (provider: string): number =>
  CONNECTIONS_MAX.get(provider) ?? Number.POSITIVE_INFINITY;

export interface MailboxProberOptions {
  readonly smtpPort: number;
  /** No further host is tried once the sessions of an attempt have taken this long; waiting in queues is not counted. */
  readonly attemptTimeMs: number;
}

export interface MailboxProbe {
  readonly address: Address;
  readonly domain: DomainEvidence;
  /** The random recipient of the attempt before; null at the first attempt. */
  readonly randomRecipient: string | null;
  /** Number of the attempt. */
  readonly number: number;
  /** The latest session: among equally preferred hosts its address comes first again, and its egress is used again. */
  readonly previousSession: { readonly address: string; readonly egress: string } | null;
  readonly onBehalfOf: OnBehalfOf;
}

export interface ProbedMailbox {
  readonly attempt: Attempt;
  /** The recipient that does not exist, probed for comparison. */
  readonly randomRecipient: string | null;
}

export type MailboxProber = (probe: MailboxProbe) => Promise<ProbedMailbox>;

/** Addresses tried of one host, and of all hosts together, in one attempt. */
const ADDRESSES_PER_HOST_MAX = 4;
const ADDRESSES_MAX = 40;

/**
 * Probes the mail hosts of a domain for one recipient, and for a random one that does not exist. The first host that
 * refuses MAIL or replies to RCPT settles the attempt: a later host must not overrule it. A host that cannot be reached,
 * times out, or turns us away before that leaves it to the next.
 */
export const createMailboxProber = (
  { clock, random }: { readonly clock: Clock; readonly random: Random },
  hostProber: Pick<HostProber, "probe">,
  { smtpPort, attemptTimeMs }: MailboxProberOptions,
): MailboxProber => {
  // One function on purpose: each one that waits costs memory for every check that waits.
  return async ({ address, domain, previousSession, onBehalfOf, ...probe }) => {
    const startedAt = isoTime(clock.nowMs());
    const randomRecipient = probe.randomRecipient ?? `${randomLocalPart(random)}@${address.domain}`;
    const sessions: SessionEvidence[] = [];
    const open: ProbeFinding[] = [];
    let settled: ProbeFinding | null = null;
    let spentMs = 0;
    const hosts = addressesOf(domain, smtpPort, previousSession?.address ?? null);
    for (const host of hosts) {
      const previousEgress = previousSession?.egress ?? null;
      const probed = await hostProber.probe(host, { address, randomRecipient, previousEgress, onBehalfOf });
      sessions.push(...probed.sessions);
      if (probed.settled) {
        settled = settledFinding(probed.finding, open);
        break;
      }
      open.push(probed.finding);
      spentMs += probed.tookMs;
      if (spentMs > attemptTimeMs) break;
    }
    const isEveryHostProbed = open.length === hosts.length && hosts.length < ADDRESSES_MAX && !hasUnknownHost(domain);
    const finding = settled ?? openFinding(open, isEveryHostProbed);
    const times = { started_at: startedAt, finished_at: isoTime(clock.nowMs()) };
    return { attempt: { number: probe.number, ...times, sessions, finding }, randomRecipient };
  };
};

/** Every address that may be connected to, in the order of the hosts; IPv4 first, because more machines have it. */
const addressesOf = (domain: DomainEvidence, port: number, previousAddress: string | null): HostAddress[] => {
  const rank = (address: string): number => (address === previousAddress ? 0 : address.includes(":") ? 2 : 1);
  const hostRank = ({ addresses }: MailHost): number =>
    addresses.some(({ address }) => address === previousAddress) ? 0 : 1;
  return domain.hosts
    .toSorted((a, b) => a.preference - b.preference || hostRank(a) - hostRank(b))
    .flatMap(({ host, addresses }) =>
      addresses
        .filter(({ allowed }) => allowed)
        .toSorted((a, b) => rank(a.address) - rank(b.address))
        .slice(0, ADDRESSES_PER_HOST_MAX)
        .map(({ address }) => ({ host, address, port, provider: providerOf(host) })),
    )
    .slice(0, ADDRESSES_MAX);
};

/** A mail host whose addresses DNS did not return. */
const hasUnknownHost = ({ hosts }: DomainEvidence): boolean =>
  hosts.some(({ addresses, lookup_failed }) => lookup_failed && !addresses.some(({ allowed }) => allowed));

/** That no host offers the SMTPUTF8 that an address needs is only known once every host was probed. */
const openFinding = (open: readonly ProbeFinding[], isEveryHostProbed: boolean): ProbeFinding => {
  const finding = mostTelling(open);
  return finding.reading === "smtputf8_unsupported" && !isEveryHostProbed
    ? mostTelling([...open, noFinding(null)])
    : finding;
};

/**
 * After a better host that only gave a temporary refusal, a worse one decides only where it knows the mailbox: it accepts
 * it but not every recipient, or says that it is unknown or disabled. Otherwise the better one is retried.
 */
const settledFinding = (settled: ProbeFinding, open: readonly ProbeFinding[]): ProbeFinding => {
  const better = open.find(({ retryable }) => retryable);
  if (better === undefined) return settled;
  const { reading, catch_all } = settled;
  const knows =
    reading === "accepted" ? catch_all !== "yes" : reading === "mailbox_not_found" || reading === "mailbox_disabled";
  return knows ? settled : { ...better, heard: true };
};

const GIVEN_NAMES =
  "anna marek sofia jonas elena pavel maria tomas julia henrik lucia oscar irina felix carla viktor".split(" ");
const FAMILY_NAMES = [
  ..."lindqvist moravec castellan brandauer petrosyan ostrander villanova kowalik".split(" "),
  ..."haverkamp sorensen marchetti dubrovin thornbury escobedo nakagawa weissman".split(" "),
];
const DIGITS = 5;

/**
 * A local part that looks like a person's and that does not exist: two names and five digits, some 25 million of them.
 * Different at each call.
 */
export const randomLocalPart = (random: Random): string => {
  const name = (names: readonly string[]) => names[random.integer(names.length)] ?? "anna";
  const digits = Array.from({ length: DIGITS }, () => String(random.integer(10))).join("");
  return `${name(GIVEN_NAMES)}.${name(FAMILY_NAMES)}${digits}`;
};
