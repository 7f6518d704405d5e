import { isIP } from "node:net";
import type { KeyMode } from "../base/secrets.ts";
import type { DnsResolver, DnsType } from "../net/dns.ts";
import { parseTarget, parseTargetOrRange } from "./parse-target.ts";

export interface DiscoveryDeps {
  readonly resolver: DnsResolver;
  /** The addresses that this service sends from, where they are set. */
  readonly sourceAddresses: readonly string[];
  readonly hasProxies: boolean;
}

/** Something that was found to watch, and where. */
export interface Discovered {
  readonly target: string;
  readonly source: string;
}

export interface TargetDiscovery {
  readonly found: readonly Discovered[];
  /** Sentences about what could not be found out. */
  readonly unknown: readonly string[];
}

const MX_HOSTS_MAX = 50;
const FOUND_MAX = 500;

const NO_PUBLIC_ADDRESS =
  "The address that this service has on the internet is not known: it may be behind a gateway. The operator can set POSTWARDEN_SOURCE_ADDRESSES; or add the address yourself.";
const PROXIES = "Probes go through proxies, whose addresses on the internet are not known here: add them yourself.";

/** Finds what should be watched: the mail hosts of a domain and the addresses of its SPF record, or the addresses of this service. */
export const createDiscovery = ({ resolver, sourceAddresses, hasProxies }: DiscoveryDeps) => {
  const ask = async <T extends DnsType>(name: string, type: T, unknown: string[]) => {
    const { outcome, records } = await resolver.resolve(name, type);
    const isAnswered = outcome === "answer" || outcome === "no_data" || outcome === "nxdomain";
    if (!isAnswered) unknown.push(`${type} of ${name}: the DNS did not answer (${outcome}). Try again.`);
    return { records, isAnswered };
  };

  const addressesOf = async (host: string, source: string, unknown: string[]): Promise<Discovered[]> => {
    const [ipv4, ipv6] = await Promise.all([ask(host, "A", unknown), ask(host, "AAAA", unknown)]);
    const addresses = [...ipv4.records, ...ipv6.records];
    if (addresses.length === 0 && ipv4.isAnswered && ipv6.isAnswered) unknown.push(`${host} has no address.`);
    return addresses.map((target) => ({ target, source }));
  };

  const ofMailHosts = async (domain: string, unknown: string[]): Promise<Discovered[]> => {
    const { records, isAnswered } = await ask(domain, "MX", unknown);
    if (!isAnswered) return [];
    // Without MX records the domain is its own mail host (RFC 5321 §5.1).
    if (records.length === 0) return addressesOf(domain, `${domain} (no MX record)`, unknown);
    const hosts = [...new Set(records.map(({ exchange }) => exchange))].filter((host) => host !== "" && host !== ".");
    if (hosts.length > MX_HOSTS_MAX)
      unknown.push(`Only the first ${MX_HOSTS_MAX} of ${hosts.length} mail hosts were looked up.`);
    const found = [];
    for (const host of hosts.slice(0, MX_HOSTS_MAX)) found.push(...(await addressesOf(host, `MX ${host}`, unknown)));
    return found;
  };

  /** What the record itself names; what it includes belongs to others mostly. */
  const ofSpf = async (domain: string, unknown: string[]): Promise<Discovered[]> => {
    const { records } = await ask(domain, "TXT", unknown);
    const record = records.find((text) => /^v=spf1(?: |$)/i.test(text));
    if (record === undefined) return [];
    const terms = record.split(/ +/).slice(1);
    const others = terms.filter((term) => /^[+]?include:|^redirect=|^[+]?(?:a|mx|exists|ptr)\b/i.test(term));
    if (others.length > 0)
      unknown.push(`Not followed in the SPF record: ${others.slice(0, 10).join(" ").slice(0, 500)}.`);
    return terms.flatMap((term) => {
      const [, address = ""] = /^[+]?ip[46]:(.+)$/i.exec(term) ?? [];
      return address === "" ? [] : [{ target: address.replace(/\/128$/, ""), source: `SPF of ${domain}` }];
    });
  };

  const ofDomain = async (domain: string, mode: KeyMode): Promise<TargetDiscovery> => {
    const own = { target: domain, source: "domain" };
    if (mode === "test") return { found: [own], unknown: ["With a test key nothing is looked up in the DNS."] };
    const unknown: string[] = [];
    const found = [own, ...(await ofMailHosts(domain, unknown)), ...(await ofSpf(domain, unknown))];
    return { found, unknown };
  };

  const ofService = (): TargetDiscovery => {
    const found = sourceAddresses
      .filter((address) => isIP(address) !== 0 && parseTarget(address, "live").ok)
      .map((target) => ({ target, source: "source address" }));
    const unknown = [
      ...(hasProxies ? [PROXIES] : []),
      ...(found.length === 0 && !hasProxies ? [NO_PUBLIC_ADDRESS] : []),
    ];
    return { found, unknown };
  };

  /** Everything, each target once. What cannot be watched (private, too large) is among `unknown`. */
  return async ({
    domain,
    egress,
    mode,
  }: {
    domain: string | null;
    egress: boolean;
    mode: KeyMode;
  }): Promise<TargetDiscovery> => {
    const parts = [...(domain === null ? [] : [await ofDomain(domain, mode)]), ...(egress ? [ofService()] : [])];
    const unknown = parts.flatMap((part) => part.unknown);
    const byValue = new Map<string, Discovered>();
    for (const { target, source } of parts.flatMap((part) => part.found)) {
      const parsed = parseTargetOrRange(target, mode);
      if (!parsed.ok) unknown.push(`${target.slice(0, 100)} (${source}): ${parsed.error}`);
      else if (!byValue.has(parsed.value.value))
        byValue.set(parsed.value.value, { target: parsed.value.value, source });
    }
    const found = [...byValue.values()];
    if (found.length > FOUND_MAX) unknown.push(`Only the first ${FOUND_MAX} of ${found.length} are taken.`);
    return { found: found.slice(0, FOUND_MAX), unknown };
  };
};

export type DiscoverTargets = ReturnType<typeof createDiscovery>;
