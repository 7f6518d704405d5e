import { KEY_RECORD } from "../../src/testing/signed-message.ts";
import { addressOf, DEAD_DNS, HOSTS, IPV6, PROBE_DOMAIN, PROBE_HELO, SUFFIX } from "./hosts.ts";
import type { HostName } from "./hosts.ts";

/** A domain of the table of addresses that is on the list of disposable domains, and that the lab hosts itself. */
export const DISPOSABLE_DOMAIN = "mailinator.com";
/** Others of that list: without a living host, taking everybody, and refusing all mail. */
export const DISPOSABLE = { dead: "guerrillamail.com", catchAll: "yopmail.com", nullMx: "trashmail.com" } as const;
/** `bücher.lab.test` on the wire (UTS 46). */
export const IDN_DOMAIN = `xn--bcher-kva.${SUFFIX}`;

const DEAD_HOSTS = 29;

const mx = (host: HostName, preference = 10): string => `MX ${preference} ${host}.mx.${SUFFIX}.`;
const mxAt = (name: string, preference = 10): string => `MX ${preference} ${name}.mx.${SUFFIX}.`;

const numbered = (name: string, length = DEAD_HOSTS): readonly string[] =>
  Array.from({ length }, (_, index) => `${name}${index + 1}`);

/** Names so long that the answer does not fit into a datagram. */
const LONG_NAMES = numbered(`a-very-long-name-${"x".repeat(40)}-`);
const LONG_TEXT = Array.from({ length: 16 }, (_, index) => `"${String(index).padStart(2, "0").repeat(120)}"`).join(" ");

const domainsOf = (host: HostName, ...domains: readonly string[]): Record<string, readonly string[]> =>
  Object.fromEntries(domains.map((domain) => [domain, [mx(host)]]));

/**
 * What DNS says about each domain of the lab, one record a line as in a zone file. The key is the label before
 * `lab.test`, or a full name when it ends in a dot. Every host has a domain of its own name besides.
 */
