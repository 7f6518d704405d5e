import { join } from "node:path";
import { addressOf, PROBE_DOMAIN, SMTP_PORT, SUFFIX } from "./hosts.ts";
import type { HostName } from "./hosts.ts";
import { inNamespace, serverDirectory, withLabResolver, withUsers } from "./namespace.ts";
import type { Supervisor } from "./processes.ts";

const NAME = "exim";

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

/** Starts Exim from the unpacked package, in a mount namespace in which its user exists. */
export const startExim = async (supervisor: Supervisor, parent: string, unpacked: string): Promise<void> => {
  const directory = await serverDirectory(parent, NAME, ["spool", "log"]);
  const configPath = join(directory, "exim.conf");
  const users = await withUsers(directory, [{ name: EXIM_USER, id: EXIM_ID }]);
  const files = { ...users, ...(await withLabResolver(directory)) };
  await Bun.write(configPath, configuration(directory, unpacked));
  await supervisor.run(["chown", "-R", `${EXIM_ID}:${EXIM_ID}`, join(directory, "spool"), join(directory, "log")]);
  supervisor.start({
    name: NAME,
    argv: inNamespace({ files }, [`${unpacked}/usr/sbin/exim4`, "-bdf", "-C", configPath]),
  });
  await supervisor.waitForPort(NAME, addressOf("exim"), SMTP_PORT);
};
