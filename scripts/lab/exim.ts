import { chmod, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { HOSTS, SMTP_PORT, SUFFIX } from "./hosts.ts";
import type { Supervisor } from "./processes.ts";

const NAME = "exim";

/** Debian's Exim insists on this user; the package that would make it is never installed. */
const EXIM_USER = "Debian-exim";
const EXIM_ID = 64_999;

/** One router decides about the mailboxes of each kind of domain; an unknown one gets Exim's own words. */
const configuration = (directory: string, unpacked: string): string => `primary_hostname = exim.mx.${SUFFIX}
spool_directory = ${directory}/spool
log_file_path = ${directory}/log/%slog
pid_file_path = ${directory}/exim.pid
exim_path = ${unpacked}/usr/sbin/exim4
keep_environment =
local_interfaces = ${HOSTS.exim}
daemon_smtp_ports = ${SMTP_PORT}
domainlist worded = eximworded.${SUFFIX}
domainlist mailboxes = exim.${SUFFIX} : +worded
domainlist everything = eximcatchall.${SUFFIX}
domainlist undecided = eximdefers.${SUFFIX}
host_lookup =
rfc1413_hosts =
tls_advertise_hosts =
dns_dnssec_ok = 0
acl_smtp_rcpt = acl_rcpt

begin acl
acl_rcpt:
  deny    domains = !+mailboxes : !+everything : !+undecided
          message = relay not permitted
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

begin retry
* * F,1h,1m

begin rewrite
begin authenticators
`;

/**
 * Starts Exim from the unpacked package. Its user does not exist on the machine, so it runs in a mount namespace of its
 * own in which /etc/passwd and /etc/group are copies that know the user; the machine's own files stay as they are.
 */
export const startExim = async (supervisor: Supervisor, parent: string, unpacked: string): Promise<void> => {
  const directory = join(parent, NAME);
  for (const part of ["", "spool", "log"]) {
    await mkdir(join(directory, part), { recursive: true });
    await chmod(join(directory, part), 0o755);
  }
  const configPath = join(directory, "exim.conf");
  const passwd = await Bun.file("/etc/passwd").text();
  const group = await Bun.file("/etc/group").text();
  await Bun.write(
    join(directory, "passwd"),
    `${passwd}${EXIM_USER}:x:${EXIM_ID}:${EXIM_ID}::${directory}:/bin/false\n`,
  );
  await Bun.write(join(directory, "group"), `${group}${EXIM_USER}:x:${EXIM_ID}:\n`);
  await Bun.write(configPath, configuration(directory, unpacked));
  await supervisor.run(["chown", "-R", `${EXIM_ID}:${EXIM_ID}`, join(directory, "spool"), join(directory, "log")]);
  const script = [
    `mount --bind '${directory}/passwd' /etc/passwd`,
    `mount --bind '${directory}/group' /etc/group`,
    `exec '${unpacked}/usr/sbin/exim4' -bdf -C '${configPath}'`,
  ].join(" && ");
  supervisor.start({ name: NAME, argv: ["unshare", "--mount", "sh", "-c", script] });
  await supervisor.waitForPort(NAME, HOSTS.exim, SMTP_PORT);
};
