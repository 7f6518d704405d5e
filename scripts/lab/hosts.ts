/** Where everything in the laboratory listens. All of it is loopback: nothing the lab does leaves the machine. */
import { readFileSync } from "node:fs";

/** The domain under which the lab's own zones live. */
export const SUFFIX = "lab.test";

/** The port of every mail host. */
export const SMTP_PORT = 2525;

/** The networks that `POSTWARDEN_PROBE_ALLOW_NETWORKS` opens for the binary under test. */
export const LAB_NETWORKS = "127.10.0.0/16,::1/128,::2/128";

export const DNS = { ip: "127.10.0.53", port: 5353 } as const;
/** The same server for those who can only ask at the usual port: Postfix, whose resolver is the system's. */
export const SYSTEM_DNS_PORT = 53;
/** Where nothing answers: the primary of the zone that must end in SERVFAIL. */
export const DEAD_DNS = { ip: "127.10.0.54", port: 5353 } as const;
/** The name server that answers wrongly, behind unbound and asked directly. */
export const WRONG_DNS = { ip: "127.10.0.56", port: 5353 } as const;
export const RBLDNSD = { ip: "127.10.0.55", port: 5353 } as const;
/** A relay in front of it that keeps every answer for a while. */
export const SLOW_RBLDNSD = { ip: "127.10.0.55", port: 5354 } as const;
export const POSTGREY = { ip: "127.10.0.60", port: 10023 } as const;
/** A second postgrey whose delay is longer than every retry of the binary. */
export const POSTGREY_LONG = { ip: "127.10.0.61", port: 10023 } as const;
export const SOCKS = { ip: "127.10.0.70", port: 1080 } as const;
/** A second proxy, which leaves by an address of its own. */
export const SECOND_SOCKS = { ip: "127.10.0.71", port: 1080 } as const;
/** Proxies that fail, each in its way; at the first of them nothing listens. */
export const FAULTY_SOCKS = {
  dead: "127.10.0.72",
  silent: "127.10.0.73",
  mute: "127.10.0.74",
  forbids: "127.10.0.75",
  dies: "127.10.0.76",
} as const;
/** Addresses from which the binary may leave: `exitonly` lets in the first, and what comes out of the SOCKS proxy. */
export const EXITS = {
  welcome: "127.10.0.90",
  unwelcome: "127.10.0.91",
  behindSocks: "127.10.0.92",
  behindSecondSocks: "127.10.0.93",
} as const;
export const HTTP = { ip: "127.10.0.80", port: 8085 } as const;
/** Of the service whose resolver and mail host go away. */
export const OUTAGE_HTTP = { ip: "127.10.0.80", port: 8088 } as const;
/** The service that mail servers ask about recipients, and those mail servers. */
export const OUTGOING = {
  http: { ip: "127.10.0.80", port: 8090 },
  policy: { ip: "127.10.9.40", port: 10_040 },
  postfix: "127.10.9.2",
  exim: "127.10.9.3",
} as const;
/** The mail server whose reports of bounces go to a mailbox. */
export const BOUNCER = "127.10.9.4";
/** Of the service behind reverse proxies. */
export const PROXIED_HTTP = { ip: "127.10.0.80", port: 8089 } as const;
/** Of the service that watches the lab's blocklists. */
export const LISTS_HTTP = { ip: "127.10.0.80", port: 8086 } as const;
/** The HTTP ports of a server that is lost, and of the one that replaces it. */
export const STANDBY_HTTP = { ip: "127.10.0.80", primary: 8093, standby: 8094 } as const;

/** The name and the senders by which the binary introduces itself: the command line's, and the service's. */
export const PROBE_HELO = "probe.lab.example";
export const PROBE_DOMAIN = "lab.example";
export const PROBE_SENDER = `probe@${PROBE_DOMAIN}`;
export const SERVICE_SENDER = `service@${PROBE_DOMAIN}`;

