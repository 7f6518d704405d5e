import { isIP } from "node:net";
import type { Result } from "../base/errors.ts";
import { err, ok } from "../base/errors.ts";
import type { DnsServer } from "./dns.ts";

/** Why a list of name servers was refused. `problem` is a sentence for the person who wrote the setting. */
export interface ServerListProblem {
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
