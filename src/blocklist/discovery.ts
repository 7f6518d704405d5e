import type { z } from "zod";
import type { discoverRequestSchema } from "./batch.ts";
import { isIP } from "node:net";
import type { KeyMode, Owner } from "../foundation/base/secrets.ts";
import type { DnsResolver, DnsType } from "../foundation/net/dns.ts";
import { parseTarget, parseTargetOrRange } from "./parse-target.ts";
import { AppError } from "../foundation/base/errors.ts";
import type { AddOutcome, NewTarget, Targets } from "./targets.ts";

/** A possible target, and where it was found. */
export interface Discovered {
  readonly target: string;
  readonly source: string;
}

export interface DiscoveryResult {
  readonly found: readonly Discovered[];
  /** Sentences about what could not be found out. */
  readonly unknown: readonly string[];
}

/** Where to look. */
interface DiscoveryPlaces {
  readonly domain: string | null;
  /** The domain whose DMARC reports name its own servers. */
  readonly reportedDomain: string | null;
  /** The addresses of this service. */
  readonly egress: boolean;
}

const MX_HOSTS_MAX = 50;
const FOUND_MAX = 500;

const NO_PUBLIC_ADDRESS =
  "The public address of this service is not known; it may be behind NAT. Add the address yourself, or have the operator set POSTWARDEN_SOURCE_ADDRESSES.";
const PROXIES = "Probes use proxies whose public addresses are not known: add them yourself.";

/** Finds what to monitor: a domain with its mail hosts and the addresses of its SPF record, or the addresses of this service. */
export class TargetDiscovery {
  constructor(
    private readonly deps: {
      resolver: DnsResolver;
      /** The configured source addresses of this service. */
      sourceAddresses: readonly string[];
      hasProxies: boolean;
      /** The addresses of own servers in DMARC reports about a domain; null where the account does not monitor it. */
      ownAddresses: (owner: Owner, domain: string) => Promise<readonly string[] | null>;
    },
  ) {}

