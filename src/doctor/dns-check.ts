import type { Clock } from "../foundation/base/clock.ts";
import type { Random } from "../foundation/base/secrets.ts";
import { type DnsResolver, type DnsServer, formatServer } from "../foundation/net/dns.ts";
import { encodeQuery } from "../foundation/net/dns-message.ts";
import type { DnsTimeouts } from "../foundation/net/dns-querier.ts";
import { createDnsResolver } from "../foundation/net/dns-resolver.ts";
import { createDnsTransport } from "../foundation/net/dns-transport.ts";
import { publicResolverOf } from "../foundation/net/resolv-conf.ts";
import { type DoctorCheck, doctorFindings } from "./doctor-check.ts";

const dnsCheck = doctorFindings("dns", "DNS servers", "sender-reputation#resolver");
const tcpCheck = doctorFindings("dns_tcp", "DNS over TCP", "sender-reputation#resolver");
const rewritingCheck = doctorFindings("dns_rewriting", "DNS responses", "sender-reputation#resolver");

/** Shorter than those of the service, so that all checks end in time when no server responds. */
export const DOCTOR_DNS_TIMEOUTS: DnsTimeouts = {
  firstAttemptMs: 2_000,
  retransmitMs: 2_000,
  tcpMs: 3_000,
  totalMs: 6_000,
};

export interface DnsServersOptions {
  readonly servers: readonly DnsServer[];
  readonly clock: Clock;
  readonly random: Random;
  /** A domain that has MX records. */
  readonly domain: string;
}

interface ServerCheck extends DnsServersOptions {
  readonly server: DnsServer;
}

const ADVICE =
  "Use another resolver, best one on this machine: apt install unbound, then POSTWARDEN_DNS_SERVERS=127.0.0.1.";

/**
 * Whether each DNS server responds, over TCP too, whether it is a public resolver, and whether it invents addresses for
 * names that do not exist.
 */
export const checkDnsServers = async (options: DnsServersOptions): Promise<readonly DoctorCheck[]> => {
  const found = await Promise.all(options.servers.map((server) => checkServer({ ...options, server })));
  const isAnyUsable = found.some(({ reachable }) => reachable.state !== "fail");
  return found.flatMap(({ server, reachable, others }) => {
    if (reachable.state !== "fail" || !isAnyUsable) return [reachable, ...others];
    const remedy = `Another server responds, but some queries wait for this one. Remove it from POSTWARDEN_DNS_SERVERS.`;
    return [dnsCheck.warn(`${formatServer(server)} does not respond. ${remedy}`), ...others];
  });
};

const checkServer = async (check: ServerCheck) => {
  const { server, clock } = check;
  const resolver = createDnsResolver({ servers: [server], clock, timeouts: DOCTOR_DNS_TIMEOUTS });
  try {
    const reachable = await checkReachable(check, resolver);
    if (reachable.state === "fail") return { server, reachable, others: [] };
    const [tcp, rewriting] = await Promise.all([checkTcp(check), checkRewriting(check, resolver)]);
    return { server, reachable, others: [...publicFindings(server), ...tcp, ...rewriting] };
  } finally {
    resolver.close();
  }
};

const checkReachable = async ({ server, domain }: ServerCheck, resolver: DnsResolver): Promise<DoctorCheck> => {
  const where = formatServer(server);
  const { outcome, elapsedMs } = await resolver.resolve(domain, "MX");
  switch (outcome) {
    case "response":
      return dnsCheck.ok(`${where} responds (MX of ${domain}, ${elapsedMs} ms).`);
    case "nxdomain":
      return dnsCheck.warn(
        `${where} says that ${domain} does not exist. If it does, the server does not resolve public names: set POSTWARDEN_DNS_SERVERS to one that does. Else name another domain with --domain.`,
      );
    case "no_data":
      return dnsCheck.warn(`${where} responds, but ${domain} has no MX record. Name another domain with --domain.`);
    case "invalid_name":
      return dnsCheck.warn(`"${domain}" is not a domain name. Name another domain with --domain.`);
    default:
      return dnsCheck.fail(`The MX query for ${domain} to ${where} failed: ${outcome}. ${ADVICE}`);
  }
};

/** Whether a server is a public resolver; empty when it is not. */
export const publicFindings = (server: DnsServer): readonly DoctorCheck[] => {
  const operator = publicResolverOf(server.address);
  if (operator === null) return [];
  return [
    dnsCheck.warn(
      `${formatServer(server)} is a public resolver (${operator}). Most blocklists refuse it, and it limits your rate. Run a resolver on this machine (apt install unbound) and set POSTWARDEN_DNS_SERVERS=127.0.0.1.`,
    ),
  ];
};

const RANDOM_16 = 0x1_0000;

/** TCP is needed for responses that are too long for UDP (RFC 7766), such as those with many MX or TXT records. */
const checkTcp = async ({ server, clock, random, domain }: ServerCheck): Promise<readonly DoctorCheck[]> => {
  const transport = createDnsTransport({ clock });
  const options = { random16: () => random.integer(RANDOM_16), mixCase: false, edns: true, dnssecOk: false };
  const query = encodeQuery(domain, "MX", options);
  const { kind } = await transport.tcp({ server, query, timeoutMs: DOCTOR_DNS_TIMEOUTS.tcpMs });
  transport.close();
  const where = formatServer(server);
  return [
    kind === "message"
      ? tcpCheck.ok(`${where} responds over TCP.`)
      : tcpCheck.warn(
          `${where} does not respond over TCP (${kind}), so long responses cannot be read. Allow TCP port ${server.port} to it.`,
        ),
  ];
};

const LETTERS = "abcdefghijklmnopqrstuvwxyz";
const LABEL_LETTERS = 24;

/** A name that nobody has registered: 24 random letters. */
const randomName = (random: Random): string =>
  `${Array.from({ length: LABEL_LETTERS }, () => LETTERS[random.integer(LETTERS.length)]).join("")}.com`;

const checkRewriting = async (
  { server, random }: ServerCheck,
  resolver: DnsResolver,
): Promise<readonly DoctorCheck[]> => {
  const where = formatServer(server);
  const { outcome, records } = await resolver.resolve(randomName(random), "A");
  switch (outcome) {
    case "nxdomain":
      return [rewritingCheck.ok(`${where} says NXDOMAIN for a name that does not exist.`)];
    case "response":
      return [
        rewritingCheck.fail(
          `${where} returns ${records.join(", ")} for a name that does not exist, so domains that do not exist seem to exist. ${ADVICE}`,
        ),
      ];
    default:
      return [
        rewritingCheck.warn(
          `${where} does not say NXDOMAIN for a name that does not exist (${outcome}), so such domains end as dns_error. ${ADVICE}`,
        ),
      ];
  }
};
