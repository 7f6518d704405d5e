import { isIP } from "node:net";
import { type Result, err, ok } from "../base/errors.ts";
import type { DnsServer } from "./dns.ts";

/** Why a list of name servers was refused. `problem` is a sentence for the person who wrote the setting. */
interface ServerListProblem {
  readonly kind: "invalid_dns_servers";
  readonly problem: string;
}

const DNS_PORT = 53;
/** What resolv.conf(5) calls MAXNS: the libc queries the first three. */
const RESOLV_CONF_SERVERS_MAX = 3;
const SETTING_SERVERS_MAX = 8;

/**
 * Reads the `nameserver` lines of /etc/resolv.conf (resolv.conf(5)) as the libc does: lines it cannot use are
 * ignored, at most three servers count, and without any the local machine is queried.
 */
export const parseResolvConf = (text: string): readonly DnsServer[] => {
  const servers = new Map<string, DnsServer>();
  for (const line of text.split(/\r?\n/)) {
    const [keyword, address = ""] = line.trim().split(/\s+/, 2);
    if (keyword !== "nameserver" || isIP(address) === 0) continue;
    if (servers.size < RESOLV_CONF_SERVERS_MAX) servers.set(address, { address, port: DNS_PORT });
  }
  return servers.size > 0 ? [...servers.values()] : [{ address: "127.0.0.1", port: DNS_PORT }];
};

/**
 * Reads a comma list of `ip`, `ip:port`, `ip6` or `[ip6]:port` (one to eight entries; port 53 by default).
 * Fails with a sentence that names the first entry it cannot read.
 */
export const parseDnsServers = (text: string): Result<readonly DnsServer[], ServerListProblem> => {
  const fail = (problem: string) => err({ kind: "invalid_dns_servers", problem } as const);
  const entries = text.split(",").map((entry) => entry.trim());
  if (entries.length > SETTING_SERVERS_MAX) return fail(`At most ${SETTING_SERVERS_MAX} name servers can be given.`);

  const servers: DnsServer[] = [];
  for (const entry of entries) {
    const server = parseServer(entry);
    if (!server)
      return fail(`"${entry}" is not a name server: write it as 192.0.2.1, 192.0.2.1:53 or [2001:db8::1]:53.`);
    servers.push(server);
  }
  return ok(servers);
};

const parseServer = (entry: string): DnsServer | undefined => {
  if (isIP(entry) !== 0) return { address: entry, port: DNS_PORT };
  const parts = /^(?:\[(?<ip6>[^\]]+)\]|(?<ip4>[\d.]+))(?::(?<port>\d{1,5}))?$/.exec(entry)?.groups;
  const address = parts?.ip6 ?? parts?.ip4 ?? "";
  const port = Number(parts?.port ?? DNS_PORT);
  const isRightFamily = isIP(address) === (parts?.ip6 === undefined ? 4 : 6);
  return isRightFamily && port >= 1 && port <= 65_535 ? { address, port } : undefined;
};

/** Addresses of resolvers that everybody may use, by operator. Most blocklists refuse the queries that come from them. */
const PUBLIC_RESOLVERS: Readonly<Record<string, readonly string[]>> = {
  "Google Public DNS": ["8.8.8.8", "8.8.4.4", "2001:4860:4860::8888", "2001:4860:4860::8844"],
  Cloudflare: [
    ...["1.1.1.1", "1.0.0.1", "1.1.1.2", "1.0.0.2", "1.1.1.3", "1.0.0.3"],
    ...["2606:4700:4700::1111", "2606:4700:4700::1001"],
  ],
  Quad9: ["9.9.9.9", "9.9.9.10", "9.9.9.11", "149.112.112.112", "149.112.112.10", "2620:fe::fe", "2620:fe::9"],
  OpenDNS: ["208.67.222.222", "208.67.220.220", "2620:119:35::35", "2620:119:53::53"],
  Level3: ["4.2.2.1", "4.2.2.2", "4.2.2.3", "4.2.2.4", "4.2.2.5", "4.2.2.6"],
  AdGuard: ["94.140.14.14", "94.140.15.15", "94.140.14.140", "94.140.14.141"],
  Verisign: ["64.6.64.6", "64.6.65.6"],
  CleanBrowsing: ["185.228.168.9", "185.228.169.9"],
  Yandex: ["77.88.8.8", "77.88.8.1"],
  "DNS.SB": ["185.222.222.222", "45.11.45.11"],
  DNS4EU: ["86.54.11.100", "86.54.11.200"],
  Mullvad: ["194.242.2.2"],
  AliDNS: ["223.5.5.5", "223.6.6.6"],
  "114DNS": ["114.114.114.114", "114.114.115.115"],
};

/** Who operates the public resolver at an address (IPv6 in the form of RFC 5952); null when it is not known as one. */
export const publicResolverOf = (address: string): string | null =>
  Object.entries(PUBLIC_RESOLVERS).find(([, addresses]) => addresses.includes(address.toLowerCase()))?.[0] ?? null;