/** Postfix. A client on the same machine has the address that it talks to: what is listed is the listener's own. */
const POSTFIX = {
  main: "127.10.1.1",
  grey: "127.10.1.2",
  greylong: "127.10.1.3",
  blocked: "127.10.1.4",
  blockedatconnect: "127.10.1.5",
  tempfail: "127.10.1.6",
  sender: "127.10.1.7",
  senderatrcpt: "127.10.1.8",
  rate: "127.10.1.9",
  tls: "127.10.1.10",
  noutf8: "127.10.1.11",
  soft: "127.10.1.12",
  acceptall: "127.10.1.13",
  helo: "127.10.1.14",
  recipientrate: "127.10.1.15",
  onercpt: "127.10.1.16",
  dnsblconnect: "127.10.1.20",
  dnsblhelo: "127.10.1.21",
  dnsblrcpt: "127.10.1.22",
  dnsblsoft: "127.10.1.23",
  dnsblclean: "127.10.1.24",
  reverse: "127.10.1.25",
  reversehard: "127.10.1.26",
  reversegood: "127.10.1.27",
  helogood: "127.10.1.28",
  heloatehlo: "127.10.1.29",
  messagerate: "127.10.1.30",
  concurrency: "127.10.1.31",
  storage: "127.10.1.32",
  hardlimit: "127.10.1.33",
  tlsexpired: "127.10.1.34",
  tls13: "127.10.1.35",
  tls10: "127.10.1.36",
  datareject: "127.10.1.37",
  greets: "127.10.1.38",
  deepscreen: "127.10.1.39",
  screened: "127.10.1.40",
  screenedout: "127.10.1.41",
  ourmx: "127.10.1.42",
  ourmxempty: "127.10.1.43",
  exitonly: "127.10.1.46",
  tlsatrcpt: "127.10.1.44",
  tlsclientcert: "127.10.1.45",
} as const;

const OTHER_SERVERS = {
  exim: "127.10.2.1",
  eximcallout: "127.10.2.2",
  eximcalloutno: "127.10.2.3",
  eximgreets: "127.10.2.4",
  eximslow: "127.10.2.5",
  osmtpd: "127.10.6.1",
  osmtpdrdns: "127.10.6.2",
  sink: "127.10.7.1",
  sinkhelo: "127.10.7.2",
  sinkrefuses: "127.10.7.3",
  sinkunknown: "127.10.7.4",
  sinkdefers: "127.10.7.5",
  sinkdrops: "127.10.7.6",
  sinkmail: "127.10.7.7",
  sinkquit: "127.10.7.8",
  sinkrcpt: "127.10.7.9",
} as const;

/** The fault server, one address for each name. */
const FAULTS = [
  ...["silent", "nostarttls", "brokentls", "busy", "drops", "garbage", "code556", "noehlo", "slow", "shuts"],
  ...["bannerdrip", "ehloendless", "ehlodrip", "rcptendless", "longline", "nuls", "resets", "injects", "megabanner"],
  ...["quitless", "closeseach", "code999", "code354", "nocode", "unaskedehlo", "unaskedbanner", "unaskedmail"],
  ...["everything", "tlscloses", "tls454", "tlsoptional", "tlssilent", "slowrcpt", "tarpit", "mutercpt", "recovers"],
  ...["mixed", "code252", "ssh", "shortreply", "silenttoo", "onlyfirst", "hangsfirst", "tlsreset"],
  ...["toomany", "greymail", "utf8refuses", "utf8mail", "codes", "noservice", "turncoat", "busytoo"],
  ...["unaskedno", "muterset", "policygrey", "policycode", "policyblind", "allhangsfirst", "cannotverify"],
] as const;

/** One mail host each. The key is also its name in the zone: `<key>.mx.lab.test`. On 127.10.4.x nothing listens. */
export const HOSTS: Readonly<Record<string, string>> = {
  ...POSTFIX,
  ...OTHER_SERVERS,
  ...Object.fromEntries(FAULTS.map((name, index) => [name, `127.10.3.${index + 1}`])),
  dead: "127.10.4.1",
  deadtoo: "127.10.4.2",
};