  /** Each target once. Targets that cannot be monitored (private, too large) are listed in `unknown`. */
  async discover(owner: Owner, { domain, reportedDomain, egress }: DiscoveryPlaces): Promise<DiscoveryResult> {
    const { mode } = owner;
    const parts = [
      ...(domain === null ? [] : [await this.#ofDomain(domain, mode)]),
      ...(reportedDomain === null ? [] : [await this.#ofReports(owner, reportedDomain)]),
      ...(egress ? [this.#ofService()] : []),
    ];
    const unknown = parts.flatMap((part) => part.unknown);
    const byValue = new Map<string, Discovered>();
    for (const { target, source } of parts.flatMap((part) => part.found)) {
      const parsed = parseTargetOrRange(target, mode);
      if (!parsed.ok) unknown.push(`${target.slice(0, 100)} (${source}): ${parsed.error}`);
      else if (!byValue.has(parsed.value.value))
        byValue.set(parsed.value.value, { target: parsed.value.value, source });
    }
    const found = [...byValue.values()];
    if (found.length > FOUND_MAX) unknown.push(`Only the first ${FOUND_MAX} of ${found.length} targets are included.`);
    return { found: found.slice(0, FOUND_MAX), unknown };
  }

  async #ofDomain(domain: string, mode: KeyMode): Promise<DiscoveryResult> {
    const own = { target: domain, source: "domain" };
    if (mode === "test") return { found: [own], unknown: ["Test keys do not query the DNS."] };
    const unknown: string[] = [];
    const found = [own, ...(await this.#ofMailHosts(domain, unknown)), ...(await this.#ofSpf(domain, unknown))];
    return { found, unknown };
  }

  async #ofReports(owner: Owner, domain: string): Promise<DiscoveryResult> {
    const addresses = await this.deps.ownAddresses(owner, domain);
    if (addresses === null)
      return { found: [], unknown: [`This account does not monitor the DMARC reports of ${domain}.`] };
    const found = addresses.map((target) => ({ target, source: `DMARC reports of ${domain}` }));
    const none = `The DMARC reports of the last 30 days name no own server of ${domain}.`;
    return { found, unknown: found.length === 0 ? [none] : [] };
  }

  #ofService(): DiscoveryResult {
    const { sourceAddresses, hasProxies } = this.deps;
    const found = sourceAddresses
      .filter((address) => isIP(address) !== 0 && parseTarget(address, "live").ok)
      .map((target) => ({ target, source: "source address" }));
    const noAddress = found.length === 0 && !hasProxies;
    return { found, unknown: [...(hasProxies ? [PROXIES] : []), ...(noAddress ? [NO_PUBLIC_ADDRESS] : [])] };
  }

  async #ofMailHosts(domain: string, unknown: string[]): Promise<Discovered[]> {
    const { records, isDefinite } = await this.#query(domain, "MX", unknown);
    if (!isDefinite) return [];
    // Without MX records the domain is its own mail host (RFC 5321 §5.1).
    if (records.length === 0) return this.#addressesOf(domain, `${domain} (no MX record)`, unknown);
    const hosts = [...new Set(records.map(({ exchange }) => exchange))].filter((host) => host !== "" && host !== ".");
    if (hosts.length > MX_HOSTS_MAX)
      unknown.push(`Only the first ${MX_HOSTS_MAX} of ${hosts.length} mail hosts were looked up.`);
    const found = [];
    for (const host of hosts.slice(0, MX_HOSTS_MAX))
      found.push(...(await this.#addressesOf(host, `MX ${host}`, unknown)));
    return found;
  }

  async #addressesOf(host: string, source: string, unknown: string[]): Promise<Discovered[]> {
    const [ipv4, ipv6] = await Promise.all([this.#query(host, "A", unknown), this.#query(host, "AAAA", unknown)]);
    const addresses = [...ipv4.records, ...ipv6.records];
    if (addresses.length === 0 && ipv4.isDefinite && ipv6.isDefinite) unknown.push(`${host} has no address.`);
    return addresses.map((target) => ({ target, source }));
  }

  /** The addresses in the record itself. Included addresses usually belong to others. */
  async #ofSpf(domain: string, unknown: string[]): Promise<Discovered[]> {
    const { records } = await this.#query(domain, "TXT", unknown);
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
  }

  async #query<T extends DnsType>(name: string, type: T, unknown: string[]) {
    const { outcome, records } = await this.deps.resolver.resolve(name, type);
    const isDefinite = outcome === "response" || outcome === "no_data" || outcome === "nxdomain";
    if (!isDefinite) unknown.push(`${type} of ${name}: the DNS query failed (${outcome}). Try again.`);
    return { records, isDefinite };
  }
}

/** What to look for, and the settings of what is added. */
type DiscoverRequest = z.output<ReturnType<typeof discoverRequestSchema>>;

/** Finds targets and adds them. Throws `Invalid request body` for what is not a domain. */
export const discoverAndAdd = async (
  { discovery, targets }: { discovery: TargetDiscovery; targets: Targets },
  owner: Owner,
  request: DiscoverRequest,
) => {
  const { mode } = owner;
  const domain = request.domain === undefined ? null : readDomain(request.domain, mode);
  const reported = request.dmarc_domain;
  const { found, unknown } = await discovery.discover(owner, {
    domain,
    reportedDomain: reported === undefined ? null : readDomain(reported, mode, "dmarc_domain"),
    egress: request.egress === true,
  });
  const wanted = found.map((one) => newTargetOf(request, one));
  const outcomes = request.dry_run === true ? [] : await targets.addMany(owner, wanted);
  return { found: found.map((one, at) => discoveredView(one, outcomes[at])), unknown };
};

/** Normalizes a domain. */
const readDomain = (text: string, mode: KeyMode, path = "domain") => {
  const parsed = parseTarget(text, mode);
  const message = parsed.ok ? "Must be a domain, not an address" : parsed.error;
  if (parsed.ok && parsed.value.kind === "domain") return parsed.value.value;
  throw new AppError("Invalid request body", { issues: [{ path, message }] });
};

const newTargetOf = (
  { label, webhook_url, alert_severity_min }: DiscoverRequest,
  { target }: Discovered,
): NewTarget => ({
  target,
  label: label ?? null,
  monitoringEnabled: true,
  webhookUrl: webhook_url ?? null,
  recipients: [],
  alertSeverityMin: alert_severity_min ?? null,
});

/** A found target with what happened; `found` when nothing was added. */
const discoveredView = ({ target, source }: Discovered, outcome: AddOutcome | undefined) => {
  if (outcome === undefined) return { target, source, status: "found", id: null, problem: null };
  const { status } = outcome;
  return outcome.status === "invalid"
    ? { target, source, status, id: null, problem: outcome.problem }
    : { target, source, status, id: outcome.target.id, problem: null };
};
