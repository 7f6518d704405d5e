import { isIP } from "node:net";
import type { Clock } from "../base/clock.ts";
import { type OnBehalfOf, OPERATOR } from "../base/on-behalf-of.ts";
import { type Random, shuffled } from "../base/secrets.ts";
import type { Address } from "../mail/address.ts";
import { type DnsResponse, type DnsResolver, resolverFor, isDefinite } from "../net/dns.ts";
import type { AddressPolicy } from "../net/public-address.ts";
import type { DnsQueryEvidence, DomainEvidence, MailHost } from "./evidence.ts";
import { unverifiableProvider } from "./providers.ts";

export interface DomainLookupDeps {
  readonly resolver: DnsResolver;
  readonly policy: AddressPolicy;
  readonly random: Random;
  readonly clock: Clock;
}

/** More mail hosts than this are not looked at; the largest providers publish a handful. What the others are is unknown. */
const MAIL_HOSTS_MAX = 40;

/** What resolvers that filter answer for names on their lists: it says nothing about the name. */
const FILTERED: ReadonlySet<string> = new Set(["0.0.0.0", "::"]);

const isFiltered = (addresses: readonly string[]): boolean =>
  addresses.length > 0 && addresses.every((address) => FILTERED.has(address));

/** When the best mail host that may be asked is known, the names of the others get this much longer. */
const FURTHER_HOSTS_MS = 1_000;

interface Exchange {
  readonly host: string;
  readonly preference: number;
}

/** Outcomes of queries that this process never sent. */
const NOT_SENT: ReadonlySet<string> = new Set(["local_failure", "overloaded", "aborted"]);

/** A DNS failure is ours when a query was not even sent. */
const asLocalFailure = (domain: DomainEvidence): DomainEvidence =>
  domain.outcome === "dns_error" && domain.questions.some(({ outcome }) => NOT_SENT.has(outcome))
    ? { ...domain, outcome: "local_failure" }
    : domain;

const recordText = (record: unknown): string => {
  if (typeof record !== "object" || record === null) return String(record);
  if ("preference" in record && "exchange" in record) return `${record.preference} ${record.exchange || "."}`;
  return JSON.stringify(record);
};

const questionOf = (reply: DnsResponse): DnsQueryEvidence => ({
  name: reply.name,
  type: reply.type,
  outcome: reply.outcome,
  records: reply.records.map(recordText),
  ttl_s: reply.ttlS,
  server: reply.server,
  from_cache: reply.fromCache,
  elapsed_ms: Math.round(reply.elapsedMs),
});

/**
 * The hosts in their order. Once one that may be asked and all before it are known, slow name servers of the others
 * hold nobody up: those count as looked up in vain.
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
    const take = (host: MailHost, at: number) => {
      found[at] = host;
      const unknown = found.indexOf(null);
      if (unknown === -1) return end();
      const known = found.slice(0, unknown);
      if (known.some((one) => one?.addresses.some(({ allowed }) => allowed)))
        cancel ??= clock.after(FURTHER_HOSTS_MS, end);
    };
    for (const [at, lookup] of lookups.entries()) lookup.then((host) => take(host, at), reject);
  });

/**
 * Finds the mail hosts of a domain (RFC 5321 §5.1): MX by preference, equal ones in random order; without MX the domain
 * itself; null MX (RFC 7505); for an address literal the address. A DNS failure is `dns_error`, never a no.
 */
export const createDomainLookup =
  (deps: DomainLookupDeps): DomainLookup =>
  (address, onBehalfOf = OPERATOR) =>
    lookupWith({ ...deps, resolver: resolverFor(deps.resolver, onBehalfOf) })(address);