const DOMAINS: Readonly<Record<string, readonly string[]>> = {
  exists: [mx("main"), `TXT "v=spf1 -all"`],
  // the key of the messages that bounce
  "s1._domainkey.out": [`TXT ${(KEY_RECORD.match(/.{1,200}/g) ?? []).map((part) => `"${part}"`).join(" ")}`],
  ...domainsOf("main", "full", "catchall", "utf8", "relaydenied", "xn--bcher-kva", `${DISPOSABLE_DOMAIN}.`),
  ...domainsOf("exim", "eximworded", "eximcatchall", "eximdefers", "eximprohibits"),
  ...domainsOf("osmtpd", "osmtpdrules"),
  ...domainsOf("grey", "greyall"),
  ...domainsOf("onercpt", "oneall"),
  ...domainsOf("tls", "tlsall"),
  [`${DISPOSABLE.dead}.`]: [mx("dead")],
  [`${DISPOSABLE.catchAll}.`]: [mx("main")],
  [`${DISPOSABLE.nullMx}.`]: ["MX 0 ."],
  ...domainsOf("exitonly", "exitall"),
  // several mail hosts
  failover: [mx("dead", 10), mx("main", 20)],
  failoversilent: [mx("silent", 10), mx("main", 20)],
  failoverbusy: [mx("busytoo", 10), mx("main", 20)],
  failovershuts: [mx("shuts", 10), mx("main", 20)],
  equals: [mx("dead", 10), mx("main", 10), mx("deadtoo", 10)],
  thirty: [...numbered("dead").map((name, index) => mxAt(name, index + 1)), mx("main", 99)],
  secondary: [mx("main", 10), mx("acceptall", 20)],
  secondarydefers: [mx("tempfail", 10), mx("acceptall", 20)],
  secondarydead: [mx("dead", 10), mx("acceptall", 20)],
  secondarygrey: [mx("grey", 10), mx("acceptall", 20)],
  dead: [mx("dead", 10), mx("deadtoo", 20)],
  mute: [mx("silent", 10), mx("silenttoo", 20)],
  // shapes of DNS
  nullmx: ["MX 0 ."],
  implicit: [`A ${addressOf("main")}`],
  txtonly: [`TXT "only words here"`],
  privatemx: [mxAt("private")],
  privatefirst: [mxAt("private"), mx("main", 20)],
  loopbackmx: [mxAt("loopback")],
  linklocal: [mxAt("linklocal")],
  mapped: [mxAt("mapped")],
  nohost: [mxAt("nowhere")],
  firstnohost: [mxAt("nowhere"), mx("main", 20)],
  addressless: [mxAt("addressless")],
  hostservfail: [`MX 10 host.servfail.${SUFFIX}.`],
  firstservfail: [`MX 10 host.servfail.${SUFFIX}.`, mx("main", 20)],
  lastsilent: [mx("main", 10), `MX 20 host.silentdns.${SUFFIX}.`],
  servfailandprivate: [`MX 10 host.servfail.${SUFFIX}.`, mxAt("private", 20)],
  mxcname: [mxAt("alias")],
  domaincname: [`CNAME exists.${SUFFIX}.`],
  cnamechain: [`CNAME chain1.${SUFFIX}.`],
  chain1: [`CNAME chain2.${SUFFIX}.`],
  chain2: [`CNAME chain3.${SUFFIX}.`],
  chain3: [mx("main")],
  cnameloop: [`CNAME cnamepool.${SUFFIX}.`],
  cnamepool: [`CNAME cnameloop.${SUFFIX}.`],
  cnameself: [`CNAME cnameself.${SUFFIX}.`],
  mxloop: [mxAt("loop")],
  emptyhost: [`MX 10 mx.emptydns.${SUFFIX}.`],
  barehost: [`MX 10 mx.bareno.${SUFFIX}.`],
  fortyfive: [...numbered("many", 44).map((name, index) => mxAt(name, index + 1)), mx("main", 99)],
  addressasmx: [`MX 10 ${addressOf("main")}.`],
  filtered: [mxAt("filtered")],
  "filtered.mx": ["A 0.0.0.0", "AAAA ::"],
  ...Object.fromEntries(numbered("many", 44).map((name) => [`${name}.mx`, ["A 10.1.2.3"]])),
  truncated: [mx("main", 1), ...LONG_NAMES.map((name) => mxAt(name, 20))],
  longtxt: [mx("main"), `TXT ${LONG_TEXT}`],
  twoaddresses: [mxAt("twoaddresses")],
  "twoaddresses.mx": [`A ${addressOf("dead")}`, `A ${addressOf("main")}`],
  "*.wild": [mx("main")],
  renamed: [`DNAME named.${SUFFIX}.`],
  "mail.named": [mx("main")],
  // IPv6
  dualdead6: [mxAt("dualdead6")],
  dualdead4: [mxAt("dualdead4")],
  only6: [mxAt("only6")],
  implicit6: [`AAAA ${IPV6.alive}`],
  deadboth: [mxAt("deadboth")],
  "dualdead6.mx": [`A ${addressOf("main")}`, `AAAA ${IPV6.dead}`],
  "dualdead4.mx": [`A ${addressOf("dead")}`, `AAAA ${IPV6.alive}`],
  "only6.mx": [`AAAA ${IPV6.alive}`],
  "deadboth.mx": [`A ${addressOf("dead")}`, `AAAA ${IPV6.dead}`],
  // blocklists that answer every name
  "*.wildname": ["A 127.0.1.2"],
  "*.parked": ["A 192.0.2.80"],
  // hosts that are no server of the lab
  "private.mx": ["A 10.1.2.3", "AAAA fd00:1:2::3"],
  "loopback.mx": ["A 127.0.0.1", "AAAA ::"],
  "linklocal.mx": ["A 169.254.169.254", "AAAA fe80::1"],
  "mapped.mx": ["AAAA ::ffff:127.0.0.1", "AAAA 64:ff9b::7f00:1"],
  "addressless.mx": [`TXT "no address"`],
  "alias.mx": [`CNAME main.mx.${SUFFIX}.`],
  "loop.mx": [`CNAME pool.mx.${SUFFIX}.`],
  "pool.mx": [`CNAME loop.mx.${SUFFIX}.`],
  ...Object.fromEntries(numbered("dead").map((name, index) => [`${name}.mx`, [`A 127.10.4.${index + 10}`]])),
  // ourselves, and the one address of which the reverse name is in order
  [`${PROBE_DOMAIN}.`]: [mx("ourmx")],
  [`${PROBE_HELO}.`]: ["A 127.0.0.1", `A ${addressOf("reversegood")}`],
  [`${addressOf("reversegood").split(".").reverse().join(".")}.in-addr.arpa.`]: [`PTR ${PROBE_HELO}.`],
};

/** Zones of which unbound behaves badly on purpose: `<key>.lab.test`. */
export const BAD_ZONES = {
  servfail: `auth-zone:\n  name: "servfail.${SUFFIX}"\n  primary: ${DEAD_DNS.ip}@${DEAD_DNS.port}\n  fallback-enabled: no\n  for-downstream: no\n`,
  silentdns: `server:\n  local-zone: "silentdns.${SUFFIX}." deny\n`,
  refused: `server:\n  local-zone: "refused.${SUFFIX}." refuse\n`,
} as const;

/** The text of the one zone file, rooted at ".", that makes unbound authoritative for the whole world. */
export const zoneText = (): string => {
  const name = (key: string): string => (key.endsWith(".") ? key : `${key}.${SUFFIX}.`);
  const lines = [". 60 IN SOA ns.lab.test. hostmaster.lab.test. 1 3600 600 86400 60", ". 60 IN NS ns.lab.test."];
  const own = Object.keys(HOSTS).map((host) => [host, [mxAt(host)]] as const);
  for (const [host, ip] of Object.entries(HOSTS)) lines.push(`${host}.mx.${SUFFIX}. 60 IN A ${ip}`);
  for (const [key, records] of Object.entries({ ...Object.fromEntries(own), ...DOMAINS })) {
    for (const record of records) lines.push(`${name(key)} 60 IN ${record}`);
  }
  return `${lines.join("\n")}\n`;
};
