import { join } from "node:path";
import { freePort, type Stage } from "./stage.ts";
import { needTools } from "./tools.ts";

/** Where an unbound of ours answers. */
export interface NameServer {
  readonly address: string;
  readonly port: number;
  /** In the form of POSTWARDEN_DNS_SERVERS. */
  readonly setting: string;
}

const ADDRESS = "127.0.0.1";

const configuration = (directory: string, port: number, clauses: readonly string[]): string => `server:
  interface: ${ADDRESS}
  port: ${port}
  directory: "${directory}"
  chroot: ""
  username: ""
  pidfile: ""
  use-syslog: no
  logfile: ""
  verbosity: 0
  num-threads: 1
  so-rcvbuf: 4m
  do-daemonize: no
  do-ip6: no
  access-control: 127.0.0.0/8 allow
  module-config: "iterator"
  local-zone: "." refuse
  local-zone: "test." transparent
${clauses.map((clause) => `  ${clause}\n`).join("")}auth-zone:
  name: "test"
  zonefile: "${join(directory, "test.zone")}"
  for-downstream: yes
  for-upstream: no
remote-control:
  control-enable: no
`;

/** Starts unbound as the authority for `test`, with these lines as its zone (master file format, names whole). */
export const startNames = (stage: Stage, name: string, records: readonly string[]): Promise<NameServer> =>
  startUnbound(stage, name, { records, clauses: [] });

/**
 * Starts unbound as the authority for these zones, in which exist the names with these records and no others. Each has an SOA
 * record, as zones on the internet have: a client must not trust "no such name" without it (RFC 2308 §2).
 */
export const startZones = (
  stage: Stage,
  name: string,
  { zones, records }: { readonly zones: readonly string[]; readonly records: readonly string[] },
): Promise<NameServer> =>
  startUnbound(stage, name, {
    records: [],
    clauses: [
      ...zones.map((zone) => `local-zone: "${zone}." static`),
      ...zones.map((zone) => `local-data: "${zone}. 600 IN SOA ns.test. hostmaster.test. 1 3600 600 86400 600"`),
      ...records.map((record) => `local-data: '${record}'`),
    ],
  });

const startUnbound = async (
  stage: Stage,
  name: string,
  { records, clauses }: { readonly records: readonly string[]; readonly clauses: readonly string[] },
): Promise<NameServer> => {
  await needTools(stage.supervisor, "unbound");
  const port = freePort();
  const directory = join(stage.directory, name);
  const soa = "test. 600 IN SOA ns.test. hostmaster.test. 1 3600 600 86400 600\ntest. 600 IN NS ns.test.\n";
  await Bun.write(join(directory, "test.zone"), `${soa}ns.test. 600 IN A ${ADDRESS}\n${records.join("\n")}\n`);
  const configPath = join(directory, "unbound.conf");
  await Bun.write(configPath, configuration(directory, port, clauses));
  stage.supervisor.start({ name, argv: ["unbound", "-d", "-p", "-c", configPath] });
  await stage.supervisor.waitForPort(name, ADDRESS, port);
  return { address: ADDRESS, port, setting: `${ADDRESS}:${port}` };
};

/** A domain with one mail host of its own, which has one address. */
export const mailDomain = (domain: string, address: string): string[] => [
  `${domain}. 600 IN MX 10 mx.${domain}.`,
  `mx.${domain}. 600 IN A ${address}`,
];
