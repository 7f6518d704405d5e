import { DEAD_DNS, HOSTS, SUFFIX } from "./hosts.ts";
import type { HostName } from "./hosts.ts";

/** A domain of the table of addresses that is on the list of disposable domains, and that the lab hosts itself. */
export const DISPOSABLE_DOMAIN = "mailinator.com";
/** `bücher.lab.test` on the wire (UTS 46). */
export const IDN_DOMAIN = `xn--bcher-kva.${SUFFIX}`;

const mx = (host: HostName, preference = 10): string => `MX ${preference} ${host}.mx.${SUFFIX}.`;

/**
 * What DNS says about each domain of the lab, one record a line as in a zone file. The key is the label before
 * `lab.test`, or a full name when it ends in a dot. `lab.test` itself only carries what a root needs.
 */
const DOMAINS: Readonly<Record<string, readonly string[]>> = {
  // Postfix
  exists: [mx("main"), `TXT "v=spf1 -all"`],
  full: [mx("main")],
  catchall: [mx("main")],
  grey: [mx("grey")],
  greylong: [mx("greylong")],
  blocked: [mx("blocked")],
  blockedatconnect: [mx("blockedatconnect")],
  helo: [mx("helo")],
  tempfail: [mx("tempfail")],
  sender: [mx("sender")],
  senderatrcpt: [mx("senderatrcpt")],
  rate: [mx("rate")],
  recipientrate: [mx("recipientrate")],
  tls: [mx("tls")],
  utf8: [mx("main")],
  noutf8: [mx("noutf8")],
  soft: [mx("soft")],
  onercpt: [mx("onercpt")],
  relaydenied: [mx("main")],
  "xn--bcher-kva": [mx("main")],
  [`${DISPOSABLE_DOMAIN}.`]: [mx("main")],
  // Exim
  exim: [mx("exim")],
  eximworded: [mx("exim")],
  eximcatchall: [mx("exim")],
  eximdefers: [mx("exim")],
  // the fault server
  silent: [mx("silent")],
  nostarttls: [mx("nostarttls")],
  brokentls: [mx("brokentls")],
  busy: [mx("busy")],
  drops: [mx("drops")],
  garbage: [mx("garbage")],
  code556: [mx("code556")],
  noehlo: [mx("noehlo")],
  slow: [mx("slow")],
  shuts: [mx("shuts")],
  // several mail hosts
  failover: [mx("dead", 10), mx("main", 20)],
  failoversilent: [mx("silent", 10), mx("main", 20)],
  failoverbusy: [mx("busy", 10), mx("main", 20)],
  failovershuts: [mx("shuts", 10), mx("main", 20)],
  secondary: [mx("main", 10), mx("acceptall", 20)],
  secondarydefers: [mx("tempfail", 10), mx("acceptall", 20)],
  dead: [mx("dead", 10), mx("deadtoo", 20)],
  // shapes of DNS
  nullmx: ["MX 0 ."],
  implicit: [`A ${HOSTS.main}`],
  txtonly: [`TXT "only words here"`],
  privatemx: [`MX 10 private.mx.${SUFFIX}.`],
  privatefirst: [`MX 10 private.mx.${SUFFIX}.`, mx("main", 20)],
  nohost: [`MX 10 nowhere.mx.${SUFFIX}.`],
  addressless: [`MX 10 addressless.mx.${SUFFIX}.`],
  hostservfail: [`MX 10 host.servfail.${SUFFIX}.`],
  mxcname: [`MX 10 alias.mx.${SUFFIX}.`],
  domaincname: [`CNAME exists.${SUFFIX}.`],
  // hosts that are no server of the lab
  "private.mx": ["A 10.1.2.3", "AAAA fd00:1:2::3"],
  "addressless.mx": [`TXT "no address"`],
  "alias.mx": [`CNAME main.mx.${SUFFIX}.`],
  "probe.lab.example.": ["A 127.0.0.1"],
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
  for (const [host, ip] of Object.entries(HOSTS)) lines.push(`${host}.mx.${SUFFIX}. 60 IN A ${ip}`);
  for (const [key, records] of Object.entries(DOMAINS)) {
    for (const record of records) lines.push(`${name(key)} 60 IN ${record}`);
  }
  return `${lines.join("\n")}\n`;
};
