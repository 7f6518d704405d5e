import { chmod, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { type HostName, POSTGREY, POSTGREY_LONG, PROBE_DOMAIN, SMTP_PORT, SUFFIX, addressOf } from "./hosts.ts";
import { inNamespace, serverDirectory, withLabResolver, withUsers } from "./namespace.ts";
import type { Supervisor } from "./processes.ts";

const EXIM = "exim";

/** Debian's Exim insists on this user; the package that would make it is never installed. */
const EXIM_USER = "Debian-exim";
const EXIM_ID = 64_999;

const LISTENERS: readonly HostName[] = ["exim", "eximcallout", "eximcalloutno", "eximgreets", "eximslow"];

const isAt = (host: HostName): string => `condition = \${if eq{$received_ip_address}{${addressOf(host)}}}`;

/**
 * One router decides about the mailboxes of each kind of domain; an unknown one gets Exim's own words. A callout asks
 * the mail host of our sender, which is another one for each listener.
 */
const configuration = (directory: string, unpacked: string): string => `primary_hostname = exim.mx.${SUFFIX}
spool_directory = ${directory}/spool
log_file_path = ${directory}/log/%slog
pid_file_path = ${directory}/exim.pid
exim_path = ${unpacked}/usr/sbin/exim4
keep_environment =
local_interfaces = ${LISTENERS.map(addressOf).join(" : ")}
daemon_smtp_ports = ${SMTP_PORT}
domainlist worded = eximworded.${SUFFIX}
domainlist mailboxes = exim.${SUFFIX} : eximcallout.${SUFFIX} : eximcalloutno.${SUFFIX} : eximgreets.${SUFFIX} : eximslow.${SUFFIX} : +worded
domainlist everything = eximcatchall.${SUFFIX}
domainlist undecided = eximdefers.${SUFFIX} : eximprohibits.${SUFFIX}
host_lookup =
rfc1413_hosts =
tls_advertise_hosts =
dns_dnssec_ok = 0
acl_smtp_connect = acl_connect
acl_smtp_rcpt = acl_rcpt

begin acl
acl_connect:
  accept  ${isAt("eximgreets")}
          delay = 2s
  accept
acl_rcpt:
  deny    domains = !+mailboxes : !+everything : !+undecided
          message = relay not permitted
  deny    domains = eximprohibits.${SUFFIX}
  warn    ${isAt("eximslow")}
          delay = 2s
  deny    domains = eximcallout.${SUFFIX} : eximcalloutno.${SUFFIX}
          !verify = sender/callout=3s,no_cache
  deny    domains = +mailboxes
          local_parts = gone
          message = Account disabled
  deny    domains = +mailboxes
          local_parts = stuffed
          message = 552 5.2.2 Mailbox is full
  defer   domains = +mailboxes
          local_parts = overquota
          message = 452 4.2.2 Mailbox over quota, try later
  deny    domains = +worded
          message = Unknown user
          !verify = recipient
  require verify = recipient
  accept

begin routers
ours:
  driver = manualroute
  domains = ${PROBE_DOMAIN}
  ${isAt("eximcallout")}
  transport = callout
  route_data = ${addressOf("ourmx")}
  self = send
oursempty:
  driver = manualroute
  domains = ${PROBE_DOMAIN}
  transport = callout
  route_data = ${addressOf("ourmxempty")}
  self = send
known:
  driver = accept
  domains = +mailboxes
  local_parts = alice : info : gone : stuffed : overquota
  transport = nowhere
all:
  driver = accept
  domains = +everything
  transport = nowhere
undecided:
  driver = redirect
  domains = +undecided
  allow_defer
  data = :defer: mailbox directory is not available

begin transports
nowhere:
  driver = appendfile
  file = /dev/null
callout:
  driver = smtp
  port = ${SMTP_PORT}
  allow_localhost

begin retry
* * F,1h,1m

begin rewrite
begin authenticators
`;

interface EximInstance {
  readonly name: string;
  /** Where it listens. */
  readonly ip: string;
  readonly configuration: (directory: string, unpacked: string) => string;
}

/** Starts an Exim from the unpacked package, in a mount namespace in which its user exists. */
export const startEximInstance = async (
  supervisor: Supervisor,
  { parent, unpacked }: { readonly parent: string; readonly unpacked: string },
  { name, ip, configuration: configurationOf }: EximInstance,
): Promise<void> => {
  const directory = await serverDirectory(parent, name, ["spool", "log"]);
  const configPath = join(directory, "exim.conf");
  const users = await withUsers(directory, [{ name: EXIM_USER, id: EXIM_ID }]);
  const files = { ...users, ...(await withLabResolver(directory)) };
  await Bun.write(configPath, configurationOf(directory, unpacked));
  await supervisor.run(["chown", "-R", `${EXIM_ID}:${EXIM_ID}`, join(directory, "spool"), join(directory, "log")]);
  supervisor.start({
    name,
    argv: inNamespace({ files }, [`${unpacked}/usr/sbin/exim4`, "-bdf", "-C", configPath]),
  });
  await supervisor.waitForPort(name, ip, SMTP_PORT);
};

export const startExim = (supervisor: Supervisor, parent: string, unpacked: string): Promise<void> =>
  startEximInstance(supervisor, { parent, unpacked }, { name: EXIM, ip: addressOf("exim"), configuration });

/** How long a first try is turned away: short enough for the binary's retries under test, and far beyond them. */
const SHORT_DELAY_S = 2;
const LONG_DELAY_S = 3600;

interface Greylist {
  readonly name: string;
  readonly at: { readonly ip: string; readonly port: number };
  readonly delayS: number;
}

const GREYLISTS: readonly Greylist[] = [
  { name: "postgrey", at: POSTGREY, delayS: SHORT_DELAY_S },
  { name: "postgrey-long", at: POSTGREY_LONG, delayS: LONG_DELAY_S },
];

/** Starts the two postgrey daemons that Postfix asks. Their whitelists are empty, and
 * no client passes for its neighbour. */
export const startPostgrey = async (supervisor: Supervisor, parent: string): Promise<void> => {
  const empty = join(parent, "postgrey-empty");
  await Bun.write(empty, "");
  for (const { name, at, delayS } of GREYLISTS) {
    const directory = join(parent, name);
    await mkdir(directory);
    await chmod(directory, 0o700);
    await supervisor.run(["chown", "postgrey", directory]);
    supervisor.start({
      name,
      argv: [
        ...["postgrey", `--inet=${at.ip}:${at.port}`, `--delay=${delayS}`, `--dbdir=${directory}`],
        ...["--user=postgrey", "--group=postgrey", "--auto-whitelist-clients=0", "--lookup-by-host"],
        ...[`--whitelist-clients=${empty}`, `--whitelist-recipients=${empty}`, "--syslog-facility=mail"],
      ],
    });
  }
  for (const { name, at } of GREYLISTS) await supervisor.waitForPort(name, at.ip, at.port);
};

const BACKLOG = "64";

/** Postfix's test server takes every recipient, unless told otherwise. */
const SINKS: Readonly<Partial<Record<HostName, readonly string[]>>> = {
  sink: [],
  sinkhelo: ["-e"],
  sinkrefuses: ["-f", "rcpt", "-B", "550 Requested action not taken"],
  sinkrcpt: ["-f", "rcpt"],
  sinkunknown: ["-f", "rcpt", "-B", "550 5.1.1 User unknown"],
  sinkdefers: ["-r", "rcpt"],
  sinkdrops: ["-q", "rcpt"],
  sinkmail: ["-f", "mail"],
  sinkquit: ["-q", "quit"],
};

/** Starts a smtp-sink for each behaviour. */
export const startSinks = async (supervisor: Supervisor): Promise<void> => {
  const sinks = Object.entries(SINKS).map(([host, options]) => ({ host, options, ip: addressOf(host as HostName) }));
  for (const { host, options, ip } of sinks) {
    const argv = ["smtp-sink", "-u", "nobody", "-h", `${host}.mx.${SUFFIX}`, ...options, `${ip}:${SMTP_PORT}`, BACKLOG];
    supervisor.start({ name: host, argv });
  }
  for (const { host, ip } of sinks) await supervisor.waitForPort(host, ip, SMTP_PORT);
};

const OPENSMTPD = "opensmtpd";
const USERS = [
  { name: "opensmtpd", id: 64_998 },
  { name: "opensmtpq", id: 64_997 },
];

/** Directories that are compiled into the program. */
const EMPTY = { "/var/spool": ["smtpd"], "/var/lib": ["opensmtpd/empty"], "/run": [] };

/** Mailboxes are known by a table of virtual users or by the rule that matches; one listener wants to know who we are. */
const smtpdConf = (directory: string): string => `table mailboxes file:${directory}/mailboxes
table known file:${directory}/known
filter "reverse" phase connect match !rdns disconnect "550 no rDNS is so 80s"
listen on ${addressOf("osmtpd")} port ${SMTP_PORT} hostname osmtpd.mx.${SUFFIX}
listen on ${addressOf("osmtpdrdns")} port ${SMTP_PORT} hostname osmtpd.mx.${SUFFIX} filter "reverse"
action "local" maildir "${directory}/mail" virtual <mailboxes>
match from any for domain { "osmtpd.${SUFFIX}" "osmtpdrdns.${SUFFIX}" } action "local"
match from any for domain "osmtpdrules.${SUFFIX}" rcpt-to <known> action "local"
`;

/** Starts OpenSMTPD from the unpacked package, in a namespace that has its users and the directories it insists on. */
export const startOpensmtpd = async (supervisor: Supervisor, parent: string, unpacked: string): Promise<void> => {
  const directory = await serverDirectory(parent, OPENSMTPD);
  const configPath = join(directory, "smtpd.conf");
  const domains = [`osmtpd.${SUFFIX}`, `osmtpdrules.${SUFFIX}`];
  await Bun.write(join(directory, "mailboxes"), domains.map((domain) => `alice@${domain}: nobody\n`).join(""));
  await Bun.write(join(directory, "known"), domains.map((domain) => `alice@${domain}\n`).join(""));
  await Bun.write(configPath, smtpdConf(directory));
  const files = { ...(await withUsers(directory, USERS)), ...(await withLabResolver(directory)) };
  const argv = [`${unpacked}/usr/sbin/smtpd`, "-d", "-f", configPath];
  supervisor.start({ name: OPENSMTPD, argv: inNamespace({ files, empty: EMPTY }, argv) });
  await supervisor.waitForPort(OPENSMTPD, addressOf("osmtpd"), SMTP_PORT);
};
