import { join } from "node:path";
import { DEAD_PRIMARY, DMARC_DNS, RELAY, RELAY_EXIT, REPORTERS, REPORT_HOST } from "./hosts.ts";
import { serverDirectory } from "./namespace.ts";
import type { Supervisor } from "./processes.ts";

const NAME = "unbound-dmarc";
/** Long, so that whoever reads the live DNS must not believe what it remembers. */
const TTL_S = 300;
/** `_dmarc` of this domain ends in SERVFAIL. */
export const SERVFAIL_DOMAIN = "servfail-lab.com";

/** Full names without the final dot → records as in a zone file. */
export type Zone = Readonly<Record<string, readonly string[]>>;

/** The zone of the reporters, and of whoever is needed for the mails to arrive. */
const BASE: Zone = {
  [REPORT_HOST]: [`MX 10 ${RELAY.name}.`],
  [RELAY.name]: [`A ${RELAY.ip}`],
  [REPORTERS.mailDmarc.domain]: [`MX 10 ${RELAY.name}.`, `TXT "v=spf1 ip4:${RELAY_EXIT} -all"`],
  [`_dmarc.${REPORTERS.mailDmarc.domain}`]: [`TXT "v=DMARC1; p=reject; aspf=r"`],
  [REPORTERS.openDmarc.domain]: [`MX 10 ${RELAY.name}.`, `TXT "v=spf1 ip4:192.0.2.1 -all"`],
  [`_dmarc.${REPORTERS.openDmarc.domain}`]: [`TXT "v=DMARC1; p=reject"`],
};

const zoneText = (zone: Zone): string => {
  const lines = [". 60 IN SOA ns.lab.test. hostmaster.lab.test. 1 3600 600 86400 60", ". 60 IN NS ns.lab.test."];
  for (const [name, records] of Object.entries(zone)) {
    for (const record of records) lines.push(`${name}. ${TTL_S} IN ${record}`);
  }
  return `${lines.join("\n")}\n`;
};

const configuration = (directory: string): string => `server:
  interface: ${DMARC_DNS.ip}@${DMARC_DNS.port}
  directory: "${directory}"
  chroot: ""
  username: ""
  pidfile: ""
  use-syslog: no
  logfile: ""
  num-threads: 1
  do-daemonize: no
  do-ip6: no
  access-control: 127.0.0.0/8 allow
  do-not-query-localhost: no
  module-config: "iterator"
  local-zone: "test." transparent
  local-zone: "127.in-addr.arpa." transparent
auth-zone:
  name: "${SERVFAIL_DOMAIN}"
  primary: ${DEAD_PRIMARY.ip}@${DEAD_PRIMARY.port}
  fallback-enabled: no
  for-downstream: no
auth-zone:
  name: "."
  zonefile: "${join(directory, "root.zone")}"
  for-downstream: no
  for-upstream: yes
  fallback-enabled: no
remote-control:
  control-enable: yes
  control-interface: ${join(directory, "control")}
  control-use-cert: no
`;

/** A name server whose zone can be replaced while it runs. */
export interface ChangingDns {
  /** The zone from now on, besides what is always there; nothing of the old one is remembered by the server. */
  publish(zone: Zone): Promise<void>;
}

/** Starts unbound on `DMARC_DNS`, authoritative for the whole world. */
export const startChangingDns = async (
  supervisor: Supervisor,
  parent: string,
  { always, zone }: { readonly always: Zone; readonly zone: Zone },
): Promise<ChangingDns> => {
  const directory = await serverDirectory(parent, NAME);
  const path = join(directory, "unbound.conf");
  const write = (records: Zone) =>
    Bun.write(join(directory, "root.zone"), zoneText({ ...BASE, ...always, ...records }));
  await write(zone);
  await Bun.write(path, configuration(directory));
  await supervisor.run(["unbound-checkconf", path]);
  supervisor.start({ name: NAME, argv: ["unbound", "-d", "-p", "-c", path] });
  await supervisor.waitForPort(NAME, DMARC_DNS.ip, DMARC_DNS.port);
  const control = (...words: string[]) => supervisor.run(["unbound-control", "-c", path, ...words]);
  return {
    publish: async (records) => {
      await write(records);
      await control("auth_zone_reload", ".");
      await control("flush_zone", ".");
    },
  };
};