const lookupWith = ({ resolver, policy, random, clock }: DomainLookupDeps) => {
  const addressesOf = async ({ host, preference }: Exchange, questions: DnsQueryEvidence[]): Promise<MailHost> => {
    // An address where a name has to stand (RFC 1035 §3.3.9): some senders connect to it, so it is no "no".
    if (isIP(host) !== 0) return { host, preference, addresses: [], lookup_failed: true };
    const replies = await Promise.all([resolver.resolve(host, "A"), resolver.resolve(host, "AAAA")]);
    questions.push(...replies.map(questionOf));
    const found = replies.flatMap((reply) => (reply.outcome === "answer" ? reply.records.map(String) : []));
    return {
      host,
      preference,
      addresses: found.map((address) => ({ address, allowed: policy.isAllowed(address) })),
      lookup_failed: !replies.every(({ outcome }) => isDefinite(outcome)) || isFiltered(found),
    };
  };

  /** "Unroutable" is said of all mail hosts: one that is not known, or not looked at, leaves it open. */
  const judgeHosts = (hosts: readonly MailHost[], hostsInAll = hosts.length): DomainEvidence["outcome"] => {
    if (hosts.some((host) => host.addresses.some(({ allowed }) => allowed))) return "mail_hosts";
    const isKnown = hosts.length === hostsInAll && !hosts.some((host) => host.lookup_failed);
    return isKnown ? "unroutable" : "dns_error";
  };

  const explicit = async (
    name: string,
    exchanges: readonly Exchange[],
    questions: DnsQueryEvidence[],
  ): Promise<DomainEvidence> => {
    const ordered = shuffled(exchanges, random).toSorted((a, b) => a.preference - b.preference);
    const chosen = ordered.slice(0, MAIL_HOSTS_MAX);
    const lookups = chosen.map((exchange) => addressesOf(exchange, questions));
    const hosts = await gatherHosts(clock, chosen, lookups);
    const provider = hosts.map(({ host }) => unverifiableProvider(host)).find((known) => known !== null) ?? null;
    return {
      name,
      outcome: judgeHosts(hosts, exchanges.length),
      implicit_mx: false,
      unverifiable_provider: provider,
      hosts,
      questions: [...questions],
    };
  };

  const implicit = async (name: string, questions: DnsQueryEvidence[]): Promise<DomainEvidence> => {
    const host = await addressesOf({ host: name, preference: 0 }, questions);
    const base = { name, implicit_mx: true, unverifiable_provider: null, questions };
    if (host.addresses.length > 0) return { ...base, outcome: judgeHosts([host]), hosts: [host] };
    return { ...base, outcome: host.lookup_failed ? "dns_error" : "no_mail_server", hosts: [] };
  };

  const literal = (name: string, address: string): DomainEvidence => {
    const host = {
      host: address,
      preference: 0,
      addresses: [{ address, allowed: policy.isAllowed(address) }],
      lookup_failed: false,
    };
    return {
      name,
      outcome: judgeHosts([host]),
      implicit_mx: false,
      unverifiable_provider: null,
      hosts: [host],
      questions: [],
    };
  };

  const ask = async (name: string): Promise<DomainEvidence> => {
    const reply = await resolver.resolve(name, "MX");
    const questions = [questionOf(reply)];
    const nothing = { name, implicit_mx: false, unverifiable_provider: null, hosts: [], questions };
    if (reply.outcome === "nxdomain") return { ...nothing, outcome: "nxdomain" };
    if (reply.outcome === "no_data") return implicit(name, questions);
    if (reply.outcome !== "answer") return { ...nothing, outcome: "dns_error" };
    const exchanges = reply.records.flatMap((record): Exchange[] =>
      typeof record === "object" && "exchange" in record && record.exchange !== "" && record.exchange !== "."
        ? [{ host: record.exchange, preference: record.preference }]
        : [],
    );
    return exchanges.length === 0 ? { ...nothing, outcome: "null_mx" } : explicit(name, exchanges, questions);
  };

  return async function inquire({ domain: name, literal: address }: Address): Promise<DomainEvidence> {
    return address === null ? asLocalFailure(await ask(name)) : literal(name, address);
  };
};

export type DomainLookup = (address: Address, onBehalfOf?: OnBehalfOf) => Promise<DomainEvidence>;
