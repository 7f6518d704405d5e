import { join } from "node:path";
import { LAB_LISTS, servedZone, SLOW_ZONE } from "./blocklists-lists.ts";
import { DNS, RBLDNSD, SLOW_RBLDNSD, SUFFIX, SYSTEM_DNS_PORT, WRONG_DNS } from "./hosts.ts";
import type { Supervisor } from "./processes.ts";
import { ADDRESS_LIST, NAME_LIST } from "./rbldnsd.ts";
import { WRONG_ZONES } from "./wrong-dns.ts";
import { BAD_ZONES, zoneText } from "./zone.ts";

const NAME = "unbound";

const stubZone = (zone: string, { ip, port }: { readonly ip: string; readonly port: number }): string =>
  `stub-zone:\n  name: "${zone}"\n  stub-addr: ${ip}@${port}\n  stub-prime: no\n`;

const blocklist = (zone: string): string => stubZone(zone, zone === SLOW_ZONE ? SLOW_RBLDNSD : RBLDNSD);

const blocklists = (): readonly string[] => [
  ...[ADDRESS_LIST, NAME_LIST],
  ...LAB_LISTS.filter(({ datasets }) => datasets !== null).map(servedZone),
];

/** `server:` clauses may stand several times in unbound.conf; the bad zones use that. */
const configuration = (directory: string): string => `server:
  interface: ${DNS.ip}@${DNS.port}
  interface: ${DNS.ip}@${SYSTEM_DNS_PORT}
  port: ${DNS.port}
  directory: "${directory}"
  chroot: ""
  username: ""
  pidfile: ""
  use-syslog: no
  logfile: ""
  verbosity: 1
  num-threads: 1
  so-rcvbuf: 4m
  do-daemonize: no
  do-ip6: no
  access-control: 127.0.0.0/8 allow
  do-not-query-localhost: no
  module-config: "iterator"
  local-zone: "test." transparent
  local-zone: "10.in-addr.arpa." transparent
  local-zone: "127.in-addr.arpa." transparent
${Object.values(BAD_ZONES).join("")}auth-zone:
  name: "."
  zonefile: "${join(directory, "root.zone")}"
  for-downstream: no
  for-upstream: yes
  fallback-enabled: no
${WRONG_ZONES.map((zone) => stubZone(`${zone}.${SUFFIX}`, WRONG_DNS)).join("")}${blocklists().map(blocklist).join("")}remote-control:
  control-enable: no
`;

/** Starts unbound on `DNS`, authoritative for the zone of the lab, and in front of rbldnsd for the blocklists. */
export const startDns = async (supervisor: Supervisor, directory: string): Promise<void> => {
  const configPath = join(directory, "unbound.conf");
  await Bun.write(join(directory, "root.zone"), zoneText());
  await Bun.write(configPath, configuration(directory));
  await supervisor.run(["unbound-checkconf", configPath]);
  supervisor.start({ name: NAME, argv: ["unbound", "-d", "-p", "-c", configPath] });
  await supervisor.waitForPort(NAME, DNS.ip, DNS.port);
};
