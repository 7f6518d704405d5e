/** Where everything about DMARC listens. All of it is loopback, apart from what the other rows use. */

/** The mail domain of the reporting addresses. */
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