export type PostfixHost = keyof typeof POSTFIX;
export type FaultHost = (typeof FAULTS)[number];
export type HostName = PostfixHost | keyof typeof OTHER_SERVERS | FaultHost | "dead" | "deadtoo";

/** The address of a host; every name has one. */
export const addressOf = (host: HostName): string => {
  const ip = HOSTS[host];
  if (ip === undefined) throw new Error(`${host} has no address`);
  return ip;
};

/** The IPv6 halves of hosts with both: one that Postfix serves, and one, to be added, where nothing listens. */
export const IPV6 = { alive: "::1", dead: "::2" } as const;

/** Every address that must be on `lo` while the lab runs. */
export const ADDRESSES: readonly string[] = [
  ...[DNS.ip, DEAD_DNS.ip, WRONG_DNS.ip, RBLDNSD.ip, POSTGREY.ip, POSTGREY_LONG.ip, SOCKS.ip, HTTP.ip],
  ...[SECOND_SOCKS.ip, ...Object.values(FAULTY_SOCKS)],
  ...Object.values(EXITS),
  ...Object.values(HOSTS),
];

/** The mail domain of the reporting addresses. All that follows about DMARC is loopback, apart from what the other rows use. */
export const REPORT_HOST = "reports.lab.test";

/** A name server of its own, because its zone changes while the lab runs; Postfix and Perl can only ask port 53. */
export const DMARC_DNS = { ip: "127.10.8.53", port: 53 } as const;
/** Where nothing answers: the primary of the zone that must end in SERVFAIL. */
export const DEAD_PRIMARY = { ip: "127.10.8.54", port: 53 } as const;
/** The relay that reporters hand their mails to, and the address from which it delivers them. */
export const RELAY = { ip: "127.10.8.1", port: 25, name: "relay.reporters-lab.net" } as const;
export const RELAY_EXIT = "127.10.8.2";
/** The receiver of the binary. */
export const RECEIVER = { ip: "127.10.8.25", port: 2526 } as const;
export const DMARC_HTTP = { ip: "127.10.8.80", port: 8087 } as const;
export const MARIADB = { ip: "127.10.8.6", port: 3306 } as const;

/** Who sends the reports: one whose mail is authentic by SPF, and one whose mail fails a policy of reject. */
export const REPORTERS = {
  mailDmarc: { org: "Honest Reporter", domain: "reporters-lab.net", email: "dmarc@reporters-lab.net" },
  openDmarc: { org: "sloppy-lab.net", domain: "sloppy-lab.net", email: "dmarc@sloppy-lab.net" },
} as const;

/** What `ip` says of an address that is there already, or gone already: left by a lab that was killed, or taken back before. */
const HARMLESS = /File exists|already assigned|Cannot assign requested address/;
const IPV6_SWITCH = "/proc/sys/net/ipv6/conf/lo/disable_ipv6";

const change = async (verb: "add" | "del"): Promise<void> => {
  const wanted = [...ADDRESSES.map((ip) => `${ip}/32`), ...(hasIpv6() ? [`${IPV6.dead}/128`] : [])];
  for (const prefix of wanted) {
    const child = Bun.spawn(["ip", "addr", verb, prefix, "dev", "lo"], {
      stdin: "ignore",
      stdout: "ignore",
      stderr: "pipe",
    });
    const [stderr, code] = await Promise.all([new Response(child.stderr).text(), child.exited]);
    if (code !== 0 && !HARMLESS.test(stderr)) throw new Error(`ip addr ${verb} ${prefix}: ${stderr.trim()}`);
  }
};

/** Whether the loopback interface of this machine has IPv6; where it has not, the rows that need it are left out. */
export const hasIpv6 = (): boolean => {
  try {
    return readFileSync(IPV6_SWITCH, "utf8").trim() === "0";
  } catch {
    return false;
  }
};

/** Puts every address of the lab on the loopback interface; Postfix answers only at addresses that an interface has. */
export const addAddresses = (): Promise<void> => change("add");

/** Removes the addresses from the interface. */
export const removeAddresses = (): Promise<void> => change("del");
