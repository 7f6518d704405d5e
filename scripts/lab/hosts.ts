/** Where everything in the laboratory listens. All of it is loopback: nothing the lab does leaves the machine. */

/** The domain under which the lab's own zones live. */
export const SUFFIX = "lab.test";

/** The port of every mail host. */
export const SMTP_PORT = 2525;

/** The network that `POSTWARDEN_PROBE_ALLOW_NETWORKS` opens for the binary under test. */
export const LAB_NETWORK = "127.10.0.0/16";

export const DNS = { ip: "127.10.0.53", port: 5353 } as const;
/** Where nothing answers: the primary of the zone that must end in SERVFAIL. */
export const DEAD_DNS = { ip: "127.10.0.54", port: 5353 } as const;
export const POSTGREY = { ip: "127.10.0.60", port: 10023 } as const;
/** A second postgrey whose delay is longer than every retry of the binary. */
export const POSTGREY_LONG = { ip: "127.10.0.61", port: 10023 } as const;
export const HTTP = { ip: "127.10.0.80", port: 8085 } as const;

/**
 * One mail host each. The key is also its name in the zone: `<key>.mx.lab.test`.
 * 127.10.1.x is Postfix, 127.10.2.x Exim, 127.10.3.x the fault server, and on 127.10.4.x nothing listens.
 */
export const HOSTS = {
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
  exim: "127.10.2.1",
  silent: "127.10.3.1",
  nostarttls: "127.10.3.2",
  brokentls: "127.10.3.3",
  busy: "127.10.3.4",
  drops: "127.10.3.5",
  garbage: "127.10.3.6",
  code556: "127.10.3.7",
  noehlo: "127.10.3.8",
  slow: "127.10.3.9",
  shuts: "127.10.3.10",
  dead: "127.10.4.1",
  deadtoo: "127.10.4.2",
} as const;

export type HostName = keyof typeof HOSTS;

/** Every address that must be on `lo` while the lab runs. */
export const ADDRESSES: readonly string[] = [
  DNS.ip,
  DEAD_DNS.ip,
  POSTGREY.ip,
  POSTGREY_LONG.ip,
  HTTP.ip,
  ...Object.values(HOSTS),
];
